// What a channel writes into the record of its process while a call waits, and what it then says.

#include <time.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <string>

#include "base/clock.h"
#include "base/one_line.h"
#include "bootstrap/first_word.h"
#include "communicator/begin_record.h"
#include "communicator/channel.h"
#include "communicator/record/call_word.h"
#include "communicator/record/diagnosis.h"
#include "communicator/record/folder.h"
#include "communicator/record/view.h"

namespace espalier::communicator {
namespace {

// A call that waits is looked at after the first time, and then twice a second.
constexpr std::uint64_t kFirstLookNs = 200'000'000, kLookNs = 500'000'000;
// Bytes are counted seldom, because the thread then is in the channel.
constexpr std::uint32_t kBeatsPerCount = 10;
// At most one line in so long.
constexpr std::uint64_t kLinePauseNs = 60'000'000'000;

std::atomic<std::uint64_t> last_line_ns = 0;  // of this process

constexpr std::uint32_t kCallPatience = 5;  // s
// After so long, the line comes without a suspect, too.
constexpr std::uint64_t kSuspectsNs = 3'000'000'000;

std::uint64_t patience_ns() {
  static const std::uint64_t given = std::uint64_t{bootstrap::patience(kCallPatience).value_or(0)} *
                                     1'000'000'000;  // join() refused a wrong value
  return given;
}

std::string time_text(std::uint64_t ago_ns) {
  const std::time_t at = std::time(nullptr) - static_cast<std::time_t>(ago_ns / 1'000'000'000);
  std::tm parts{};
  char text[16] = "";
  if (localtime_r(&at, &parts) != nullptr) (void)strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

}  // namespace

void Channel::record_operation(Operation& operation) {
  const Program& program = operation.planned->program;
  operation.algorithm = recorder_.position_of(operation.planned->algorithm);
  operation.traffic =
      recorder_.traffic_of(program, counts_of(operation), element_bytes(operation.call.op));
}

void Channel::note_wait(const StallReport& report) {
  recorder_.note_wait({.call = 0,
                       .call_since_ns = wait_from_ns_,
                       .since_ns = report.waiting ? report.since_ns : 0,
                       .noted_ns = monotonic_ns(),
                       .step = report.step == INT64_MAX ? -1 : report.step,
                       .steps = first_->traffic->steps,
                       .peer = report.peer,
                       .peer_in_job = 0,
                       .is_sending = report.sending ? 1U : 0U,
                       .is_for_peer = report.waiting ? 1U : 0U});
}

void Channel::record_failure() {
  if (first_ != nullptr && first_->is_running()) {
    note_wait(machine_.stall_report());
  }
  try {
    recorder_.note_failure(machine_.cause(), first_ == nullptr ? "" : failure_text(*first_));
  } catch (const std::bad_alloc&) {  // the record then lacks the failure
  }
}

// The clock is not read here: the machine knows when something moved last.
std::uint64_t Channel::next_look() {
  if (look_due_ns_ == 0) {
    wait_from_ns_ = machine_.moved_at();
    look_due_ns_ = wait_from_ns_ + kFirstLookNs;
  }
  return look_due_ns_;
}

void Channel::look() {
  const std::uint64_t now = monotonic_ns();
  if (now < look_due_ns_) return;
  if (first_ == nullptr) {  // the communicator ends without a call
    look_due_ns_ = now + kLookNs;
    return;
  }
  if (look_due_ns_ == wait_from_ns_ + kFirstLookNs && now > look_due_ns_ + kFirstLookNs) {
    // The last move was long before this call.
    wait_from_ns_ = now;
    look_due_ns_ = now + kFirstLookNs + 1;  // only once, however late the next look is
    return;
  }
  look_due_ns_ = now + kLookNs;
  const std::uint64_t patience = patience_ns();
  const std::uint64_t line_at = wait_from_ns_ + patience;
  if (patience != 0 && now < line_at) look_due_ns_ = std::min(look_due_ns_, line_at);
  const StallReport report = machine_.stall_report();
  note_wait(report);
  recorder_.count_bytes();
  if (patience == 0 || now < line_at) return;
  try {
    say_wait(report, now);
  } catch (const std::bad_alloc&) {  // then no line
  }
}

// Only the lowest of the ranks of this host that wait in this communicator says it.
void Channel::say_wait(const StallReport& report, std::uint64_t now) {
  std::uint64_t last = last_line_ns.load(std::memory_order_relaxed);
  if (last != 0 && now - last < kLinePauseNs) return;
  const std::uint64_t waited_ns = now - wait_from_ns_;
  std::string suspect;
  if (recorder_.writer() != nullptr && recorder_.id() != 0) {
    const record::JobView job =
        record::read_job(recorder_.writer()->folder(), recorder_.writer()->job());
    if (record::has_lower_waiter(job, recorder_.id(), rank_)) return;
    const record::Diagnosis found = record::diagnose(job);
    // Suspects come from waits of 1 s, which are known a little later.
    if (found.suspects.empty() && waited_ns < kSuspectsNs) return;
    if (!found.suspects.empty()) {
      suspect = std::string(recorder_.is_renumbered() ? ": in the job, " : ": ") +
                one_line(found.suspects.front().text);
    }
  }
  if (!last_line_ns.compare_exchange_strong(last, now)) return;
  std::string text = "espalier: rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                     recorder_.job_text(rank_) + " has waited " +
                     std::to_string(waited_ns / 1'000'000'000) + " s, since " +
                     time_text(waited_ns) + ", in " + record::short_text(first_->word) +
                     " (communicator " + std::to_string(recorder_.number()) + ", call " +
                     std::to_string(recorder_.call()) + ")";
  if (report.waiting) {
    text += std::string(report.sending ? " to send to rank " : " to receive from rank ") +
            std::to_string(report.peer) + recorder_.job_text(report.peer) + " in step " +
            std::to_string(report.step) + " of " + std::to_string(first_->traffic->steps);
  }
  std::fprintf(stderr, "%s%s\n", text.c_str(), suspect.c_str());
}

void Channel::beat(std::uint64_t now_ns) {
  const std::uint32_t uses = uses_.load(std::memory_order_relaxed);
  const bool is_inside = user_.load(std::memory_order_relaxed) == kProgram && uses == beat_uses_;
  beat_uses_ = uses;
  recorder_.beat(now_ns, is_inside);
  if (++beats_ % kBeatsPerCount != 0) return;
  User user = kNobody;
  if (!user_.compare_exchange_strong(user, kProgress, std::memory_order_acquire)) return;
  recorder_.count_bytes();
  user_.store(kNobody, std::memory_order_release);
  user_.notify_one();
}

}  // namespace espalier::communicator
