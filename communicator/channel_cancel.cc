// How a channel ends early: by Communicator::cancel(), or a failure whose ranks all live. The
// machine tells all ranks the cause and ends as soon as all of them know it
// (FailureDetector::take_informed); the reason follows as a note.

#include <string>
#include <utility>

#include "communicator/channel.h"
#include "communicator/channel_use.h"

namespace espalier::communicator {

Result<void> Channel::cancel(std::string_view reason) {
  if (is_of_parent()) return check_process();
  early_end_.request(reason);
  if (size_ == 1) {
    const Use use(*this, Use::Crowd::kWaits);
    end_early();
    return {};
  }
  hurry();
  const std::lock_guard lock(wake_mutex_);
  if (fabric_ != nullptr) fabric_->wake();
  return {};
}

Result<void> Channel::cancel_on(const std::atomic<std::sig_atomic_t>* flag,
                                std::string_view reason) {
  if (is_of_parent()) return check_process();
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  early_end_.watch(flag, reason);
  return {};
}

// For the thread that uses the channel.
void Channel::end_early() {
  FailureNote::Text reason;
  if (!has_ended_ && early_end_.take(reason)) {
    if (size_ == 1) {
      alone_cause_ = {Status::kCancelled, rank_, rank_};
      note_.make_text(alone_cause_, rank_, reason);
      has_ended_ = true;
    } else if (machine_.cause().status == Status::kOk && fabric_ != nullptr) {
      reason_ = reason;
      machine_.stop(Status::kCancelled);
    }
  }
  if (has_ended_) {
    early_end_.has_ended();
    rest();
  } else if (early_end_.is_ending() && fabric_ != nullptr && job_ != nullptr) {
    // A part that has run no collective has no links to pass the cause on. If one cannot be added,
    // the others remain.
    (void)add_backbone();
  }
}

// The machine knows a cause, of this rank or of another one. A rank that is dead, or cannot be
// reached, will not say that it knows the cause: no thread looks for that more often.
void Channel::note_failure() {
  if (machine_.cause().status == Status::kDeadLink) return;
  early_end_.begin();
  hurry();
}

void Channel::hurry() {
  if (is_hurrying_.exchange(true, std::memory_order_relaxed)) return;
  const std::lock_guard lock(wake_mutex_);
  if (fabric_ != nullptr) job_->count_ending(1);
}

void Channel::rest() {
  if (!is_hurrying_.exchange(false, std::memory_order_relaxed)) return;
  const std::lock_guard lock(wake_mutex_);
  if (fabric_ != nullptr) job_->count_ending(-1);
}

// A rank that closed its endpoint earlier would keep the others waiting for a quarter of the
// deadline.
void Channel::await_early_end() {
  const Use use(*this, Use::Crowd::kWaits);
  while (early_end_.is_ending() && !has_ended_ && fabric_ != nullptr) {
    progress();
    if (!has_ended_) wait_for_peers();
  }
  job_->note_waiting(0);
}

// The machine ends once all ranks know the cause. So a rank that hears from the job's server that
// accept() has ended for this reason has the cause, too. A call of another thread makes progress
// itself.
std::string Channel::end_of_accept() {
  const Use use(*this);
  if (!use.has()) return "";
  progress();
  const Cause cause = known_cause();
  return has_ended_ && cause.status == Status::kCancelled ? cancel_text(cause) : "";
}

void Channel::decline_accept() {
  if (has_declined_) return;
  const std::string reason = end_of_accept();
  if (reason.empty()) return;
  has_declined_ = true;
  (void)job_->members().complete({}, reason);
}

bool Channel::has_ended() const {
  const Use use(*this, Use::Crowd::kWaits);
  return has_ended_;
}

Cause Channel::known_cause() const { return size_ == 1 ? alone_cause_ : machine_.cause(); }

std::string Channel::cancel_text(const Cause& cause) const {
  const std::string reason = note_.text();
  return "cancelled by rank " + std::to_string(cause.detector) +
         (reason.empty() ? "" : ": " + reason);
}

}  // namespace espalier::communicator
