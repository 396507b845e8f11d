// The end of the exhaustive check: it covers every N from 1 to settling_bound() and proves nothing
// beyond.
//
// The bound is chosen so that everything that can occur does occur below it. A program repeats
// every `period` steps. Let N be so large that ramp-up and drain are further apart than the first
// steps of the actions, plus the reach of the window and of `after`. Then a node runs one whole
// undisturbed period, and more blocks only add more periods of the same kind. Other things that
// depend on N are segments, links and slots that change with the instance, the divisors of counts,
// and the residue. They repeat after a round of blocks, and one more round is checked.
//
// Actions with paces may advance by other steps per block than their phase grows by. The distance
// between any two of them is a line in N. So is the distance from each to the end of the phase. The
// bound is greater than every N at which one of these lines is 0. Beyond it their order is fixed.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "collectives/verify/properties/repeat.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMaxRounds = 256;           // of divisors; real schedules stay far below
constexpr std::int64_t kMaxSettlingBlocks = 4096;  // for any descriptor

void join(std::int64_t& rounds, std::uint64_t divisor) {
  if (divisor == 0) return;
  const std::int64_t joined = std::lcm(rounds, static_cast<std::int64_t>(divisor));
  rounds = std::min(joined, kMaxRounds);
}

// Joins the number of blocks after which the links, segments and slots of an action repeat.
void join_action(std::int64_t& rounds, const Program& program, const Action& action) {
  const bool send = action.kind == ActionKind::kSend;
  const auto of = [&](std::uint32_t ref) { return repeat_of(program, program.indices[ref]); };
  const Repeat block = of((send ? action.a : action.into).block_ref);
  std::int64_t every = block.every;
  const auto with = [&](bool present, std::uint32_t ref) {
    if (present) every = common_every(every, of(ref).every);
  };
  with(action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive, action.link_ref);
  with(action.pace_ref != 0, action.pace_ref);
  for (const auto& [present, operand] :
       {std::pair(action.has_into, &action.into), std::pair(action.has_a, &action.a),
        std::pair(action.has_b, &action.b)}) {
    with(present, operand->segment_ref);
    with(present && operand->buffer == Buffer::kScratch, operand->slot_ref);
  }
  if (every == 0 || block.add <= 0) {
    rounds = kMaxRounds;  // unknown
  } else {
    join(rounds, static_cast<std::uint64_t>(every / block.every * block.add));
  }
}

std::int64_t divisor_rounds(const Program& program) {
  std::int64_t rounds = 1;
  join(rounds, program.residue_mod);
  for (std::uint32_t k = 0; k < program.counts_count; ++k) {
    if (program.counts[k].c != 0) join(rounds, program.counts[k].e);
  }
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    join_action(rounds, program, program.actions[k]);
  }
  return rounds;
}

// Returns the blocks of a segment per period, rounded up. More than one if instances skip blocks.
std::int64_t blocks_a_period(const Program& program) {
  std::int64_t most = 1;
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    const bool send = action.kind == ActionKind::kSend;
    const Repeat block =
        repeat_of(program, program.indices[(send ? action.a : action.into).block_ref]);
    if (block.every > 0) most = std::max(most, (block.add + block.every - 1) / block.every);
  }
  return std::min(most, kMaxRounds);
}

// Keeps products of a descriptor's numbers inside 64 bits. Real values are not changed.
std::int64_t cut(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  return std::clamp(value, -kMost, kMost);
}

// A step that grows with N: about start + slope * N.
struct Course {
  double start = 0, slope = 0;
};

Course course_of(const Count& count) {
  const double rounded = count.c == 0 ? 0 : static_cast<double>(count.c) / or_one(count.e);
  return {static_cast<double>(count.a) + rounded * static_cast<double>(count.d),
          static_cast<double>(count.b) + rounded};
}

// The growth of an index per instance.
double growth(const Program& program, const Index& index) {
  constexpr std::int64_t kFar = std::int64_t{1} << 16;  // if the index does not repeat
  const Repeat repeat = repeat_of(program, index);
  if (repeat.every > 0) return static_cast<double>(repeat.add) / static_cast<double>(repeat.every);
  const auto ref = static_cast<std::uint32_t>(&index - program.indices);
  const std::int64_t risen = index_value(program, ref, kFar) - index_value(program, ref, 0);
  return static_cast<double>(risen) / static_cast<double>(kFar);
}

// Adds the first and the last step of the action's instances.
void add_courses(const Program& program, std::uint32_t period, const Action& action,
                 std::vector<Course>& courses) {
  const Course first = course_of(program.counts[action.t0_ref]);
  courses.push_back(first);
  const Course instances = course_of(program.counts[action.instances_ref]);
  const double steps =
      period * (action.pace_ref == 0 ? 1 : growth(program, program.indices[action.pace_ref]));
  courses.push_back({first.start + steps * instances.start, first.slope + steps * instances.slope});
}

// Returns the blocks after which the actions of a phase keep their order; 0 if no action has a
// pace.
std::int64_t blocks_to_settle(const Program& program, std::uint32_t phase,
                              std::uint32_t first_action, std::int64_t slack) {
  std::vector<Course> courses = {course_of(program.counts[program.phases[phase].steps_ref])};
  bool paced = false;
  for (std::uint32_t k = 0; k < program.phases[phase].actions; ++k) {
    const Action& action = program.actions[first_action + k];
    paced = paced || action.pace_ref != 0;
    add_courses(program, program.phases[phase].period, action, courses);
  }
  if (!paced) return 0;
  double blocks = 0;
  for (const Course& one : courses) {
    for (const Course& other : courses) {
      const double slope = one.slope - other.slope;
      // Slopes are fractions of divisors below 2^16.
      if (slope < 1e-9) continue;
      const double apart = std::max(0.0, other.start - one.start) + static_cast<double>(slack);
      blocks = std::max(blocks, std::ceil(apart / slope));
    }
  }
  return static_cast<std::int64_t>(std::min(blocks, static_cast<double>(kMaxSettlingBlocks)));
}

// Returns the steps that ramp-up, drain, window and dependencies of one phase extend over.
std::int64_t reach(const Program& program, std::uint32_t phase, std::uint32_t first_action) {
  const std::int64_t period = program.phases[phase].period;
  std::int64_t earliest = 0, latest = 0, after = 0;
  for (std::uint32_t k = 0; k < program.phases[phase].actions; ++k) {
    const Action& action = program.actions[first_action + k];
    const Operand& operand = action.kind == ActionKind::kSend ? action.a : action.into;
    // A block index that begins below 0 delays its first instance. One that begins above 0 means
    // that earlier blocks came first. Instances far below 0 never exist.
    std::int64_t block = index_value(program, operand.block_ref, 0);
    if (std::abs(block) > kMaxSettlingBlocks) block = 0;
    const std::int64_t begin =
        cut(count_value(program.counts[action.t0_ref], 1)) - cut(period) * block;
    earliest = k == 0 ? begin : std::min(earliest, begin);
    latest = k == 0 ? begin : std::max(latest, begin);
    // Steps further back than the window have retired.
    after = std::max<std::int64_t>(after, std::min<std::uint32_t>(action.after, program.window));
  }
  return latest - earliest + 2 * std::int64_t{program.window} + after;
}

}  // namespace

std::int64_t settling_bound(const Program& program) {
  std::int64_t bound = 0;
  std::uint32_t first_action = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t period = program.phases[phase].period;
    const std::int64_t steps = reach(program, phase, first_action);
    const std::int64_t periods = (steps + period - 1) / period;
    bound = std::max(bound, periods * blocks_a_period(program));
    bound = std::max(bound, blocks_to_settle(program, phase, first_action, steps));
    first_action += program.phases[phase].actions;
  }
  return std::clamp<std::int64_t>(bound + divisor_rounds(program) + 1, 1, kMaxSettlingBlocks);
}

}  // namespace espalier::verify
