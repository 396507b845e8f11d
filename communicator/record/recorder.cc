// A channel's part of the record.

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/one_line.h"
#include "communicator/record/fields.h"
#include "communicator/record/writer.h"

namespace espalier::record {

constinit Part Recorder::kNowhere = {};

void Recorder::open(std::shared_ptr<Writer> writer, std::uint32_t rank,
                    std::vector<std::uint32_t> ranks, std::uint32_t generation) {
  if (writer == nullptr || ranks.size() < 2) return;
  writer_ = std::move(writer);
  ranks_ = std::move(ranks);
  generation_ = generation;
  Part* const part = writer_->add(rank, ranks_, generation);
  if (part == nullptr) return;
  part_ = part;
  id_ = part_->details.id;
  number_ = part_->details.number;
}

void Recorder::close() {
  if (is_open()) {
    count_bytes();
    const std::lock_guard lock(writer_->mutex_);
    const Writer::Change change(part_->sequence);
    part_->details.has_left = 1;
    if (part_->details.failure.status == 0) part_->details.id = 0;
  }
  if (writer_ != nullptr) writer_->remove(generation_);
  part_ = &kNowhere;
  writer_ = nullptr;  // a plan may keep its channel after the job's end
}

std::uint8_t Recorder::position_of(const std::string& algorithm) {
  constexpr auto kNone = static_cast<std::uint8_t>(kAlgorithmBits);
  if (!is_open()) return kNone;
  const std::lock_guard lock(writer_->mutex_);
  for (std::uint8_t i = 0; i < kAlgorithms; ++i) {
    auto& name = part_->details.algorithms[i];
    if (name[0] == 0) {
      const Writer::Change change(part_->sequence);
      put_text(name, algorithm);
      return i;
    }
    if (algorithm.compare(0, sizeof name - 1, name) == 0) return i;
  }
  return kNone;
}

bool Recorder::is_renumbered() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank] != rank) return true;
  }
  return false;
}

std::string Recorder::job_text(std::uint32_t rank) const {
  return is_renumbered() ? " (rank " + std::to_string(in_job(rank)) + " of the job)" : "";
}

void Recorder::note_wait(Wait wait) {
  if (!is_open()) return;
  wait.call = call();
  wait.peer_in_job = in_job(wait.peer);
  if (wait.is_for_peer != 0) writer_->look_at(wait.peer_in_job, wait.noted_ns);
  const std::lock_guard lock(writer_->mutex_);
  const Writer::Change change(part_->sequence);
  part_->details.wait = wait;
}

void Recorder::note_failure(const Cause& cause, const std::string& text) {
  if (!is_open() || part_->details.failure.status != 0) return;
  if (cause.status == Status::kDeadLink) {
    const std::uint64_t now = monotonic_ns();
    for (const std::uint32_t end : {cause.peer, cause.detector}) {
      if (end != part_->details.rank) writer_->look_at(in_job(end), now);
    }
  }
  {
    const std::lock_guard lock(writer_->mutex_);
    const Writer::Change change(part_->sequence);
    Failure& failure = part_->details.failure;
    const std::uint64_t begun = call();
    failure.call = part_->done.load(std::memory_order_relaxed) == begun ? 0 : begun;
    failure.at_ns = monotonic_ns();
    failure.at_wall = wall_ns();
    failure.status = static_cast<std::uint32_t>(cause.status);
    failure.detector = cause.detector;
    failure.peer = cause.peer;
    failure.detector_in_job = in_job(cause.detector);
    failure.peer_in_job = in_job(cause.peer);
    put_text(failure.text, one_line(text));
  }
  writer_->fail();
}

void Recorder::note_late_call(std::uint64_t word, const std::string& text) {
  if (!is_open()) return;
  Failure& failure = part_->details.failure;
  if (failure.status == 0 || failure.call != 0) return;
  begin(word, 0);
  const std::lock_guard lock(writer_->mutex_);
  const Writer::Change change(part_->sequence);
  failure.call = call();
  if (failure.text[0] == 0) put_text(failure.text, one_line(text));
}

void Recorder::skip_to(std::uint64_t call, std::uint64_t word, std::uint8_t algorithm) {
  if (!is_open()) return;
  const std::uint64_t done = part_->done.load(std::memory_order_relaxed);
  if (call == done) return;
  if (call > done && part_->begun.load(std::memory_order_relaxed) != done) end();
  std::uint64_t begun = part_->begun.load(std::memory_order_relaxed);
  if (call < begun || call - begun > kCalls) begun = call - std::min<std::uint64_t>(call, kCalls);
  part_->done.store(begun, std::memory_order_relaxed);
  part_->begun.store(begun, std::memory_order_release);
  for (; begun < call; ++begun) {
    begin(word, algorithm);
    end();
  }
}

void Recorder::set_bytes(std::uint32_t rank, std::uint64_t sent, std::uint64_t received) {
  if (!is_open()) return;
  const std::lock_guard lock(writer_->mutex_);
  Peer& row = writer_->row_of(in_job(rank));
  if (&row == &writer_->record_->other_peers) return;  // a board has fewer links than rows
  row.sent.store(sent, std::memory_order_relaxed);
  row.received.store(received, std::memory_order_relaxed);
}

void Recorder::beat(std::uint64_t now_ns, bool is_inside) {
  if (!is_open()) return;
  part_->clock_ns.store(now_ns & ~kAlgorithmBits, std::memory_order_relaxed);
  const std::uint64_t begun = part_->begun.load(std::memory_order_relaxed);
  const std::uint64_t done = part_->done.load(std::memory_order_relaxed);
  if (begun != seen_begun_ || done != seen_done_) {
    part_->changed_ns.store(now_ns, std::memory_order_relaxed);
    seen_begun_ = begun;
    seen_done_ = done;
  }
  const bool was_inside = part_->inside_ns.load(std::memory_order_relaxed) != 0;
  if (is_inside != was_inside) {
    part_->inside_ns.store(is_inside ? now_ns : 0, std::memory_order_relaxed);
  }
}

}  // namespace espalier::record
