// A channel's failure: what ends it on all ranks, and the line that says why.

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "communicator/channel.h"
#include "communicator/channel_use.h"
#include "communicator/failure/call_exchange.h"
#include "communicator/no_memory.h"
#include "communicator/record/call_word.h"

namespace espalier::communicator {
namespace {

// How long the ranks of a failed communicator wait for each other's notes (call_exchange.h).
constexpr std::uint64_t kMaxNoteExchangeNs = 5'000'000'000;
// The same for a cancel, of which all ranks know that all take part: they are not awaited in vain.
constexpr std::uint64_t kMinCancelExchangeNs = 1'000'000'000;

const char* verb_of(const StallReport& report) {
  return report.sending ? "send to" : "receive from";
}

// A rank with the word of its call (call_word.h); 0: not known.
struct RankedWord {
  std::uint32_t rank = 0;
  std::uint64_t word = 0;
};

// Whether a rank tells the others by a text why it ended the communicator.
bool has_reason(const Cause& cause) {
  if (cause.status == Status::kBadOperator || cause.status == Status::kCancelled) return true;
  return cause.status == Status::kBackEnd && cause.detector == cause.peer;
}

// Returns the calls of the two ranks of a mismatch and of this rank, as far as they are known.
std::string calls_of(const Cause& cause, const FailureNote& note, const RankedWord& own) {
  const MismatchedCalls calls = note.calls();
  std::vector<RankedWord> known = {{cause.detector, calls.detector}, {cause.peer, calls.peer}};
  if (own.rank != cause.detector && own.rank != cause.peer) known.push_back(own);
  std::string text;
  for (const RankedWord& each : known) {
    if (each.word == 0) continue;
    text += (text.empty() ? ": rank " : "; rank ") + std::to_string(each.rank) + " " +
            call_text(each.word);
  }
  return text;
}

}  // namespace

Result<void> Channel::check_alive() const {
  const Cause failure = cause();
  if (failure.status == Status::kOk) return {};
  if (failure.status == Status::kCancelled) {
    const Use use(*this, Use::Crowd::kWaits);
    return fail("the communicator failed before: " + cancel_text(failure));
  }
  return fail(std::string("the communicator failed before: ") + status_name(failure.status) +
              ", found by rank " + std::to_string(failure.detector));
}

Cause Channel::cause() const {
  if (is_of_parent()) return {};
  const Use use(*this);
  return use.has() ? known_cause() : Cause();
}

// No exception may cross the machine: an operator's ends the collective, on all ranks.
void Channel::combine_guarded(void* into, const void* a, const void* b, std::uint64_t count,
                              void* channel) {
  auto& self = *static_cast<Channel*>(channel);
  const Operator& op = self.first_->call.op;
  try {
    return op.custom(into, a, b, count, op.context);
  } catch (const std::exception& exception) {
    if (!self.has_cause()) take_line(exception.what(), self.reason_);
  } catch (...) {
    if (!self.has_cause()) take_line("", self.reason_);
  }
  self.machine_.stop(Status::kBadOperator);
}

Operator Channel::guarded(const Operator& given) {
  Operator op = given;
  if (op.op != Op::kCustom) return op;
  op.custom = combine_guarded;
  op.context = this;
  return op;
}

// Learns the calls of a mismatch, or the reason of a rank. Allocates nothing. This rank may be
// choosing a schedule, with nothing in progress: the others tell their notes now. The limit is
// short next to the deadline: a peer that takes no part is not waited for.
void Channel::exchange_notes() {
  const Cause& cause = machine_.cause();
  if (cause.status == Status::kMismatch) {
    note_.make_calls(cause, rank_, started_calls_);
  } else if (has_reason(cause)) {
    note_.make_text(cause, rank_, reason_);
  } else {
    return;
  }
  Endpoint& endpoint = fabric_->endpoint();
  std::array<std::uint32_t, kMaxLinks> links;
  std::size_t count = 0;
  for (std::uint32_t link = 0; link < std::min(endpoint.links(), kMaxLinks); ++link) {
    if (is_in_backbone(endpoint.peer(link))) links[count++] = link;
  }
  const auto deadline = static_cast<std::uint64_t>(job_->options().deadline.count());
  const std::uint64_t least = cause.status == Status::kCancelled ? kMinCancelExchangeNs : 0;
  CallComparison::Place place = {
      .endpoint = &endpoint,
      .links = std::span(links).first(count),
      .within_ns = std::min(std::max(deadline / 4, least), kMaxNoteExchangeNs),
      .rank = rank_,
      .ranks = size_,
      .history = &started_calls_};
  exchange_note(endpoint, place.links, note_, place.within_ns);
  if (cause.status != Status::kMismatch) return;
  if (first_ != nullptr && first_->is_running()) {
    place.counts = first_->call.counts;
    place.has_own_counts = first_->has_own_counts;
    place.collective = first_->call.collective;
    place.root = first_->call.root;
  }
  comparison_.learn(place, cause, note_);
}

void Channel::fail_all() {
  record_failure();
  if (first_ != nullptr && first_->is_running()) {
    failed_word_ = first_->word;
    finish(fail(failure_of(*first_)));
  }
  while (first_ != nullptr) finish(fail(late_failure(*first_)));
}

// If there is none even for what the other ranks must be sent, they find the cause themselves.
void Channel::stop_without_memory() {
  const std::uint64_t now = fabric_->endpoint().now();
  if (without_memory_ns_ == 0) {
    without_memory_ns_ = now;
    if (machine_.cause().status == Status::kOk) {
      take_line(memory_error("").message.c_str(), reason_);
      machine_.stop(Status::kBackEnd);
    }
  }
  const auto deadline = static_cast<std::uint64_t>(job_->options().deadline.count());
  if (now - without_memory_ns_ <= deadline / 2) return;
  has_ended_ = true;
  fail_all();
}

Error Channel::end_without_memory() {
  if (!is_of_parent() && is_listed_ && fabric_ != nullptr) {
    const Use use(*this, Use::Crowd::kWaits);
    stop_without_memory();
    while (!has_ended_) {
      progress();
      if (!has_ended_) wait_for_peers();
    }
  }
  return memory_error("rank " + std::to_string(rank_) + ": ");
}

Error Channel::failure_of(const Operation& operation) const {
  try {
    return {failure_text(operation)};
  } catch (const std::bad_alloc&) {
    return memory_error("");
  }
}

Error Channel::late_failure(const Operation& operation) {
  if (failed_word_ == 0) {
    failed_word_ = operation.word;
    try {
      recorder_.note_late_call(operation.word, failure_text(operation));
    } catch (const std::bad_alloc&) {  // the record then lacks the call
    }
  }
  return failure_of(operation);
}

std::string Channel::failure_text(const Operation& operation) const {
  const Cause cause = known_cause();
  const StallReport report = machine_.stall_report();
  std::string text = operation.name() + " failed: ";
  if (cause.status == Status::kCancelled) return text + cancel_text(cause);
  if (cause.status == Status::kBadOperator) {
    const std::string thrown = note_.text();
    return text + "the operator of rank " + std::to_string(cause.detector) + " threw an exception" +
           (thrown.empty() ? "" : ": " + thrown);
  }
  if (const std::string reason = has_reason(cause) ? note_.text() : ""; !reason.empty()) {
    return text + "rank " + std::to_string(cause.detector) + ": " + reason;
  }
  text +=
      std::string(status_name(cause.status)) + ", found by rank " + std::to_string(cause.detector);
  if (cause.peer != cause.detector) text += " on its link to rank " + std::to_string(cause.peer);
  if (cause.status == Status::kMismatch && operation.word != 0) {
    const std::uint64_t own = failed_word_ == 0 ? operation.word : failed_word_;
    return text + calls_of(cause, note_, {rank_, own}) + comparison_.text(cause, note_.calls());
  }
  const std::string lacked = cause.status == Status::kBackEnd ? fabric_->lacked() : "";
  if (!lacked.empty()) return text + "; " + lacked;
  if (!report.waiting) return text;
  const std::uint64_t now = fabric_->endpoint().now();
  const std::uint64_t waited_ms = now < report.since_ns ? 0 : (now - report.since_ns) / 1'000'000;
  return text + "; rank " + std::to_string(rank_) + " waited in step " +
         std::to_string(report.step) + " to " + verb_of(report) + " rank " +
         std::to_string(report.peer) + ", for " + std::to_string(waited_ms) + " ms";
}

}  // namespace espalier::communicator
