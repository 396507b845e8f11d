// The launcher's requests, and how the board executes them.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/counted.h"
#include "base/loss.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/gateway/gateway.h"

namespace espalier::gateway {
namespace {

constexpr char kViolation[] =
    "it does not follow the agent's protocol; install the same release on both";
// For the board's next packet, or the next piece of data in either direction.
constexpr std::uint64_t kPatience = 10 * kSecond;

// The inverse of event_bytes() (include/espalier/internal/collectives/machine/event_log.h).
Event event_of(const std::uint8_t* bytes) {
  return {.step = load_u32(bytes),
          .segment = load_u32(bytes + 4),
          .block = load_u32(bytes + 8),
          .action = bytes[12],
          .link = bytes[13],
          .kind = bytes[14]};
}

}  // namespace

void Gateway::enter(State state) {
  state_ = state;
  board_progress_ns_ = heard_ns_ = clock_.now();
}

// Takes the launcher's next packet, if one has arrived.
Result<void> Gateway::take_from_launcher() {
  control::Any packet;
  int descriptor = -1;
  const control::Received received = control::receive(channel(), packet, descriptor, 0);
  if (received == control::Received::kNothing) return {};
  const control::Packet kind =
      received == control::Received::kPacket ? packet.packet : control::Packet::kFailed;
  Result<void> taken;
  if (kind == control::Packet::kMemory && state_ == State::kIdle) {
    taken = map_memory(packet.memory, descriptor);
  } else if (kind == control::Packet::kRun && state_ == State::kIdle) {
    request_ = packet.run_request;
    const control::LossReport loss = report_.loss;  // a board that refuses a run tells none
    report_ = control::Report{};
    report_.loss = loss;
    report_.number = request_.number;
    report_.status = Status::kBusy;
    enter(State::kRequested);
  } else if (kind == control::Packet::kReturn && state_ == State::kIdle && generations() > 1) {
    taken = take_return(packet.comes_back.node);
  } else if (kind == control::Packet::kAsk) {
    // While the board runs, the gateway asks it. Otherwise report_ is up to date.
    if (state_ == State::kCollecting) {
      taken = send_busy();
    } else if (state_ != State::kRunning) {
      taken = send_to_launcher(report_);
    }
    asked_ns_ = 0;
  } else {
    ended_ = true;
    if (kind != control::Packet::kQuit) taken = fail("the launcher is gone");
  }
  if (descriptor >= 0) close(descriptor);
  return taken;
}

Result<void> Gateway::map_memory(const control::Memory& memory, int descriptor) {
  const auto check_fits = [this](const char* what, std::uint64_t bytes,
                                 std::uint32_t room) -> Result<void> {
    if (bytes <= room) return {};
    return fail_board("it has room for " + counted(room, "byte") + " of " + what +
                      ", this run needs " + std::to_string(bytes));
  };
  auto fits = check_fits("input", memory.input_bytes, hello_.input_room);
  if (fits) fits = check_fits("output", memory.output_bytes, hello_.output_room);
  if (!fits) return fits;
  if (memory.counts != 0) {
    return fail_board(
        "its firmware takes one count for all ranks; expected a run without --counts");
  }
  input_bytes_ = memory.input_bytes;
  output_bytes_ = memory.output_bytes;
  events_ = memory.events;
  records_.resize(std::size_t{std::min<std::uint32_t>(events_, hello_.events_room)} * kEventBytes);
  const bool mapped =
      descriptor >= 0 && input_.map(input_bytes_, descriptor, 0, false) &&
      output_.map(output_bytes_, descriptor, control::output_offset(input_bytes_), true) &&
      log_.map(control::log_bytes(events_), descriptor,
               control::log_offset(input_bytes_, output_bytes_), true);
  if (mapped) return send_to_launcher(control::Mapped{});
  return fail(std::string("cannot map the memory of the collective: ") + std::strerror(errno));
}

// The launcher's memory has the size of its longest message. A shorter message transfers only the
// bytes that its program needs.
agent::RunRequest Gateway::board_request() const {
  agent::RunRequest run{.number = request_.number, .schedule = request_.schedule};
  if (run.schedule == 0 && request_.program < board_programs_.size()) {
    run.schedule = board_programs_[request_.program].schedule;
  }
  run.count = request_.count;
  run.repetitions = request_.repetitions;
  run.input_bytes = static_cast<std::uint32_t>(input_bytes_);
  run.output_bytes = static_cast<std::uint32_t>(output_bytes_);
  run.events = static_cast<std::uint32_t>(records_.size() / kEventBytes);
  run.op = request_.op;
  run.type = request_.type;
  if (programs_ == nullptr) return run;
  Operator op{.op = request_.op, .type = request_.type};
  CallBySchedule call;
  call.schedule = run.schedule;
  call.counts = request_.count;
  call.element_bytes = element_bytes(op);
  const DecodedProgram* found = nullptr;
  Layout layout;
  if (find_program(*programs_, call, found) != Status::kOk ||
      make_layout(*found, request_.count, call.element_bytes, layout) != Status::kOk) {
    return run;
  }
  const Program& program = *found;
  const auto limit = [&](std::uint64_t bytes, Buffer buffer) {
    const std::uint64_t needed = std::max<std::uint64_t>(1, buffer_bytes(program, layout, buffer));
    return static_cast<std::uint32_t>(std::min(bytes, needed));
  };
  run.input_bytes = limit(input_bytes_, Buffer::kInput);
  run.output_bytes = limit(output_bytes_, Buffer::kOutput);
  return run;
}

Result<void> Gateway::take_event(Conversation::Event event) {
  switch (event) {
    case Conversation::Event::kNothing: return {};
    case Conversation::Event::kPacket: return take_packet();
    case Conversation::Event::kData:
      if (state_ != State::kCollecting)
        return fail_board("it sent data that the gateway did not request");
      copy_log();
      return finish(report_.status);
    case Conversation::Event::kRestarted:
      return asks_ ? end_asking(Status::kUnsupported) : fail_board("it restarted");
    case Conversation::Event::kViolation: return fail_board(kViolation);
  }
  return {};
}

Result<void> Gateway::take_packet() {
  const agent::Packet& packet = agent_->packet();
  if (packet.kind == agent::Kind::kAnswer) return take_answer(packet.answer);
  if (packet.kind == agent::Kind::kReport) return take_report(packet.report);
  if (packet.kind == agent::Kind::kWant && release_ && state_ == State::kRunning) {
    wanted_ = packet.want.offset;
    return {};
  }
  return fail_board(kViolation);
}

// A node comes back that was lost. Another one: it may ask the board over new links. This one: its
// board asks.
Result<void> Gateway::take_return(std::uint32_t node) {
  if (options_.node.comes_back && node == hello_.node) {
    asks_ = true;
    send_configuration();
    return {};
  }
  if (report_.loss.generation == 0 || report_.loss.loss() != Loss::node(node)) {
    return fail_board("node " + std::to_string(node) +
                      " comes back, without which it did not go on");
  }
  auto opened = open_endpoints();
  if (opened) opened = connect();
  if (!opened) return opened;
  fabrics_.take(report_.loss.generation, node);
  opened = prepare_bridges(report_.loss.generation + 1);
  return opened ? send_to_launcher(control::Ready{}) : opened;
}

// status: how coming back ended.
Result<void> Gateway::end_asking(Status status) {
  asks_ = false;
  if (status == Status::kOk) return send_to_launcher(control::Ready{});
  if (status == Status::kTooLarge) {
    return fail_board("the others have no links left to take it in again");
  }
  return fail_board(std::string("no other node took it in: ") + status_name(status));
}

Result<void> Gateway::take_answer(const agent::Answer& answer) {
  if (asks_ && answer.to == agent::Kind::kConfigure) return end_asking(answer.status);
  const bool updates = options_.node.updates();
  const agent::Kind kind = updates ? agent::Kind::kUpdate : agent::Kind::kRun;
  if (answer.to != kind || state_ != State::kAnswering) {
    return fail_board(std::string("it rejects a packet: ") + status_name(answer.status));
  }
  if (answer.status != Status::kOk) {
    if (updates) report_.cause = {answer.status, hello_.node, hello_.node};
    return finish(answer.status);
  }
  if (updates) {
    begin_running();
    return {};
  }
  const std::size_t bytes = board_request().input_bytes;
  agent_->send_data({static_cast<const std::uint8_t*>(input_.bytes()), bytes});
  enter(State::kFilling);
  return {};
}

Result<void> Gateway::take_report(const agent::Report& report) {
  asked_ = false;
  if (state_ != State::kRunning || report.number != request_.number)
    return {};  // of an earlier run
  if (report.loss_kind > static_cast<std::uint32_t>(Loss::Kind::kNode)) {
    return fail_board(kViolation);
  }
  translate(report);
  report_loss(report);
  record_report(clock_.now());
  if (report.status == Status::kBusy) return send_busy();
  report_.end_ns = clock_.now();
  if (report.confirmation != Status::kOk) {
    std::fprintf(stderr, "espalier-gateway: node %u: %s cannot confirm its image: %s\n",
                 std::uint32_t{hello_.node}, board_name_.c_str(), status_name(report.confirmation));
  }
  const std::size_t records = std::size_t{report.events} * kEventBytes;
  if (report.output_bytes > output_bytes_ || records > records_.size()) {
    return fail_board("it reports more data than requested");
  }
  report_.log.count = std::min<std::uint32_t>(report_.log.count, report.events);
  report_.log.lost += report.log_count - report_.log.count;
  report_.log.retired = std::min(report_.log.retired, report_.log.count);
  enter(State::kCollecting);
  if (report.output_bytes + records == 0) return finish(report_.status);
  agent_->expect({static_cast<std::uint8_t*>(output_.bytes()), report.output_bytes},
                 {records_.data(), records});
  return {};
}

// Reports a run whose output and log are still on the board, also if it has ended there.
Result<void> Gateway::send_busy() {
  control::Report busy = report_;
  busy.status = Status::kBusy;
  busy.log = {};
  return send_to_launcher(busy);
}

void Gateway::translate(const agent::Report& report) {
  report_.status = report.status;
  report_.blocks = report.blocks;
  report_.completed = report.completed;
  report_.cause = {report.cause, report.cause_detector, report.cause_peer};
  report_.log = {report.log_count, report.log_retired, report.log_lost};
  const auto kind = static_cast<Loss::Kind>(std::uint32_t{report.loss_kind});
  report_.loss = {report.generation, {kind, report.loss_a, report.loss_b}};
  StallReport& stall = report_.stall;
  stall.waiting = report.stall_waiting != 0;
  stall.sending = report.stall_sending != 0;
  stall.step = report.stall_step;
  stall.link = report.stall_link;
  stall.peer = report.stall_peer;
  stall.action = report.stall_action;
  const std::uint64_t now = clock_.now();
  // A run that waits for nothing moves; a roll call does not.
  stall.since_ns =
      options_.node.updates() ? 0 : now - std::min<std::uint64_t>(now, report.stall_ns);
}

// Prints without what the board goes on, if that has changed.
void Gateway::report_loss(const agent::Report& report) {
  if (report.status != Status::kOk || report.generation == 0) return;
  const Loss loss = report_.loss.loss();
  if (loss == reported_loss_) return;
  std::string what = "with node " + std::to_string(reported_loss_.a) + " again";
  if (loss.kind == Loss::Kind::kNode) what = "without node " + std::to_string(loss.a);
  if (loss.kind == Loss::Kind::kLink) {
    what = "without link " + std::to_string(loss.a) + " - " + std::to_string(loss.b);
  }
  reported_loss_ = loss;
  std::fprintf(stderr, "espalier-gateway: node %u: %s goes on %s\n", std::uint32_t{hello_.node},
               board_name_.c_str(), what.c_str());
}

// The board's times mean nothing on this host. All records get the begin and end of the run.
void Gateway::copy_log() {
  auto* times = static_cast<EventTimes*>(log_.bytes());
  auto* events = reinterpret_cast<Event*>(times + events_);
  for (std::uint32_t i = 0; i < report_.log.count; ++i) {
    Event event = event_of(records_.data() + std::size_t{i} * kEventBytes);
    event.begun = event.done = i < report_.log.retired;
    events[i] = event;
    times[i] = {report_.begin_ns, report_.begin_ns, report_.end_ns, report_.end_ns};
  }
}

void Gateway::begin_running() {
  report_.begin_ns = report_.end_ns = asked_ns_ = clock_.now();
  asked_ = false;
  enter(State::kRunning);
  if (!options_.node.updates()) record_run();
}

void Gateway::send_request() {
  if (!options_.node.updates()) return agent_->send(board_request());
  agent::Update update{.number = request_.number,
                       .window = options_.node.window,
                       .check_blocks = options_.node.check_blocks,
                       .settles = options_.node.settles,
                       .deadline_ns = options_.node.deadline_ns,
                       .origin = options_.node.update_origin};
  // The bytes of an order are the same on every target.
  void* const order = update.order;
  if (release_) std::memcpy(order, &release_->order, sizeof update.order);
  agent_->send(update);
}

// Sends the board the piece that it wants. All that was sent before has arrived.
void Gateway::give_piece() {
  release_->fill_piece(*wanted_, piece_);
  wanted_.reset();
  agent_->send(agent::Piece{agent::Kind::kPiece, static_cast<std::uint32_t>(piece_.size())});
  agent_->send_data(piece_);
}

// Does what is due by time, or because the board has received everything that was sent.
Result<void> Gateway::continue_request() {
  const std::uint64_t now = clock_.now();
  switch (state_) {
    case State::kIdle: return {};
    case State::kRequested:
      if (request_.op == Op::kCustom) return finish(Status::kBadOperator);  // boards have none
      if (agent_->can_send()) {
        send_request();
        enter(State::kAnswering);
      }
      return check_progress(kPatience, "that it accepts a request to run");
    case State::kAnswering: return check_progress(kPatience, "its answer to a request to run");
    case State::kFilling:
      if (agent_->can_send()) enter(State::kAwaitsStart);
      return check_progress(kPatience, "that it accepts the input");
    case State::kAwaitsStart:
      if (now < request_.start_ns) return {};
      agent_->send(agent::Go{agent::Kind::kGo, request_.number});
      begin_running();
      return {};
    case State::kRunning: {
      if (wanted_ && agent_->can_send()) give_piece();
      if (asked_) return check_progress(options_.node.deadline_ns + kSecond, "its answer to Ask");
      if (is_ask_due(now) && agent_->can_send()) {
        agent_->send(agent::Ask{});
        asked_ = true;
        asked_ns_ = board_progress_ns_ = now;
      }
      return {};
    }
    case State::kCollecting: return check_progress(kPatience, "the rest of its report");
  }
  return {};
}

Result<void> Gateway::finish(Status status) {
  if (!options_.node.updates()) collectives_ += report_.completed;
  report_.status = status;
  state_ = State::kIdle;
  return send_to_launcher(report_);
}

}  // namespace espalier::gateway
