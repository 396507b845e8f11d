#include "communicator/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/process/forks.h"
#include "base/try.h"
#include "communicator/call_check.h"
#include "communicator/channel_use.h"
#include "communicator/no_memory.h"

namespace espalier::communicator {

namespace {

Error ended() {
  try {
    return {"the communicator has left; expected this call before leave()"};
  } catch (const std::bad_alloc&) {
    return memory_error("");
  }
}

}  // namespace

Channel::~Channel() { close(); }

void Channel::close() {
  if (is_of_parent()) return;
  std::shared_ptr<Job> job;  // may end last, when no thread is in the channel
  const Use use(*this, Use::Crowd::kWaits);
  while (first_ != nullptr) finish(fail(ended()));
  if (std::exchange(is_listed_, false)) job_->remove(*this);
  rest();
  std::unique_ptr<ofi::AddedLinks> fabric;
  {
    const std::lock_guard lock(wake_mutex_);
    fabric = std::move(fabric_);
  }
  fabric = nullptr;
  recorder_.close();
  job = std::move(job_);
}

Result<void> Channel::leave_whole() {
  if (is_of_parent()) return check_process();
  if (size_ == 1 || !is_listed_) {
    job_->end_whole(true);
    job_->end_earlier_wholes(true);
    return check_alive();
  }
  await_early_end();
  if (members_.generation >= job_->growth()) decline_accept();
  while (true) {
    Operation* waiting = nullptr;
    {
      const Use use(*this, Use::Crowd::kWaits);
      waiting = last_;
      // Once a rank is in the barrier below, no other one may fail there: they would part.
      if (waiting == nullptr) early_end_.refuse();
    }
    if (waiting == nullptr) break;
    end(*waiting);
  }
  const bool waits = cause().status == Status::kOk;
  job_->end_whole(waits);
  // The job has newcomers, which are not waited for.
  if (members_.generation < job_->growth()) {
    auto left = leave_part();
    // This one may have been the last that held the job: not the job's thread, which ends with it.
    if (!is_kept_) job_->end_earlier_wholes(true);
    return left;
  }
  // Only what the barrier itself sends may be lost when another rank closes its endpoint first.
  auto left = guard([this]() -> Result<void> {
    ESPALIER_TRY(check_alive());
    ESPALIER_TRY_TO(auto barrier, make_leaving());
    ESPALIER_TRY(start(*barrier));
    ESPALIER_TRY(wait(*barrier));
    return job_->members().fence();
  });
  job_->end_earlier_wholes(waits && left.has_value());
  return left;
}

Result<void> Channel::leave_part() {
  if (is_of_parent()) return check_process();
  if (size_ == 1 || !is_listed_) return check_alive();
  return guard([this]() -> Result<void> {
    const auto alive = check_alive();
    // A part that is just being cancelled tells the other ranks before its endpoint is closed.
    if (has_ended()) return alive;
    ESPALIER_TRY_TO(auto barrier, make_leaving());
    {
      const Use use(*this, Use::Crowd::kWaits);
      end_early();
      early_end_.refuse();
      leaving_ = std::move(barrier);
      leaving_->channel = nullptr;  // which would keep itself alive
      is_leaving_ = true;
      (void)enqueue(*leaving_);
    }
    is_kept_ = true;
    job_->keep_until_left(shared_from_this());
    return alive;
  });
}

Result<void> Channel::check_process() const {
  if (!is_of_parent()) return {};
  return fail("this process was forked from rank " + std::to_string(rank_) +
              " and has no rank of its own; expected the call in the process that joined");
}

Result<void> Channel::check_unused() const {
  if (is_of_parent()) return {};
  const Use use(*this);
  return use.has() ? Result<void>() : fail(crowded());
}

Result<void> Channel::run(const Call& call) {
  if (is_of_parent()) return check_process();
  // Not those of split(), whose memory goes, and whose words are others.
  const bool keeps = caller_.load(std::memory_order_relaxed) == Caller::kProgram || is_measuring_;
  if (keeps) {
    const Use use(*this);
    if (!use.has()) return fail(crowded());
    const auto recent = std::find_if(
        recent_operations_.begin(), recent_operations_.end(),
        [&](const auto& each) { return each != nullptr && are_alike(each->call, call); });
    if (recent != recent_operations_.end()) return start_and_wait(**recent);
  }
  ESPALIER_TRY_TO(const std::shared_ptr<Operation> operation, make(call));
  operation->channel = nullptr;  // which would keep itself alive
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  // Those with much memory of their own are not kept.
  if (keeps && call.counts.empty() && operation->input_copy.empty()) {
    recent_operations_[next_recent_operation_++ % recent_operations_.size()] = operation;
  }
  return start_and_wait(*operation);
}

Result<void> Channel::start_and_wait(Operation& operation) {
  ESPALIER_TRY(enqueue(operation));
  return finish_waiting(operation);
}

void* Channel::provide_scratch(Operation& operation) {
  Scratch& words = operation.own_scratch.empty() ? scratch_ : operation.own_scratch;
  if (words.size() < scratch_words(operation)) words.resize(scratch_words(operation));
  const auto address = reinterpret_cast<std::uintptr_t>(words.data());
  return reinterpret_cast<void*>((address + 15) / 16 * 16);
}

Result<void> Channel::start(Operation& operation) {
  if (is_of_parent()) return check_process();
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  if (job_ == nullptr || is_leaving_) return fail(ended());
  auto started = enqueue(operation);
  if (operation.state != Operation::State::kComplete) job_->call_progress_thread();
  return started;
}

Result<void> Channel::enqueue(Operation& operation) {
  if (operation.state >= Operation::State::kQueued) {
    return fail(operation.name() + ": the last start is not complete; expected wait() first");
  }
  operation.result = {};
  if (operation.planned == nullptr) {
    if (early_end_.is_pending()) end_early();
    if (has_ended_) return fail(failure_of(operation));
    copy_alone(operation.call);
    operation.state = Operation::State::kComplete;
    return {};
  }
  operation.next = nullptr;
  operation.state = Operation::State::kQueued;
  (last_ == nullptr ? first_ : last_->next) = &operation;
  last_ = &operation;
  // No thread waits for a barrier that ends a communicator.
  if (!is_leaving_ && !is_active_.load(std::memory_order_relaxed)) set_active(true);
  progress();
  if (operation.state != Operation::State::kComplete) return {};
  return operation.result;
}

// A job of one rank has nothing to communicate.
void Channel::copy_alone(const Call& call) const {
  const std::uint64_t elements = elements_of(extent_of(call, Buffer::kOutput), call, {}, false);
  const std::uint64_t bytes = elements * element_bytes(call.op);
  if (bytes != 0 && call.receive != call.send) std::memmove(call.receive, call.send, bytes);
}

void Channel::copy_input(Operation& operation) {
  if (operation.padded == nullptr) {
    std::memcpy(operation.input_copy.data(), operation.copied_from, operation.input_copy.size());
    return;
  }
  operation.padded->pack();
  operation.state = Operation::State::kPadded;
}

void Channel::begin(Operation& operation) {
  if (has_ended_) return finish(fail(late_failure(operation)));
  operation.state = Operation::State::kRunning;
  if (operation.copied_from != nullptr) copy_input(operation);
  started_calls_.add(operation.word, {operation.operands, &operation.planned->algorithm,
                                      &operation.planned->program});
  recorder_.begin(operation.word, operation.algorithm);
  const Status status = begin_machine(operation);
  // A machine that has failed ends in its next polls, once all ranks know the cause.
  if (status == Status::kOk || machine_.cause().status != Status::kOk) return;
  started_calls_.remove();
  recorder_.drop();
  finish(fail(operation.name() + ": " + status_name(status)));
}

Status Channel::begin_machine(Operation& operation) {
  void* const scratch = provide_scratch(operation);
  if (operation.is_prepared && operation.buffers.scratch == scratch) {
    return machine_.start(*operation.prepared);
  }
  operation.buffers.scratch = scratch;
  operation.buffers.scratch_bytes = operation.scratch_bytes;
  const Operator op = guarded(operation.call.op);
  const ElementCounts counts = counts_of(operation);
  const Program& program = operation.planned->program;
  const bool has_started = std::exchange(operation.has_started, true);
  if (has_started && operation.prepared == nullptr) {
    operation.prepared = std::make_unique<Machine::Prepared>();
  }
  if (operation.prepared == nullptr) {
    return machine_.start(program, operation.buffers, op, counts);
  }
  const Status status =
      machine_.prepare(program, operation.buffers, op, counts, *operation.prepared);
  operation.is_prepared = status == Status::kOk;
  return operation.is_prepared ? machine_.start(*operation.prepared) : status;
}

void Channel::finish(Result<void> result) {
  Operation& done = *first_;
  first_ = done.next;
  if (first_ == nullptr) last_ = nullptr;
  done.result = std::move(result);
  done.state = Operation::State::kComplete;
  recorder_.end();
  if (first_ == nullptr && is_active_.load(std::memory_order_relaxed)) set_active(false);
}

void Channel::set_active(bool is_active) {
  is_active_.store(is_active, std::memory_order_relaxed);
  job_->count_active(is_active ? 1 : -1);
}

void Channel::progress() {
  try {
    return progress_or_throw();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  stop_without_memory();
}

void Channel::progress_or_throw() {
  if (early_end_.is_pending()) end_early();
  if (fabric_ == nullptr) return;
  if (!connecting_.empty()) {
    const auto connected = fabric_->connect_links(connecting_);
    if (!connected || *connected) connecting_.clear();
  }
  if (first_ != nullptr && first_->state == Operation::State::kQueued) begin(*first_);
  const Status status = machine_.poll();
  if (status == Status::kBusy) return;
  if (status != Status::kOk) {
    has_ended_ = true;
    fail_all();
    return;
  }
  if (first_ == nullptr) return;
  if (first_->state != Operation::State::kRunning) {
    if (!first_->is_running()) return;
    first_->padded->unpack();
  }
  ++first_->traffic->runs;
  finish({});
  if (first_ != nullptr) begin(*first_);
}

bool Channel::try_progress() {
  User user = kNobody;
  if (user_.compare_exchange_strong(user, kProgress, std::memory_order_acquire)) {
    progress();
    has_left_.store(is_leaving_ && first_ == nullptr, std::memory_order_relaxed);
    user_.store(kNobody, std::memory_order_release);
    user_.notify_one();
  }
  return is_active();
}

Result<bool> Channel::test(Operation& operation) {
  if (is_of_parent()) return fail(check_process().error());
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  if (operation.state == Operation::State::kIdle) return true;
  if (operation.state != Operation::State::kComplete) progress();
  if (operation.state != Operation::State::kComplete) {
    (void)job_->progress_others(this);
    return false;
  }
  if (!operation.result) return fail(operation.result.error());
  return true;
}

Result<void> Channel::wait(Operation& operation) {
  if (is_of_parent()) return check_process();
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  return finish_waiting(operation);
}

void Channel::end(Operation& operation) {
  if (is_of_parent()) return;
  const Use use(*this, Use::Crowd::kWaits);
  await_completion(operation);
}

Result<void> Channel::finish_waiting(Operation& operation) {
  if (operation.state == Operation::State::kIdle) return {};
  await_completion(operation);
  return operation.result;
}

void Channel::await_completion(Operation& operation) {
  if (operation.state == Operation::State::kIdle) return;
  while (operation.state != Operation::State::kComplete) {
    progress();
    if (operation.state != Operation::State::kComplete) wait_for_peers();
  }
  look_due_ns_ = 0;
  if (job_ != nullptr) job_->note_waiting(0);  // null: complete since leave()
}

void Channel::wait_for_peers() {
  job_->note_waiting(machine_.moved_at());
  const bool others_busy = job_->progress_others(this);
  Endpoint& endpoint = fabric_->endpoint();
  const std::uint64_t look_at = next_look();
  std::uint64_t until = std::min(machine_.next_deadline(), look_at);
  if (others_busy) until = std::min(until, endpoint.now() + kBusyWaitNs);
  if (early_end_.is_watching()) until = std::min(until, endpoint.now() + kFlagPauseNs);
  try {
    endpoint.wait(until);
  } catch (const std::bad_alloc&) {
    stop_without_memory();
  }
  if (until == look_at || ++waits_ % kWaitsPerLook == 0) look();
}

}  // namespace espalier::communicator
