// Runs: the gateway's requests, the machine's collectives, their reports.

#include <cstring>

#include "espalier/internal/base/assert.h"
#include "firmware/bare/server.h"
#include "firmware/bare/text.h"

namespace espalier::bare {

Status Server::configure(const agent::Configure& request) {
  if (links_ == nullptr) return booted_.status;
  MachineConfig config;
  if (request.window != 0) config.window = request.window;
  if (request.deadline_ns != 0) config.deadline_ns = request.deadline_ns;
  config.check_blocks = request.check_blocks != 0;
  logs_ = request.log != 0;
  if (logs_) config.log = &log_;
  const Status status = machine_.init(*links_, config);
  configured_ = status == Status::kOk;
#if ESPALIER_SPARES
  if (configured_ && request.spares != 0 && spares_ != nullptr && spares_->any()) {
    recovery_.emplace(machine_, *links_, *spares_, config.deadline_ns);
  }
  if (configured_ && request.comes_back != 0) {
    const Status begun = recovery_ ? recovery_->come_back() : Status::kBadArgument;
    configured_ = asks_ = recovering_ = begun == Status::kBusy;
    return begun;
  }
#endif
  return status;
}

Status Server::prepare(const agent::RunRequest& request) {
  run_ = request;
#if ESPALIER_SPARES
  numbers_.request();
#endif
  completed_ = began_ = ended_ = 0;
  if (!configured_ || booted_.status != Status::kOk) return Status::kBadArgument;
  op_ = Operator{};
  op_.op = request.op;
  op_.type = request.type;
  CallBySchedule call;
  call.schedule = request.schedule;
#if ESPALIER_MAX_SELECTIONS > 0
  call.counts = std::uint64_t{request.count};
  call.element_bytes = element_bytes(op_);
#endif
  const DecodedProgram* found = nullptr;
  Status status = find_program(booted_, call, found);
  if (status != Status::kOk) return status;
  program_ = found;
#if ESPALIER_SPARES
  if (program_->ranks == 0) return Status::kUnsupported;
#endif
  status = check_room();
  if (status != Status::kOk) return status;
  if (machine_.cause().status != Status::kOk) return machine_.cause().status;
  memset(rooms_.output, 0, request.output_bytes);
  if (logs_) log_ = EventLog(rooms_.events, nullptr, rooms_.events_count);
  expect(rooms_.input, request.input_bytes);
  state_ = State::kAwaitsGo;
  return Status::kOk;
}

// Whether the run has room for the messages of its program.
Status Server::check_room() const {
  const std::uint32_t size = element_bytes(op_);
  if (size == 0 || op_.op == Op::kCustom) return Status::kBadOperator;  // it has no function
  Layout layout;
  const Status status = make_layout(*program_, std::uint64_t{run_.count}, size, layout);
  if (status != Status::kOk) return status;
  const std::uint64_t input = buffer_bytes(*program_, layout, Buffer::kInput);
  const std::uint64_t output = buffer_bytes(*program_, layout, Buffer::kOutput);
  if (input > rooms_.input_bytes || output > rooms_.output_bytes ||
      run_.input_bytes > rooms_.input_bytes || run_.output_bytes > rooms_.output_bytes ||
      scratch_needed(*program_, layout) > rooms_.scratch_bytes) {
    return Status::kTooLarge;
  }
  const bool fits = input <= run_.input_bytes && output <= run_.output_bytes;
  return fits ? Status::kOk : Status::kBadArgument;
}

Status Server::start_one() {
  ESPALIER_ASSERT(program_ != nullptr);
#if ESPALIER_SPARES
  if (program_->ranks == 0) return Status::kUnsupported;  // its root is lost
#endif
  Buffers buffers;
  if (run_.input_bytes != 0) buffers.input = rooms_.input;
  if (run_.output_bytes != 0) buffers.output = rooms_.output;
  buffers.scratch = rooms_.scratch;
  buffers.scratch_bytes = rooms_.scratch_bytes;
  return machine_.start(*program_, buffers, op_, std::uint64_t{run_.count});
}

void Server::go() {
  ESPALIER_ASSERT(state_ == State::kAwaitsGo && links_ != nullptr && program_ != nullptr);
  state_ = State::kRunning;
#if ESPALIER_SPARES
  numbers_.begin();
#endif
  began_ = links_->now();
  if (run_.repetitions == 0) return end_run(Status::kOk);
#if ESPALIER_SPARES
  const Status looked = look();
  if (looked == Status::kBusy) return;
  if (looked != Status::kOk) return end_run(looked);
#endif
  const Status status = start_one();
  if (status != Status::kOk) end_run(status);
}

// status: the result of the machine's poll().
void Server::continue_run(Status status) {
  ESPALIER_ASSERT(completed_ <= run_.repetitions);
  if (status == Status::kBusy) return;
  if (status == Status::kOk) {
    ++completed_;
    if (completed_ < run_.repetitions) {
      status = start_one();
      if (status == Status::kOk) return;
    }
  }
  end_run(status);
}

void Server::end_run(Status status) {
  state_ = State::kIdle;
#if ESPALIER_SPARES
  numbers_.end(completed_);
  if (repeats_) {  // it was reported before
    repeats_ = false;
    return;
  }
#endif
  ended_ = links_->now();
  status_ = status;
  ended_run_ = true;
  // Confirm the image after its first successful run, so that the next boot takes it.
  if (status != Status::kOk || completed_ == 0 || confirmed_) return;
  confirmed_ = true;
  confirmation_ = slots_.confirm();
  Text() << "boot: image " << (confirmation_ == Status::kOk ? "" : "not ")
         << "confirmed: " << status_name(confirmation_) << ", stored counter " << slots_.counter()
         << "\n";
}

void Server::report(Status status) {
  agent::Packet packet;
  agent::Report report;
  report.number = run_.number;
  report.status = status;
  report.confirmation = confirmation_;
  report.completed = completed_;
  if (configured_) {
    const std::uint64_t now = links_->now();
    report.blocks = machine_.blocks();
    report.spent_ns = state_ == State::kRunning ? now - began_ : ended_ - began_;
    const Cause& cause = machine_.cause();
    report.cause = cause.status;
    report.cause_detector = cause.detector;
    report.cause_peer = cause.peer;
    const StallReport stall = machine_.stall_report();
    report.stall_waiting = stall.waiting;
    report.stall_sending = stall.sending;
    report.stall_step = stall.step;
    report.stall_link = stall.link;
    report.stall_peer = stall.peer;
    report.stall_action = stall.action;
    report.stall_ns = stall.waiting ? now - stall.since_ns : 0;
  }
#if ESPALIER_SPARES
  fill_loss(report, status);
#endif
#if ESPALIER_UPDATES
  fill_end(report);
#endif
  const EventLog::Counts counts = log_.counts();
  report.log_count = counts.count;
  report.log_retired = counts.retired;
  report.log_lost = counts.lost;
  if (ended_run_) {
    ended_run_ = false;
    report.output_bytes = run_.output_bytes;
    report.events = counts.count < run_.events ? counts.count : std::uint32_t{run_.events};
    out_[0] = {rooms_.output, report.output_bytes, 0};
    // Convert in place: a record's bytes are not longer than the record.
    auto* bytes = reinterpret_cast<std::uint8_t*>(rooms_.events);
    static_assert(kEventBytes <= sizeof(Event));
    for (std::uint32_t i = 0; i < report.events; ++i) {
      const Event event = log_.event(i);
      event_bytes(event, bytes + std::size_t{i} * kEventBytes);
    }
    out_[1] = {bytes, report.events * kEventBytes, 0};
  }
  packet.report = report;
  send(packet);
}

}  // namespace espalier::bare
