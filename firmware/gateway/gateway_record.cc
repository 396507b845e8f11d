// What `espalier status` sees of a board: the gateway writes its record, from what the board
// answers to Ask and from the messages that pass.

#include <algorithm>

#include "firmware/gateway/gateway.h"

namespace espalier::gateway {
namespace {

// A board whose links are silent for this long is asked what it waits for, and again after as long
// (communicator/record/diagnosis.cc).
constexpr std::uint64_t kQuietNs = kSecond / 2;
// Any other is asked after half a deadline, at the latest after this time.
constexpr std::uint64_t kMaxAskNs = 2 * kSecond;

}  // namespace

// Error: a wrong ESPALIER_RECORD.
Result<void> Gateway::open_record() {
  if (options_.node.updates()) return {};
  auto opened = record_.open(options_.node, options_.node.nodes.front());
  record_.name_board("at " + options_.device);
  return opened;
}

void Gateway::hear_board(std::uint64_t now) {
  std::uint64_t messages = 0;
  for (const Generation& each : generations_) messages += each.bridge->board_messages();
  if (messages == board_messages_) return;
  board_messages_ = messages;
  heard_ns_ = moved_ns_ = now;
}

// The board runs what request_ says.
void Gateway::record_run() {
  const agent::RunRequest request = board_request();
  node::RecordedRun run{.op = {.op = request_.op, .type = request_.type}, .counts = request_.count};
  for (const agent::ProgramEntry& entry : board_programs_) {
    if (entry.schedule != request.schedule) continue;
    run.collective = Collective(std::int64_t{entry.collective});
    run.root = entry.root;
    run.algorithm = {entry.algorithm, strnlen(entry.algorithm, sizeof entry.algorithm)};
  }
  CallBySchedule call;
  call.schedule = request.schedule;
  call.counts = run.counts;
  call.element_bytes = element_bytes(run.op);
  const DecodedProgram* found = nullptr;
  if (programs_ != nullptr && find_program(*programs_, call, found) == Status::kOk) {
    const Program& program = *found;
    run.collective = program.collective;
    run.root = program.root;
    run.algorithm = program.algorithm;
    run.program = &program;
  }
  record_.begin_run(run, collectives_);
  moved_ns_ = clock_.now();
  if (request_.repetitions != 0) record_.begin();
}

// The board told how far it is: report_ has it.
void Gateway::record_report(std::uint64_t now) {
  if (options_.node.updates()) return;
  const bool is_running = report_.status == Status::kBusy;
  record_.reach(report_.completed, is_running || is_failure(report_.status));
  if (is_running) record_.note_wait(report_.stall, now);
  if (is_failure(report_.status)) record_.fail(report_.cause, report_.stall, now);
}

// A board that owes no answer may be silent.
void Gateway::look_at_board(std::uint64_t now) {
  const bool is_free = state_ == State::kIdle || state_ == State::kAwaitsStart;
  if (!record_.look_at_board(now, is_free ? now : heard_ns_, state_ == State::kRunning)) return;
  for (std::uint32_t link = 0; link < board_links_.size(); ++link) {
    Bridge::LinkBytes all;
    for (const Generation& each : generations_) {
      all.sent += each.bridge->bytes(link).sent;
      all.received += each.bridge->bytes(link).received;
    }
    if (all.sent + all.received != 0) {
      record_.set_bytes(board_links_[link].peer, all.sent, all.received);
    }
  }
}

bool Gateway::is_ask_due(std::uint64_t now) const {
  const std::uint64_t since_ns = now - asked_ns_;
  const std::uint64_t half = std::min(options_.node.deadline_ns / 2, kMaxAskNs);
  if (since_ns > std::max(half, kQuietNs)) return true;
  return since_ns > kQuietNs && now - moved_ns_ > kQuietNs;
}

}  // namespace espalier::gateway
