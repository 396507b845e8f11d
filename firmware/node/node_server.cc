#include "firmware/node/node_server.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "collectives/machine/affine.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::node {
namespace {

// Interval between two looks at the control channel while a collective runs, in ns.
constexpr std::uint64_t kControlInterval = 10'000'000;
// Maximum wait between two polls of the machine, between collectives, in ns.
constexpr std::uint64_t kIdleWait = 1'000'000;
// All nodes of a run start at the same time: they sleep until this long before it, then watch the
// clock. In ns.
constexpr std::uint64_t kWatchClock = 300'000;

}  // namespace

bool NodeServer::ready() { return control::send(channel_, control::Ready{}); }

void NodeServer::step(bool look) {
  switch (state_) {
    case State::kIdle:
      // Until it has recovered, packets wait. Before it is taken in there are no requests for runs.
      if (!recovering_ || comes_back_) {
        if (!recovering_ && !look && monotonic_ns() < wake_) break;
        take_packet();
      }
      // The idle machine answers keepalive probes and forwards causes. Its status was reported.
      if (state_ != State::kEnded) (void)poll_machine();
      if (state_ == State::kIdle) {
        const std::uint64_t now = monotonic_ns();
        record_->look(now, nullptr, 0);
        wake_ = recovering_ ? next_poll() : now + kIdleWait;
      }
      break;
    case State::kAwaitsStart: await_start(); break;
    case State::kRunning: continue_run(); break;
    case State::kEnded: break;
  }
}

void NodeServer::end(int exit_status) {
  exit_status_ = exit_status;
  state_ = State::kEnded;
}

void NodeServer::map_memory(const control::Memory& memory, int descriptor) {
  record_->count_rest();
  input_bytes_ = memory.input_bytes;
  output_bytes_ = memory.output_bytes;
  const bool mapped =
      descriptor >= 0 && input_.map(input_bytes_, descriptor, 0, false) &&
      output_.map(output_bytes_, descriptor, control::output_offset(input_bytes_), true) &&
      log_memory_.map(control::log_bytes(memory.events), descriptor,
                      control::log_offset(input_bytes_, output_bytes_), true) &&
      counts_.map(memory.counts * sizeof(std::uint64_t), descriptor,
                  control::counts_offset(input_bytes_, output_bytes_, memory.events), false);
  if (mapped) {
    auto* times = static_cast<EventTimes*>(log_memory_.bytes());
    log_ = EventLog(reinterpret_cast<Event*>(times + memory.events), times, memory.events);
    if (!control::send(channel_, control::Mapped{})) end(1);
    return;
  }
  fail(std::string("cannot map the memory of the collective: ") + std::strerror(errno));
}

// Ends the node, and says why.
void NodeServer::fail(const std::string& what) {
  control::Failed failed;
  std::snprintf(failed.text, sizeof failed.text, "%s", what.c_str());
  (void)control::send(channel_, failed);
  record_->ended(what);
  end(1);
}

void NodeServer::take_packet() {
  control::Any packet;
  int descriptor = -1;
  const control::Received received = control::receive(channel_, packet, descriptor, 0);
  if (received == control::Received::kNothing) return;
  const control::Packet kind =
      received == control::Received::kPacket ? packet.packet : control::Packet::kFailed;
  const bool idle = state_ == State::kIdle;
  if (kind == control::Packet::kMemory && idle) {
    map_memory(packet.memory, descriptor);
  } else if (kind == control::Packet::kRun && idle && !comes_back_) {
    take_request(packet.run_request);
  } else if (kind == control::Packet::kReturn && idle && recovery_) {
    take_return(packet.comes_back);
  } else if (kind == control::Packet::kAsk) {
    report_.stall = machine_.stall_report();
    if (!control::send(channel_, report_)) end(1);
  } else {  // Quit, the end of the channel, or a packet that this state does not allow
    if (kind != control::Packet::kQuit) record_->ended("");
    end(kind == control::Packet::kQuit ? 0 : 1);
  }
  if (descriptor >= 0) close(descriptor);
}

void NodeServer::take_request(const control::RunRequest& request) {
  request_ = request;
  report_ = control::Report{};
  report_.number = request_.number;
  report_.status = Status::kBusy;
  const Status status = prepare();
  if (status != Status::kOk) return finish(status);
  record_request();
  state_ = State::kAwaitsStart;
  wake_ = 0;
}

// Looks up the program and the memory of the requested run. kBadArgument: no such program; input or
// output memory is too small for the message, or the counts' memory for the counts.
Status NodeServer::prepare() {
  numbers_.request();
  op_ = request_.op == Op::kCustom ? affine() : Operator{};
  if (request_.op != Op::kCustom) {
    op_.op = request_.op;
    op_.type = request_.type;
  }
  if (request_.counts > counts_.size() / sizeof(std::uint64_t)) return Status::kBadArgument;
  if (request_.schedule != 0) {
    CallBySchedule call;
    call.schedule = request_.schedule;
    call.counts = counts();
    call.element_bytes = element_bytes(op_);
    call.commutes = commutes(op_);
    const DecodedProgram* found = nullptr;
    const Status status = find_program(programs_, call, found);
    if (status != Status::kOk) return status;
    request_.program = static_cast<std::uint32_t>(found - programs_.programs);
  }
  if (request_.program >= programs_.count) return Status::kBadArgument;
  if (element_bytes(op_) == 0) return Status::kBadOperator;
  return find_memory();
}

// kUnsupported: the program's root is lost.
Status NodeServer::find_memory() {
  const Program& program = programs_.programs[request_.program];
  if (program.ranks == 0) return Status::kUnsupported;
  if (request_.counts != 0) offsets_.resize(unequal_offsets(program.collective, program.ranks));
  Layout layout;
  const Status status = make_layout(program, counts(), element_bytes(op_), layout);
  if (status != Status::kOk) return status;
  // The launcher provides whole pages; 0 bytes mean that there is no memory.
  if (input_bytes_ < buffer_bytes(program, layout, Buffer::kInput) ||
      output_bytes_ < buffer_bytes(program, layout, Buffer::kOutput)) {
    return Status::kBadArgument;
  }
  const std::uint64_t needed = scratch_needed(program, layout);
  if (needed > scratch_.size() && !scratch_.map(needed, -1, 0, true)) return Status::kTooLarge;
  buffers_ = {input_.bytes(), output_.bytes(), scratch_.bytes(), scratch_.size()};
  return Status::kOk;
}

// The requested run's counts.
ElementCounts NodeServer::counts() {
  if (request_.counts == 0) return request_.count;
  const auto* counts = static_cast<const std::uint64_t*>(counts_.bytes());
  if constexpr (!kIsLittleEndian) {
    own_counts_.assign(counts, counts + request_.counts);
    for (std::uint64_t& count : own_counts_) count = little(count);
    counts = own_counts_.data();
  }
  return {counts, request_.counts, offsets_.data()};
}

void NodeServer::record_request() {
  const Program& program = programs_.programs[request_.program];
  record_->begin_run({.collective = program.collective,
                      .root = program.root,
                      .algorithm = program.algorithm,
                      .op = op_,
                      .counts = counts(),
                      .program = &program},
                     numbers_.next());
}

void NodeServer::await_start() {
  const std::uint64_t now = monotonic_ns();
  record_->look(now, nullptr, 0);
  if (now + kWatchClock < request_.start_ns) {
    take_packet();
    wake_ = std::min(request_.start_ns - kWatchClock, now + kIdleWait);
  } else {
    wake_ = 0;
  }
  if (state_ != State::kAwaitsStart) return;
  (void)poll_machine();
  if (recovering_ || now < request_.start_ns) return;
  state_ = State::kRunning;
  numbers_.begin();
  next_look_ns_ = now + kControlInterval;
  report_.begin_ns = report_.end_ns = now;
  if (request_.repetitions == 0) return finish(Status::kOk);
  Status status = look();
  if (status == Status::kBusy) return;
  if (status == Status::kOk) status = start_one();
  if (status != Status::kOk) return finish(status);
  record_->begin();
}

Status NodeServer::start_one() {
  wake_ = 0;
  if (programs_.programs[request_.program].ranks == 0) return Status::kUnsupported;
  return machine_.start(programs_.programs[request_.program], buffers_, op_, counts());
}

void NodeServer::continue_run() {
  Status status = poll_machine();
  if (status == Status::kBusy) {
    const std::uint64_t now = endpoint().now();
    if (now >= next_look_ns_ && !repeats_) {
      take_packet();
      next_look_ns_ = now + kControlInterval;
      record_->look(now, recovering_ ? nullptr : &machine_, report_.completed);
    }
    wake_ = repeats_ ? next_poll() : std::min(next_poll(), next_look_ns_);
    return;
  }
  if (status == Status::kOk) {
    ++report_.completed;
    if (!repeats_) record_->end();
    if ((report_.completed & 0xff) == 0 && !repeats_) {
      take_packet();
      record_->look(monotonic_ns(), &machine_, report_.completed);
    }
    if (state_ == State::kEnded) return;
    if (report_.completed < request_.repetitions) {
      status = start_one();
      if (status == Status::kOk && !repeats_) record_->begin();
      if (status == Status::kOk) return;
    }
  }
  finish(status);
}

void NodeServer::finish(Status status) {
  numbers_.end(report_.completed);
  if (repeats_) {  // it was reported before
    repeats_ = false;
    state_ = State::kIdle;
    return;
  }
  if (state_ == State::kRunning) report_.end_ns = monotonic_ns();
  report_.status = status;
  report_.blocks = machine_.blocks();
  report_.cause = machine_.cause();
  if (recovery_ && is_failure(status)) report_.cause = recovery_->cause();
  if (recovery_) report_.loss = {recovery_->generation(), recovery_->loss()};
  report_.log = log_.counts();
  if (status != Status::kOk) report_.stall = machine_.stall_report();
  if (is_failure(status)) record_->fail(report_.cause, report_.stall, monotonic_ns());
  record_->end_run(report_.completed);
  if (status == Status::kOk && report_.completed > 0 && after_good_run_) {
    after_good_run_();
    after_good_run_ = nullptr;
  }
  state_ = State::kIdle;
  wake_ = 0;
  if (!control::send(channel_, report_)) end(1);
}

}  // namespace espalier::node
