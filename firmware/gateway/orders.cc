// What the launcher orders, and how the board fares with it.

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "firmware/gateway/gateway.h"

namespace espalier::gateway {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
// For its next word, or to take or give the next piece of data.
constexpr std::uint64_t kPatience = 10 * kSecond;

std::uint32_t number_at(const std::uint8_t* bytes) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes, sizeof number);  // both little-endian
  return number;
}

// The inverse of event_bytes().
Event event_of(const std::uint8_t* bytes) {
  Event event;
  event.step = number_at(bytes);
  event.segment = number_at(bytes + 4);
  event.block = number_at(bytes + 8);
  event.action = bytes[12];
  event.link = bytes[13];
  event.kind = bytes[14];
  return event;
}

}  // namespace

void Gateway::enter(State state) {
  state_ = state;
  board_moved_ns_ = clock_.now();
}

// Takes the launcher's packet, if one is there.
bool Gateway::attend() {
  const int channel = options_.node.controls.front();
  control::Any packet;
  int descriptor = -1;
  const control::Received received = control::receive(channel, packet, descriptor, 0);
  if (received == control::Received::kNothing) return true;
  const control::Packet kind =
      received == control::Received::kPacket ? packet.packet : control::Packet::kFailed;
  bool well = true;
  if (kind == control::Packet::kMemory && state_ == State::kIdle) {
    well = map_memory(packet.memory, descriptor);
  } else if (kind == control::Packet::kRun && state_ == State::kIdle) {
    order_ = packet.run;
    report_ = control::Report{};
    report_.number = order_.number;
    report_.status = Status::kBusy;
    enter(State::kOrdered);
  } else if (kind == control::Packet::kAsk) {
    // A board that runs is asked in turn; before and after that its gateway knows as much.
    if (state_ != State::kRunning) well = control::send(channel, report_);
    asked_ns_ = 0;
  } else {
    ended_ = true;
    if (kind != control::Packet::kQuit) error_ = "the launcher is gone";
  }
  if (descriptor >= 0) close(descriptor);
  return well;
}

bool Gateway::map_memory(const control::Memory& memory, int descriptor) {
  const auto fits = [this](const char* what, std::uint64_t bytes, std::uint32_t room) {
    return bytes <= room || broken("it has room for " + std::to_string(room) + " bytes of " + what +
                                   ", this run needs " + std::to_string(bytes));
  };
  if (!fits("input", memory.input_bytes, hello_.input_room) ||
      !fits("output", memory.output_bytes, hello_.output_room)) {
    return false;
  }
  input_bytes_ = memory.input_bytes;
  output_bytes_ = memory.output_bytes;
  events_ = memory.events;
  records_.resize(std::size_t{std::min(events_, hello_.events_room)} * kEventBytes);
  const bool mapped =
      descriptor >= 0 && input_.map(input_bytes_, descriptor, 0, false) &&
      output_.map(output_bytes_, descriptor, control::output_offset(input_bytes_), true) &&
      log_.map(control::log_bytes(events_), descriptor,
               control::log_offset(input_bytes_, output_bytes_), true);
  if (mapped) return control::send(options_.node.controls.front(), control::Mapped{});
  error_ = std::string("cannot map the memory of the collective: ") + std::strerror(errno);
  return false;
}

// The launcher's memory is for its longest message; of the others no more is sent than they need.
agent::Run Gateway::board_order() const {
  agent::Run run;
  run.number = order_.number;
  run.schedule = order_.schedule;
  if (run.schedule == 0 && order_.program < board_programs_.size()) {
    run.schedule = board_programs_[order_.program].schedule;
  }
  run.count = order_.count;
  run.repetitions = order_.repetitions;
  run.input_bytes = static_cast<std::uint32_t>(input_bytes_);
  run.output_bytes = static_cast<std::uint32_t>(output_bytes_);
  run.events = static_cast<std::uint32_t>(records_.size() / kEventBytes);
  run.op = order_.op;
  run.type = order_.type;
  for (std::uint32_t at = 0; programs_ != nullptr && at < programs_->count; ++at) {
    const Program& program = programs_->programs[at];
    Operator op;
    op.op = order_.op;
    op.type = order_.type;
    Layout layout;
    if (program.schedule_digest != run.schedule || element_bytes(op) == 0 ||
        make_layout(program, order_.count, element_bytes(op), layout) != Status::kOk) {
      continue;
    }
    const auto least = [&](std::uint64_t given, Buffer buffer) {
      const std::uint64_t needed =
          std::max<std::uint64_t>(1, buffer_bytes(program, layout, buffer));
      return static_cast<std::uint32_t>(std::min(given, needed));
    };
    run.input_bytes = least(input_bytes_, espalier_Buffer_INPUT);
    run.output_bytes = least(output_bytes_, espalier_Buffer_OUTPUT);
  }
  return run;
}

bool Gateway::take(Conversation::Event event) {
  switch (event) {
    case Conversation::Event::kNothing: return true;
    case Conversation::Event::kPacket: return take_packet();
    case Conversation::Event::kData:
      if (state_ != State::kCollecting) return broken("it sent data that nobody asked for");
      copy_log();
      return finish(report_.status);
    case Conversation::Event::kRestarted: return broken("it started anew");
    case Conversation::Event::kStrange:
      return broken("it does not keep to the agent's protocol: install both of one release");
  }
  return true;
}

bool Gateway::take_packet() {
  const agent::Packet& packet = agent_->packet();
  if (packet.kind == agent::Kind::kAnswer) return take_answer(packet.answer);
  if (packet.kind == agent::Kind::kReport) return take_report(packet.report);
  return broken("it does not keep to the agent's protocol: install both of one release");
}

bool Gateway::take_answer(const agent::Answer& answer) {
  if (answer.to != agent::Kind::kRun || state_ != State::kAnswering) {
    return broken(std::string("it does not take what it is told: ") + status_name(answer.status));
  }
  if (answer.status != Status::kOk) return finish(answer.status);
  const std::uint64_t bytes = board_order().input_bytes;
  agent_->send_data({static_cast<const std::uint8_t*>(input_.bytes()), bytes});
  enter(State::kFilling);
  return true;
}

bool Gateway::take_report(const agent::Report& report) {
  asked_ = false;
  if (state_ != State::kRunning || report.number != order_.number) return true;  // they crossed
  translate(report);
  const int channel = options_.node.controls.front();
  if (report.status == Status::kBusy) return control::send(channel, report_);
  report_.end_ns = clock_.now();
  if (report.confirmation != Status::kOk) {
    std::fprintf(stderr, "espalier-gateway: node %u: %s cannot confirm its image: %s\n",
                 hello_.node, hello_.board, status_name(report.confirmation));
  }
  const std::size_t records = std::size_t{report.events} * kEventBytes;
  if (report.output_bytes > output_bytes_ || records > records_.size()) {
    return broken("it reports more than it was asked for");
  }
  report_.log.count = report_.log.count < report.events ? report_.log.count : report.events;
  report_.log.lost += report.log_count - report_.log.count;
  report_.log.retired = std::min(report_.log.retired, report_.log.count);
  enter(State::kCollecting);
  if (report.output_bytes + records == 0) return finish(report_.status);
  agent_->expect({static_cast<std::uint8_t*>(output_.bytes()), report.output_bytes},
                 {records_.data(), records});
  return true;
}

void Gateway::translate(const agent::Report& report) {
  report_.status = report.status;
  report_.blocks = report.blocks;
  report_.completed = report.completed;
  report_.cause = {report.cause, report.cause_detector, report.cause_peer, report.cause_deaf != 0};
  report_.log = {report.log_count, report.log_retired, report.log_lost};
  StallReport& stall = report_.stall;
  stall.waiting = report.stall_waiting != 0;
  stall.sending = report.stall_sending != 0;
  stall.step = report.stall_step;
  stall.link = report.stall_link;
  stall.peer = report.stall_peer;
  stall.action = report.stall_action;
  const std::uint64_t now = clock_.now();
  stall.since_ns = now - std::min(now, report.stall_ns);
}

// The board keeps no times that would mean something here: what is known of its records is that
// they are of this run.
void Gateway::copy_log() {
  auto* times = static_cast<EventTimes*>(log_.bytes());
  auto* events = reinterpret_cast<Event*>(times + events_);
  for (std::uint32_t at = 0; at < report_.log.count; ++at) {
    Event event = event_of(records_.data() + std::size_t{at} * kEventBytes);
    event.begun = event.done = at < report_.log.retired;
    events[at] = event;
    times[at] = {report_.begin_ns, report_.begin_ns, report_.end_ns, report_.end_ns};
  }
}

// What is to be done by time, or as soon as the board has taken what was sent.
bool Gateway::go_on() {
  const std::uint64_t now = clock_.now();
  switch (state_) {
    case State::kIdle: return true;
    case State::kOrdered:
      if (order_.op == Op::kCustom) return finish(Status::kBadOperator);  // no board has any
      if (agent_->can_send()) {
        agent_->send(board_order());
        enter(State::kAnswering);
      }
      return patient(kPatience, "that it takes a Run");
    case State::kAnswering: return patient(kPatience, "its answer to a Run");
    case State::kFilling:
      if (agent_->can_send()) enter(State::kAwaitsStart);
      return patient(kPatience, "that it takes the input");
    case State::kAwaitsStart:
      if (now < order_.start_ns) return true;
      agent_->send(agent::Go{agent::Kind::kGo, order_.number});
      report_.begin_ns = report_.end_ns = now;
      asked_ = false;
      enter(State::kRunning);
      asked_ns_ = now;
      return true;
    case State::kRunning: {
      const std::uint64_t deadline = options_.node.deadline_ns;
      if (asked_) {
        return patient(deadline + kSecond, "an answer to how it stands");
      }
      if (now - asked_ns_ > std::max(deadline / 2, kSecond / 2) && agent_->can_send()) {
        agent_->send(agent::Ask{});
        asked_ = true;
        asked_ns_ = board_moved_ns_ = now;
      }
      return true;
    }
    case State::kCollecting: return patient(kPatience, "the rest of its report");
  }
  return true;
}

bool Gateway::finish(Status status) {
  report_.status = status;
  state_ = State::kIdle;
  return control::send(options_.node.controls.front(), report_);
}

}  // namespace espalier::gateway
