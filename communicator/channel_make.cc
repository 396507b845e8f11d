// From a call to an operation of a channel: its schedule, the links that it needs, and its memory.

#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <utility>

#include "base/process/forks.h"
#include "base/try.h"
#include "collectives/schedule/selection.h"
#include "communicator/call_check.h"
#include "communicator/channel.h"
#include "communicator/channel_use.h"
#include "communicator/record/call_word.h"

namespace espalier::communicator {
namespace {

// How often a thread that awaits a plan replies to other ranks.
constexpr std::chrono::milliseconds kPlanningPause(2);

}  // namespace

// A barrier that does not match one of the program: ranks compare the operators' numbers, and the
// operator of a program's barriers has none.
Result<std::shared_ptr<Operation>> Channel::make_leaving() {
  auto barrier = make(call::barrier());
  if (!barrier) return barrier;
  (*barrier)->word = kLeavingWord;
  (*barrier)->caller = Caller::kLeave;
  (*barrier)->call.op.custom_id = kLeavingWord;
  return barrier;
}

// Choosing and proving may take longer than the deadline of ranks that have done so. Meanwhile this
// thread replies to them. It does not wait for a schedule that no call will use.
Result<const PlannedProgram*> Channel::obtain(const ScheduleRequest& request) {
  if (const PlannedProgram* const found = schedules_->find(request)) return found;
  std::future<Result<const PlannedProgram*>> planned;
  try {
    planned = std::async(std::launch::async,
                         [schedules = schedules_, request] { return schedules->obtain(request); });
  } catch (const std::system_error&) {
    // There is no thread more: this one chooses, and replies afterwards.
    return schedules_->obtain(request);
  }
  while (planned.wait_for(kPlanningPause) != std::future_status::ready) {
    progress();
    (void)job_->progress_others(this);
    if (has_ended_) {
      unused_plan_ = std::move(planned);
      return fail("the communicator failed");
    }
  }
  return planned.get();
}

// Obtains the plan, and adds its links.
Result<const PlannedProgram*> Channel::plan_of(const ScheduleRequest& request) {
  auto planned = obtain(request);
  if (!planned) return planned;
  ESPALIER_TRY(add_links((*planned)->program));
  return planned;
}

Result<std::shared_ptr<Operation>> Channel::make(const Call& call, bool own_counts) {
  ESPALIER_TRY(check_process());
  ESPALIER_TRY(check_arguments(call, size_));
  const CallExtents extents{extent_of(call, Buffer::kInput), extent_of(call, Buffer::kOutput)};
  ESPALIER_TRY(check_memory(call, extents, {rank_, size_}));
  auto operation = make_of_process<Operation>();
  operation->channel = shared_from_this();
  operation->call = call;
  operation->has_own_counts = own_counts;
  operation->caller = caller_.load(std::memory_order_relaxed);
  operation->word = call_word({.collective = call.collective,
                               .type = call.op.type,
                               .op = call.op.op,
                               .root = call.root,
                               .count = call.count,
                               .counts = call.counts,
                               .own_counts = own_counts,
                               .caller = operation->caller});
  operation->operands = std::uint64_t{call.op.custom_id} << 32 | element_bytes(call.op);
  if (size_ == 1) return operation;
  ScheduleRequest request;
  request.collective = call.collective;
  request.root = call.root;
  if (call.collective == Collective::kAllToAll && !call.counts.empty() && !own_counts &&
      !schedules_->is_direct()) {
    operation->padded = std::make_unique<PaddedParts>(operation->call, Place{rank_, size_});
  }
  request.unequal_counts = !call.counts.empty() && operation->padded == nullptr;
  request.own_counts = own_counts;
  request.commutes = commutes(call.op);
  const ElementCounts counts(largest_count(call));
  // Equal on all ranks.
  request.bytes = own_counts ? 0 : started_bytes(counts, element_bytes(call.op));
  const Use use(*this);
  if (!use.has()) return fail(crowded());
  // No link can be added any more.
  if (has_ended_) return fail(late_failure(*operation));
  auto planned = plan_of(request);
  if (has_ended_) return fail(late_failure(*operation));
  const std::string name = operation->name();
  if (!planned) return fail(name + ": " + planned.error().message);
  operation->planned = *planned;
  if (auto found = find_memory(*operation, {rank_, size_}); !found)
    return fail(name + ": " + found.error().message);
  record_operation(*operation);
  return operation;
}

Result<std::shared_ptr<Operation>> Channel::plan(const Call& call) {
  auto made = make(call);
  if (!made || (*made)->planned == nullptr) return made;
  Operation& operation = **made;
  operation.own_scratch.resize(scratch_words(operation));
  operation.prepared = std::make_unique<Machine::Prepared>();
  const Buffers& buffers = operation.buffers;
  // The fabric only reads the input.
  for (const Region region : {Region{const_cast<void*>(buffers.input), operation.input_bytes},
                              Region{buffers.output, operation.output_bytes},
                              Region{provide_scratch(operation), operation.scratch_bytes}}) {
    if (region.bytes != nullptr && region.size != 0) operation.kept.push_back(region);
  }
  const Use use(*this, Use::Crowd::kWaits);
  if (auto kept = fabric_->keep(operation.kept); !kept) {
    operation.kept.clear();
    return fail(operation.name() + ": " + kept.error().message);
  }
  return made;
}

void Channel::forget(const Operation& operation) {
  const Use use(*this, Use::Crowd::kWaits);
  if (fabric_ != nullptr) fabric_->forget(operation.kept);
}

}  // namespace espalier::communicator
