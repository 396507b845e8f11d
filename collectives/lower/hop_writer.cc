#include "collectives/lower/hop_writer.h"

#include <span>
#include <vector>

#include "base/digest.h"
#include "collectives/lower/timed.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier::lower {
namespace {

// Adds the hops to the schedule, at the plan's steps.
class Timer {
 public:
  Timer(const HopGraph& hops, const Plan& plan, TimedSchedule& timed)
      : hops_(hops), plan_(plan), timed_(timed) {}

  void add_all() {
    for (std::size_t task = 0; task < hops_.tasks.size(); ++task) {
      const Task& one = hops_.tasks[task];
      const std::int32_t first = hops_.first[task];
      const std::int32_t last = hops_.last_of(static_cast<std::int32_t>(task));
      const TimedOperand into = {one.output ? Buffer::kOutput : Buffer::kScratch, one.segment, -1};
      if (one.kind != ActionKind::kSend) {
        made_.push_back(timed_.add_operation(one.kind, one.to, plan_.steps[as_index(last)],
                                             one.block, into, operand(one.a), operand(one.b)));
        continue;
      }
      std::vector<std::uint32_t> nodes = {one.from};
      for (std::int32_t hop = first; hop <= last; ++hop) {
        nodes.push_back(hops_.all[as_index(hop)].to);
      }
      ESPALIER_ASSERT(nodes.size() >= 2 && nodes.back() == one.to);
      const std::span steps(plan_.steps.data() + first, nodes.size() - 1);
      made_.push_back(timed_.add_message(one.block, nodes, steps, operand(one.a), into));
    }
  }

 private:
  [[nodiscard]] TimedOperand operand(const TaskInput& from) const {
    if (from.segment < 0) return {};
    if (from.task < 0) return {Buffer::kInput, from.segment, -1};
    ESPALIER_ASSERT(as_index(from.task) < made_.size());
    return made_[as_index(from.task)];
  }

  const HopGraph& hops_;
  const Plan& plan_;
  TimedSchedule& timed_;
  std::vector<TimedOperand> made_;  // by task
};

// Reorders the blocks of a round so that none ends after block 0; any order of the blocks is valid.
void put_latest_first(const Plan& plan, HopGraph& hops) {
  std::int32_t latest = 0;
  for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
    if (plan.steps[hop] == plan.length - 1) latest = hops.tasks[as_index(hops.all[hop].task)].block;
  }
  for (Task& task : hops.tasks) {
    if (task.block == latest) {
      task.block = 0;
    } else if (task.block == 0) {
      task.block = latest;
    }
  }
}

}  // namespace

Result<Programs> write_hops(const topology::Topology& topology,
                            const CollectiveParameters& parameters, const Outline& outline,
                            const Count& bound, std::uint64_t digest, const Plan& plan,
                            HopGraph& hops, bool share_entries) {
  put_latest_first(plan, hops);
  TimedSchedule timed(topology.nodes());
  timed.outline = outline;
  timed.period = plan.period;
  timed.blocks = hops.blocks;
  timed.bound = bound;
  timed.digest = digest;
  timed.share_entries = share_entries;
  for (const std::int32_t step : plan.steps) {
    timed.digest = digest_u64(timed.digest, static_cast<std::uint64_t>(step));
  }
  Timer(hops, plan, timed).add_all();
  return write_programs(parameters, timed);
}

}  // namespace espalier::lower
