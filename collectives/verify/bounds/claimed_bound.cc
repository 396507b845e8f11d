// The lower bound that a schedule claims, compared with the known bounds (lower_bounds.cc): for one
// N, for every N, and the greatest bound that can be claimed.

#include "collectives/verify/bounds/claimed_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/counted.h"
#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/bounds/wide.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {

Finding check_bound(const ExpandedSchedule& schedule, std::int64_t steps) {
  const Program& common = *schedule.common;
  const std::int64_t bound = count_value(common.counts[common.bound_ref], schedule.blocks);
  std::int64_t known = 0;
  std::string reason;
  for (const LowerBound& lower_bound : schedule.bounds) {
    if (lower_bound.steps(schedule.blocks) < known) continue;
    known = lower_bound.steps(schedule.blocks);
    reason = lower_bound.reason;
  }
  if (bound <= known && bound <= steps) return std::nullopt;
  return found(Property::kSteps, schedule, -1, nullptr,
               "a lower bound of " + counted(bound, "step") + " is claimed; bounds prove " +
                   std::to_string(known) + " (" + reason + "), and the schedule takes " +
                   std::to_string(steps));
}

Finding check_known_bounds(const ExpandedSchedule& schedule, std::int64_t steps) {
  for (const LowerBound& lower_bound : schedule.bounds) {
    if (lower_bound.steps(schedule.blocks) <= steps) continue;
    return found(Property::kSteps, schedule, -1, nullptr,
                 "valid in " + counted(steps, "step") + ", but a bound says that none is in " +
                     "less than " + std::to_string(lower_bound.steps(schedule.blocks)) + " (" +
                     lower_bound.reason + "): the verifier is wrong");
  }
  return std::nullopt;
}

namespace {

constexpr std::int64_t kMaxCycle = 4096;  // maximum of N that are examined one by one

// Returns the steps for any N; they grow by a constant every `stride` blocks.
std::int64_t steps_for(const Steps& steps, std::int64_t blocks) {
  const std::int64_t stride = steps.stride;
  const std::int64_t rounds = std::max<std::int64_t>(0, ceil_div(blocks - 3 * stride, stride));
  const auto i = static_cast<std::size_t>(blocks - rounds * stride - 1);
  if (rounds == 0) return steps.first[i];
  return steps.first[i] +
         rounds * (steps.first[i] - steps.first[i - static_cast<std::size_t>(stride)]);
}

// The numbers k >= 0 with start + grows * k > 0: low <= k <= high.
struct Ahead {
  Wide low = 0, high = kMaxBlocks;

  void keep(Wide start, Wide grows) {
    if (grows > 0 && start <= 0) low = std::max(low, -start / grows + 1);
    if (grows < 0) high = std::min(high, start <= 0 ? Wide{-1} : (start - 1) / -grows);
    if (grows == 0 && start <= 0) high = -1;
  }
};

// The claim for N blocks, times `divisor`. With divisor 1 it is the claim itself. With the divisor
// e of its quotient it is the line through its highest points: never below the claim, and less than
// |c| above it.
struct Claim {
  const Count& count;
  std::int64_t divisor;

  [[nodiscard]] Wide at(std::int64_t blocks) const {
    if (divisor == 1) return count_value(count, blocks);
    const std::int64_t up = count.c > 0 ? divisor - 1 : 0;
    return (count.a + Wide{count.b} * blocks) * divisor +
           Wide{count.c} * (Wide{blocks} + count.d + up);
  }
};

// Returns the smallest N for which the claim exceeds all bounds, or exceeds the steps; 0: none. The
// claim is a whole number, so it exceeds them if it is at least 1 more. For N that are `cycle`
// apart, from the stride onward, the claim, the bounds before rounding up, and the steps are lines
// in N. So the claim exceeds each of them on a half line.
std::int64_t first_above(const ExpandedSchedule& schedule, const Steps& steps, const Claim& claim,
                         std::int64_t cycle) {
  std::int64_t least = 0;
  for (std::int64_t blocks = 1; blocks <= 2 * cycle; ++blocks) {
    if (next_blocks(*schedule.common, blocks) != blocks) continue;
    const bool alone = blocks <= cycle;  // they may be below the stride
    const Wide here = claim.at(blocks), grown = claim.at(blocks + cycle) - here;
    Ahead of_all, of_steps;
    for (const LowerBound& lower_bound : schedule.bounds) {
      const Wide known = lower_bound.a + Wide{lower_bound.b} * blocks + lower_bound.d;
      const Wide grows = grown * lower_bound.d - Wide{lower_bound.b} * cycle * claim.divisor;
      of_all.keep(here * lower_bound.d - known * claim.divisor + 1, alone ? 0 : grows);
    }
    const std::int64_t taken = steps_for(steps, blocks);
    const Wide grows = grown - Wide{steps_for(steps, blocks + cycle) - taken} * claim.divisor;
    of_steps.keep(here - Wide{taken + 1} * claim.divisor + 1, alone ? 0 : grows);
    for (const Ahead& wrong : {of_all, of_steps}) {
      if (wrong.low > wrong.high || wrong.low > kMaxBlocks / cycle) continue;
      const std::int64_t found = blocks + cycle * static_cast<std::int64_t>(wrong.low);
      if (found <= kMaxBlocks && (least == 0 || found < least)) least = found;
    }
  }
  return least;
}

}  // namespace

// First tries the line above the claim, because its cycle does not contain the claim's divisor. If
// that is too high somewhere, tries the claim itself.
ProofResult check_bound_for_all(ExpandedSchedule& schedule, const Steps& steps) {
  const Program& common = *schedule.common;
  const Count& count = common.counts[common.bound_ref];
  const std::int64_t divisor = count.c == 0 ? 1 : std::max<std::int64_t>(1, count.e);
  const std::int64_t cycle = std::lcm(steps.stride, divisor);
  std::int64_t least = 0;
  if (steps.stride <= kMaxCycle)
    least = first_above(schedule, steps, {count, divisor}, steps.stride);
  if (steps.stride > kMaxCycle || (least > 0 && cycle > kMaxCycle)) {
    return Undecided{"the claimed lower bound goes on in too long a cycle"};
  }
  if (least > 0 && divisor > 1) least = first_above(schedule, steps, {count, 1}, cycle);
  if (least == 0) return {};
  set_blocks(schedule, least);
  return check_bound(schedule, phase_steps(common, least));
}

namespace {

// Returns a count that is never above the bound, and mostly equal to it.
Count count_of(const LowerBound& lower_bound) {
  Count count{};
  const std::int64_t whole = lower_bound.b / lower_bound.d, rest = lower_bound.b % lower_bound.d;
  count.b = static_cast<std::int32_t>(whole);
  if (rest == 0) {
    count.a = static_cast<std::int32_t>(ceil_div(lower_bound.a, lower_bound.d));
    return count;
  }
  const std::int64_t lack = lower_bound.d - rest;
  std::int64_t e = ceil_div(lower_bound.d, rest), x = 0;
  if (2 * rest <= lower_bound.d) {
    // (rest N + a) / d >= (N + x) / e for all N >= 1.
    x = floor_div(e * (rest + lower_bound.a), lower_bound.d) - 1;
    count.c = 1;
  } else {
    // (N - lack N / d) + a / d >= N - (N + x) / e.
    e = lower_bound.d / lack;
    x = ceil_div(e * (lack - lower_bound.a), lower_bound.d) - 1;
    ++count.b;
    count.c = -1;
  }
  count.d = static_cast<std::int32_t>(x);
  count.e = static_cast<std::uint32_t>(e);
  return count;
}

}  // namespace

Count provable_bound(const topology::Topology& topology, const Program& common,
                     std::int64_t segment_count, bool neighbours) {
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  Count best{};
  const auto value = [](const Count& count) {
    return std::pair(count_value(count, kMany), count_value(count, 1));
  };
  const BoundFacts facts{neighbours, neighbours, false, segment_count};
  for (const LowerBound& lower_bound : all_bounds(topology, common, facts).all) {
    if (lower_bound.b / lower_bound.d > kMaxSlope || lower_bound.steps(1) > kMaxField) continue;
    const Count count = count_of(lower_bound);
    if (value(count) > value(best)) best = count;
  }
  return best;
}

}  // namespace espalier::verify
