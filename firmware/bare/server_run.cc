// Runs: what the gateway orders, the machine's collectives, their reports.

#include <cstring>

#include "firmware/bare/board.h"
#include "firmware/bare/server.h"
#include "firmware/bare/text.h"

namespace espalier::bare {

Status Server::configure(const agent::Configure& order) {
  if (links_ == nullptr) return booted_.status;
  MachineConfig config;
  if (order.window != 0) config.window = order.window;
  if (order.deadline_ns != 0) config.deadline_ns = order.deadline_ns;
  config.check_blocks = order.check_blocks != 0;
  logs_ = order.log != 0;
  if (logs_) config.log = &log_;
  const Status status = machine_.init(*links_, config);
  configured_ = status == Status::kOk;
  return status;
}

Status Server::prepare(const agent::Run& order) {
  run_ = order;
  completed_ = began_ = ended_ = 0;
  if (!configured_ || booted_.status != Status::kOk) return Status::kBadArgument;
  program_ = nullptr;
  for (std::uint32_t at = 0; at < booted_.image.programs; ++at) {
    if (booted_.programs[at].schedule_digest == order.schedule) program_ = &booted_.programs[at];
  }
  if (program_ == nullptr || order.op == Op::kCustom) return Status::kBadArgument;
  op_ = Operator{};
  op_.op = order.op;
  op_.type = order.type;
  const std::uint32_t size = element_bytes(op_);
  if (size == 0) return Status::kBadOperator;
  Layout layout;
  const Status status = make_layout(*program_, order.count, size, layout);
  if (status != Status::kOk) return status;
  const std::uint64_t input = buffer_bytes(*program_, layout, espalier_Buffer_INPUT);
  const std::uint64_t output = buffer_bytes(*program_, layout, espalier_Buffer_OUTPUT);
  if (input > rooms_.input_bytes || output > rooms_.output_bytes ||
      order.input_bytes > rooms_.input_bytes || order.output_bytes > rooms_.output_bytes ||
      scratch_needed(*program_, layout) > rooms_.scratch_bytes) {
    return Status::kTooLarge;
  }
  if (input > order.input_bytes || output > order.output_bytes) return Status::kBadArgument;
  if (machine_.cause().status != Status::kOk) return machine_.cause().status;
  memset(rooms_.output, 0, order.output_bytes);
  if (logs_) log_ = EventLog(rooms_.events, nullptr, rooms_.events_count);
  expect(rooms_.input, order.input_bytes);
  state_ = State::kAwaitsGo;
  return Status::kOk;
}

Status Server::start_one() {
  Buffers buffers;
  if (run_.input_bytes != 0) buffers.input = rooms_.input;
  if (run_.output_bytes != 0) buffers.output = rooms_.output;
  buffers.scratch = rooms_.scratch;
  buffers.scratch_bytes = rooms_.scratch_bytes;
  return machine_.start(*program_, buffers, op_, run_.count);
}

void Server::go() {
  state_ = State::kRunning;
  began_ = links_->now();
  if (run_.repetitions == 0) return end_run(Status::kOk);
  const Status status = start_one();
  if (status != Status::kOk) end_run(status);
}

// `status`: of the machine's poll.
void Server::go_on_running(Status status) {
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
  ended_ = links_->now();
  state_ = State::kIdle;
  status_ = status;
  ended_run_ = true;
  // What has run well is what the next boot takes.
  if (status != Status::kOk || completed_ == 0 || confirmed_) return;
  confirmed_ = true;
  confirmation_ = slots_.confirm();
  Text() << "boot: image " << (confirmation_ == Status::kOk ? "" : "not ")
         << "confirmed: " << status_name(confirmation_) << ", stored counter " << slots_.counter()
         << "\n";
}

void Server::report(Status status) {
  agent::Packet packet;
  agent::Report told;
  told.number = run_.number;
  told.status = status;
  told.confirmation = confirmation_;
  told.completed = completed_;
  if (configured_) {
    const std::uint64_t now = links_->now();
    told.blocks = machine_.blocks();
    told.spent_ns = state_ == State::kRunning ? now - began_ : ended_ - began_;
    const Cause& cause = machine_.cause();
    told.cause = cause.status;
    told.cause_deaf = cause.deaf;
    told.cause_detector = cause.detector;
    told.cause_peer = cause.peer;
    const StallReport stall = machine_.stall_report();
    told.stall_waiting = stall.waiting;
    told.stall_sending = stall.sending;
    told.stall_step = stall.step;
    told.stall_link = stall.link;
    told.stall_peer = stall.peer;
    told.stall_action = stall.action;
    told.stall_ns = stall.waiting ? now - stall.since_ns : 0;
  }
  const EventLog::Counts counts = log_.counts();
  told.log_count = counts.count;
  told.log_retired = counts.retired;
  told.log_lost = counts.lost;
  if (ended_run_) {
    ended_run_ = false;
    told.output_bytes = run_.output_bytes;
    told.events = counts.count < run_.events ? counts.count : run_.events;
    out_[0] = {rooms_.output, told.output_bytes, 0};
    // A record's bytes are no longer than the record: they take its place.
    auto* bytes = reinterpret_cast<std::uint8_t*>(rooms_.events);
    static_assert(kEventBytes <= sizeof(Event));
    for (std::uint32_t at = 0; at < told.events; ++at) {
      const Event event = log_.event(at);
      event_bytes(event, bytes + std::size_t{at} * kEventBytes);
    }
    out_[1] = {bytes, told.events * kEventBytes, 0};
  }
  packet.report = told;
  send(packet);
}

}  // namespace espalier::bare
