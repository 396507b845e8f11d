#include "firmware/node/node.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "firmware/node/affine.h"

namespace espalier::node {
namespace {

// How long the control channel or the machine may go without being looked at.
constexpr std::uint64_t kControlEvery = 10'000'000;  // ns, while a collective runs
constexpr std::uint64_t kIdleWait = 1'000'000;       // ns, between collectives
// All nodes of a Run start at one time: they sleep until shortly before it, then watch the clock.
constexpr std::uint64_t kWatchClock = 300'000;  // ns

std::uint64_t monotonic() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Mapping::~Mapping() { unmap(); }

void Mapping::unmap() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
  bytes_ = nullptr;
  size_ = 0;
}

bool Mapping::map(std::uint64_t size, int descriptor, std::uint64_t offset, bool writable) {
  unmap();
  if (size == 0) return true;
  // Populated now, so that no page fault falls into a collective.
  const int flags = MAP_POPULATE | (descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* bytes = mmap(nullptr, size, access, flags, descriptor, static_cast<off_t>(offset));
  if (bytes == MAP_FAILED) return false;
  bytes_ = bytes;
  size_ = size;
  return true;
}

bool Node::ready() { return control::send(channel_, control::Ready{}); }

void Node::step(bool look) {
  switch (state_) {
    case State::kIdle:
      if (!look && monotonic() < wake_) break;
      attend();
      // Idle, the machine answers probes and passes causes on; how it stands was reported.
      (void)machine_.poll();
      if (state_ == State::kIdle) wake_ = monotonic() + kIdleWait;
      break;
    case State::kAwaitsStart: await_start(); break;
    case State::kRunning: go_on(); break;
    case State::kEnded: break;
  }
}

void Node::end(int exit_status) {
  exit_status_ = exit_status;
  state_ = State::kEnded;
}

void Node::map_memory(const control::Memory& memory, int descriptor) {
  input_bytes_ = memory.input_bytes;
  output_bytes_ = memory.output_bytes;
  const bool mapped =
      descriptor >= 0 && input_.map(input_bytes_, descriptor, 0, false) &&
      output_.map(output_bytes_, descriptor, control::output_offset(input_bytes_), true) &&
      log_memory_.map(control::log_bytes(memory.events), descriptor,
                      control::log_offset(input_bytes_, output_bytes_), true);
  if (mapped) {
    auto* times = static_cast<EventTimes*>(log_memory_.bytes());
    log_ = EventLog(reinterpret_cast<Event*>(times + memory.events), times, memory.events);
    if (!control::send(channel_, control::Mapped{})) end(1);
    return;
  }
  control::Failed failed;
  std::snprintf(failed.text, sizeof failed.text, "cannot map the memory of the collective: %s",
                std::strerror(errno));
  (void)control::send(channel_, failed);
  end(1);
}

void Node::attend() {
  control::Any packet;
  int descriptor = -1;
  const control::Received received = control::receive(channel_, packet, descriptor, 0);
  if (received == control::Received::kNothing) return;
  const control::Packet kind =
      received == control::Received::kPacket ? packet.packet : control::Packet::kFailed;
  const bool idle = state_ == State::kIdle;
  if (kind == control::Packet::kMemory && idle) {
    map_memory(packet.memory, descriptor);
  } else if (kind == control::Packet::kRun && idle) {
    take_run(packet.run);
  } else if (kind == control::Packet::kAsk) {
    report_.stall = machine_.stall_report();
    if (!control::send(channel_, report_)) end(1);
  } else {  // told to end, the channel's end, or no packet for a node as it stands
    end(kind == control::Packet::kQuit ? 0 : 1);
  }
  if (descriptor >= 0) close(descriptor);
}

void Node::take_run(const control::Run& order) {
  order_ = order;
  report_ = control::Report{};
  report_.number = order_.number;
  report_.status = Status::kBusy;
  const Status status = prepare();
  if (status != Status::kOk) return finish(status);
  state_ = State::kAwaitsStart;
  wake_ = 0;
}

// Looks the Run's needs up; kBadArgument: no such program, or memory that the message does not fit.
Status Node::prepare() {
  if (order_.schedule != 0) {
    order_.program = 0;
    while (order_.program < count_ &&
           programs_[order_.program].schedule_digest != order_.schedule) {
      ++order_.program;
    }
  }
  if (order_.program >= count_) return Status::kBadArgument;
  const Program& program = programs_[order_.program];
  op_ = order_.op == Op::kCustom ? affine() : Operator{};
  if (order_.op != Op::kCustom) {
    op_.op = order_.op;
    op_.type = order_.type;
  }
  const std::uint32_t size = element_bytes(op_);
  if (size == 0) return Status::kBadOperator;
  Layout layout;
  const Status status = make_layout(program, order_.count, size, layout);
  if (status != Status::kOk) return status;
  // A launcher gives whole pages, so no memory at all is 0 bytes.
  if (input_bytes_ < buffer_bytes(program, layout, espalier_Buffer_INPUT) ||
      output_bytes_ < buffer_bytes(program, layout, espalier_Buffer_OUTPUT)) {
    return Status::kBadArgument;
  }
  const std::uint64_t needed = scratch_needed(program, layout);
  if (needed > scratch_.size() && !scratch_.map(needed, -1, 0, true)) return Status::kTooLarge;
  buffers_ = {input_.bytes(), output_.bytes(), scratch_.bytes(), scratch_.size()};
  return Status::kOk;
}

void Node::await_start() {
  const std::uint64_t now = monotonic();
  if (now + kWatchClock < order_.start_ns) {
    attend();
    wake_ = std::min(order_.start_ns - kWatchClock, now + kIdleWait);
  } else {
    wake_ = 0;
  }
  (void)machine_.poll();
  if (state_ != State::kAwaitsStart || now < order_.start_ns) return;
  state_ = State::kRunning;
  look_ = now + kControlEvery;
  report_.begin_ns = report_.end_ns = now;
  if (order_.repetitions == 0) return finish(Status::kOk);
  const Status status = start_one();
  if (status != Status::kOk) finish(status);
}

Status Node::start_one() {
  wake_ = 0;
  return machine_.start(programs_[order_.program], buffers_, op_, order_.count);
}

void Node::go_on() {
  Status status = machine_.poll();
  if (status == Status::kBusy) {
    const std::uint64_t now = endpoint_.now();
    if (now >= look_) {
      attend();
      look_ = now + kControlEvery;
    }
    wake_ = std::min(machine_.next_deadline(), look_);
    return;
  }
  if (status == Status::kOk) {
    ++report_.completed;
    if ((report_.completed & 0xff) == 0) attend();
    if (state_ == State::kEnded) return;
    if (report_.completed < order_.repetitions) {
      status = start_one();
      if (status == Status::kOk) return;
    }
  }
  finish(status);
}

void Node::finish(Status status) {
  if (state_ == State::kRunning) report_.end_ns = monotonic();
  report_.status = status;
  report_.blocks = machine_.blocks();
  report_.cause = machine_.cause();
  report_.log = log_.counts();
  if (status != Status::kOk) report_.stall = machine_.stall_report();
  if (status == Status::kOk && report_.completed > 0 && after_good_run_) {
    after_good_run_();
    after_good_run_ = nullptr;
  }
  state_ = State::kIdle;
  wake_ = 0;
  if (!control::send(channel_, report_)) end(1);
}

}  // namespace espalier::node
