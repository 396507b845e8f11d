#include "firmware/node/node_record.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/try.h"
#include "communicator/record/call_word.h"
#include "communicator/record/diagnosis.h"
#include "espalier/base/status.h"

namespace espalier::node {
namespace {

// A wait is noted after the first time, and then twice a second.
constexpr std::uint64_t kFirstNoteNs = 200'000'000, kNoteNs = 500'000'000;
constexpr std::uint32_t kBeatsPerCount = 10;

std::string failure_text(std::uint64_t word, const Cause& cause) {
  const std::string what = word == 0 ? "a collective" : record::short_text(word);
  std::string text = what + " failed: " + status_name(cause.status);
  const std::string peer = std::to_string(cause.peer);
  if (cause.status == Status::kDeadLink) {
    text +=
        ": node " + std::to_string(cause.detector) + " found its link to node " + peer + " dead";
  } else if (cause.detector != cause.peer) {
    text += ": found by node " + std::to_string(cause.detector) + " on its link to node " + peer;
  } else {
    text += ": of node " + peer;
  }
  return text;
}

}  // namespace

Result<void> NodeRecord::open(const BootOptions& options, std::uint32_t node) {
  if (options.job.name.empty() || node >= options.job.nodes) return {};
  ESPALIER_TRY_TO(writer_,
                  record::Writer::make({.joining = options.job.name,
                                        .rank = node,
                                        .size = options.job.nodes,
                                        .provider = options.provider,
                                        .deadline = std::chrono::nanoseconds(options.deadline_ns),
                                        .schedule_ranks = options.job.ranks}));
  std::vector<std::uint32_t> nodes(options.job.nodes);
  std::iota(nodes.begin(), nodes.end(), 0);
  recorder_.open(writer_, node, std::move(nodes), 0);
  return {};
}

void NodeRecord::name_board(const std::string& board) {
  if (writer_ != nullptr) writer_->name_board(board);
}

void NodeRecord::connected() {
  is_connected_ = true;
  if (writer_ == nullptr) return;
  writer_->connected();
  beat_ns_ = monotonic_ns();
  writer_->beat(beat_ns_);
}

void NodeRecord::ended(const std::string& why) {
  if (writer_ == nullptr) return;
  if (is_connected_) {
    writer_->ended(why);
  } else if (!why.empty()) {
    writer_->join_failed(why);
  }
}

void NodeRecord::begin_run(const RecordedRun& run, std::uint64_t done) {
  count_rest();
  run_ = run;
  traffic_ = nullptr;
  base_ = done;
  completed_ = counted_ = 0;
  const bool is_barrier = run.collective == Collective::kBarrier;
  communicator::WordFields fields{
      .collective = run.collective, .type = run.op.type, .op = run.op.op, .root = run.root};
  if (!is_barrier && run.counts.unequal()) {
    fields.counts = {run.counts.elements, static_cast<std::size_t>(run.counts.entries)};
  } else if (!is_barrier) {
    fields.count = run.counts.count;
  }
  word_ = run.collective == Collective::kNone ? 0 : communicator::call_word(fields);
  algorithm_ = recorder_.position_of(run.algorithm);
  recorder_.skip_to(done, word_, algorithm_);
}

void NodeRecord::reach(std::uint64_t completed, bool is_running) {
  recorder_.skip_to(base_ + completed, word_, algorithm_);
  if (is_running && recorder_.call() == base_ + completed) begin();
}

void NodeRecord::fail(const Cause& cause, const StallReport& stall, std::uint64_t now_ns) {
  if (writer_ == nullptr || cause.status == Status::kOk) return;
  note_wait(stall, now_ns);
  recorder_.note_failure(cause, failure_text(word_, cause));
}

void NodeRecord::look(std::uint64_t now_ns, const Machine* machine, std::uint64_t completed) {
  if (writer_ == nullptr) return;
  if (machine != nullptr) look_at(*machine, now_ns);
  if (!beat(now_ns, now_ns, machine != nullptr)) return;
  if (machine == nullptr) {
    count_rest();
  } else if (beats_ % kBeatsPerCount == 0) {
    count(completed);
  }
}

bool NodeRecord::look_at_board(std::uint64_t now_ns, std::uint64_t sign_ns, bool is_running) {
  return writer_ != nullptr && beat(now_ns, sign_ns, is_running);
}

bool NodeRecord::beat(std::uint64_t now_ns, std::uint64_t sign_ns, bool is_running) {
  if (now_ns - beat_ns_ < kBeatNs) return false;
  beat_ns_ = now_ns;
  ++beats_;
  writer_->beat(sign_ns);
  const std::uint64_t call = is_running ? recorder_.call() : 0;
  recorder_.beat(sign_ns, call != 0 && call == beat_call_);
  beat_call_ = call;
  return true;
}

// A wait begins with the last move, but not before the collective.
void NodeRecord::look_at(const Machine& machine, std::uint64_t now_ns) {
  const std::uint64_t call = recorder_.call();
  if (call != seen_call_) {
    seen_call_ = call;
    seen_ns_ = now_ns;
    wait_from_ns_ = 0;
  }
  if (wait_from_ns_ == 0) {
    const std::uint64_t moved_ns = std::max(machine.moved_at(), seen_ns_);
    if (now_ns < moved_ns + kFirstNoteNs) return;
    wait_from_ns_ = moved_ns;
  } else if (now_ns - note_ns_ < kNoteNs) {
    return;
  }
  note_wait(machine.stall_report(), now_ns);
}

void NodeRecord::note_wait(const StallReport& stall, std::uint64_t now_ns) {
  if (writer_ == nullptr) return;
  const std::uint64_t call = recorder_.call();
  if (call != seen_call_ || wait_from_ns_ == 0) {
    seen_call_ = call;
    seen_ns_ = now_ns;
    wait_from_ns_ = stall.waiting ? stall.since_ns : now_ns;
  }
  note_ns_ = now_ns;
  find_traffic();
  recorder_.note_wait({.call = 0,
                       .call_since_ns = wait_from_ns_,
                       .since_ns = stall.waiting ? stall.since_ns : 0,
                       .noted_ns = now_ns,
                       .step = stall.step == INT64_MAX ? -1 : stall.step,
                       .steps = traffic_ == nullptr ? 0 : traffic_->steps,
                       .peer = stall.peer,
                       .peer_in_job = 0,
                       .is_sending = stall.sending ? 1U : 0U,
                       .is_for_peer = stall.waiting ? 1U : 0U});
}

void NodeRecord::find_traffic() {
  if (traffic_ != nullptr || run_.program == nullptr || run_.program->ranks == 0) return;
  traffic_ = recorder_.traffic_of(*run_.program, run_.counts, element_bytes(run_.op));
}

void NodeRecord::count(std::uint64_t completed) {
  if (writer_ == nullptr || completed <= counted_) return;
  find_traffic();
  if (traffic_ == nullptr) return;
  traffic_->runs += completed - counted_;
  counted_ = completed;
  recorder_.count_bytes();
}

}  // namespace espalier::node
