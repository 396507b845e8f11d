// The lower bound that a schedule claims, against the bounds that are known (bounds.cc): for one N,
// for every N, and the best one that can be claimed.

#include <algorithm>
#include <numeric>
#include <utility>

#include "collectives/verify/check.h"
#include "espalier/base/arithmetic.h"

namespace espalier::verify {

Finding check_bound(const Case& at, std::int64_t steps) {
  const Program& common = *at.common;
  const std::int64_t bound = count_value(common.counts[common.bound_ref], at.blocks);
  std::int64_t known = 0;
  std::string reason;
  for (const Witness& witness : at.witnesses) {
    if (witness.steps(at.blocks) < known) continue;
    known = witness.steps(at.blocks);
    reason = witness.reason;
  }
  if (bound <= known && bound <= steps) return std::nullopt;
  return found(Point::kSteps, at, -1, nullptr,
               "a lower bound of " + std::to_string(bound) + " steps is claimed; bounds prove " +
                   std::to_string(known) + " (" + reason + "), and the schedule takes " +
                   std::to_string(steps));
}

Finding check_witnesses(const Case& at, std::int64_t steps) {
  for (const Witness& witness : at.witnesses) {
    if (witness.steps(at.blocks) <= steps) continue;
    return found(Point::kSteps, at, -1, nullptr,
                 "valid in " + std::to_string(steps) + " steps, but a bound says that none is in " +
                     "less than " + std::to_string(witness.steps(at.blocks)) + " (" +
                     witness.reason + "): the verifier is wrong");
  }
  return std::nullopt;
}

namespace {

__extension__ using Wide = __int128;  // products of a witness's numbers, an N and a divisor

constexpr std::int64_t kMostCycle = 4096;  // N that are looked at one by one

// Steps for any N, of those that are the same every `stride` blocks.
std::int64_t steps_for(const Steps& steps, std::int64_t blocks) {
  const std::int64_t stride = steps.stride;
  const std::int64_t rounds = std::max<std::int64_t>(0, ceil_div(blocks - 3 * stride, stride));
  const auto at = static_cast<std::size_t>(blocks - rounds * stride - 1);
  if (rounds == 0) return steps.first[at];
  return steps.first[at] +
         rounds * (steps.first[at] - steps.first[at - static_cast<std::size_t>(stride)]);
}

// Of the numbers k >= 0 those with at + grows * k > 0: low <= k <= high.
struct Ahead {
  Wide low = 0, high = kMaxBlocks;

  void keep(Wide at, Wide grows) {
    if (grows > 0 && at <= 0) low = std::max(low, -at / grows + 1);
    if (grows < 0) high = std::min(high, at <= 0 ? Wide{-1} : (at - 1) / -grows);
    if (grows == 0 && at <= 0) high = -1;
  }
};

// The claim for N blocks, times `divisor`: itself (1), or (its quotient's e) the line through its
// highest points, which is nowhere below it and everywhere less than |c| above.
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

// The least N for which the claim, a whole number, is above all witnesses or above the steps: at
// least as much as one of them and 1. 0: none. Claim, witnesses before they are rounded up, and
// steps are lines in N for those N that are `cycle` apart, from the stride on: the claim is above
// one of them on a half line.
std::int64_t first_above(const Case& at, const Steps& steps, const Claim& claim,
                         std::int64_t cycle) {
  std::int64_t least = 0;
  for (std::int64_t blocks = 1; blocks <= 2 * cycle; ++blocks) {
    if (next_blocks(*at.common, blocks) != blocks) continue;
    const bool alone = blocks <= cycle;  // they may be below the stride
    const Wide here = claim.at(blocks), grown = claim.at(blocks + cycle) - here;
    Ahead of_all, of_steps;
    for (const Witness& witness : at.witnesses) {
      const Wide known = witness.a + Wide{witness.b} * blocks + witness.d;
      const Wide grows = grown * witness.d - Wide{witness.b} * cycle * claim.divisor;
      of_all.keep(here * witness.d - known * claim.divisor + 1, alone ? 0 : grows);
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

// First by the line above the claim, which needs no cycle of the claim's own; where that is too
// high somewhere, by the claim itself.
Finding check_bound(Case& at, const Steps& steps, std::string& limited) {
  const Program& common = *at.common;
  const Count& count = common.counts[common.bound_ref];
  const std::int64_t divisor = count.c == 0 ? 1 : std::max<std::int64_t>(1, count.e);
  const std::int64_t cycle = std::lcm(steps.stride, divisor);
  std::int64_t least = 0;
  if (steps.stride <= kMostCycle) least = first_above(at, steps, {count, divisor}, steps.stride);
  if (steps.stride > kMostCycle || (least > 0 && cycle > kMostCycle)) {
    limited = "the claimed lower bound goes on in too long a cycle";
    return std::nullopt;
  }
  if (least > 0 && divisor > 1) least = first_above(at, steps, {count, 1}, cycle);
  if (least == 0) return std::nullopt;
  set_blocks(at, least);
  return check_bound(static_cast<const Case&>(at), phase_steps(common, least));
}

namespace {

// A count that is never above the witness, and mostly the same.
Count count_of(const Witness& witness) {
  Count count{};
  const std::int64_t whole = witness.b / witness.d, rest = witness.b % witness.d;
  count.b = static_cast<std::int32_t>(whole);
  if (rest == 0) {
    count.a = static_cast<std::int32_t>(ceil_div(witness.a, witness.d));
    return count;
  }
  const std::int64_t lack = witness.d - rest;
  std::int64_t e = ceil_div(witness.d, rest), x = 0;
  if (2 * rest <= witness.d) {
    // (rest N + a) / d >= (N + x) / e for all N >= 1.
    x = floor_div(e * (rest + witness.a), witness.d) - 1;
    count.c = 1;
  } else {
    // (N - lack N / d) + a / d >= N - (N + x) / e.
    e = witness.d / lack;
    x = ceil_div(e * (lack - witness.a), witness.d) - 1;
    ++count.b;
    count.c = -1;
  }
  count.d = static_cast<std::int32_t>(x);
  count.e = static_cast<std::uint32_t>(e);
  return count;
}

}  // namespace

Count provable_bound(const topology::Topology& topology, const Program& common, std::int64_t run,
                     bool neighbours) {
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  Count best{};
  const auto value = [](const Count& count) {
    return std::pair(count_value(count, kMany), count_value(count, 1));
  };
  for (const Witness& witness : witnesses(topology, common, run, {neighbours, neighbours})) {
    if (witness.b / witness.d > kMaxSlope || witness.steps(1) > kMaxField) continue;
    const Count count = count_of(witness);
    if (value(count) > value(best)) best = count;
  }
  return best;
}

}  // namespace espalier::verify
