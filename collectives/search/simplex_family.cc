#include "collectives/search/simplex_family.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kExhaustive = 4;  // maximum run length
constexpr std::size_t kBeam = 60;
constexpr std::size_t kPatterns = 150;

std::int32_t cycle(std::size_t run_length) { return static_cast<std::int32_t>(2 * run_length + 1); }

// Computes the earliest steps, one per slot in the slots' cyclic order, each later than
// after_of(block, slot's position). `slots` ascend, and no step is before `from`.
template <typename After>
void earliest(const std::vector<std::int32_t>& slots, std::int32_t from, After after_of,
              RunSteps& steps, std::size_t& first_slot) {
  const std::size_t run_length = slots.size();
  const std::int32_t period = cycle(run_length);
  const std::int32_t base = from - from % period;
  steps.resize(run_length);
  bool fits = false;
  for (std::size_t start = 0; !fits; ++start) {
    first_slot = start % run_length;
    fits = true;
    for (std::size_t block = 0; block < run_length && fits; ++block) {
      const std::size_t position = start + block;
      steps[block] = base + slots[position % run_length] +
                     period * static_cast<std::int32_t>(position / run_length);
      fits = steps[block] > after_of(block, position % run_length);
    }
  }
}

// The slots of Z_2r+1 in which a rank neither receives nor sends to the right, ascending.
std::vector<std::int32_t> free_slots(const RunSteps& receives, std::int32_t taken) {
  const std::int32_t period = cycle(receives.size());
  std::vector<bool> busy(static_cast<std::size_t>(period));
  for (const std::int32_t step : receives) busy[static_cast<std::size_t>(step % period)] = true;
  if (taken >= 0) busy[static_cast<std::size_t>(taken)] = true;
  std::vector<std::int32_t> free;
  for (std::int32_t slot = 0; slot < period; ++slot) {
    if (!busy[static_cast<std::size_t>(slot)]) free.push_back(slot);
  }
  return free;
}

// The steps in which the next rank receives the blocks of this one, which sends to the right in
// `slot`.
RunSteps passed_down(const RunSteps& receives, std::int32_t slot) {
  RunSteps sends;
  std::size_t first = 0;
  earliest(
      free_slots(receives, slot), receives[0],
      [&](std::size_t block, std::size_t) { return receives[block]; }, sends, first);
  return sends;
}

// The right successor's steps, given the first `slots.size()` ranks of a group.
bool passed_right(const std::vector<RunSteps>& receives, const std::uint8_t* slots,
                  PassingSteps& steps) {
  const std::size_t run_length = receives[0].size();
  std::vector<std::pair<std::int32_t, std::uint32_t>> order;  // slot, rank
  for (std::uint32_t position = 0; position < run_length; ++position)
    order.emplace_back(slots[position], position);
  std::sort(order.begin(), order.end());
  std::vector<std::int32_t> sorted;
  sorted.reserve(run_length);
  for (const auto& [slot, position] : order) sorted.push_back(slot);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return false;
  std::size_t first = 0;
  earliest(
      sorted, receives[0][0],
      [&](std::size_t block, std::size_t position) {
        return receives[order[position].second][block];
      },
      steps.right, first);
  steps.sender.resize(run_length);
  for (std::size_t block = 0; block < run_length; ++block) {
    steps.sender[block] = order[(first + block) % run_length].second;
  }
  return true;
}

RunSteps pattern_of(RunSteps steps) {
  const std::int32_t first = steps[0];
  for (std::int32_t& step : steps) step -= first;
  return steps;
}

// Choices for the first ranks of a group.
struct Partial {
  std::vector<RunSteps> receives;
  std::array<std::uint8_t, kMaxRunLength> slots{};
  std::int64_t cost = 0;  // of its last rank: the sum of its steps
};

void extend(const Partial& partial, std::vector<Partial>& next) {
  const std::size_t position = partial.receives.size() - 1;
  const auto* const chosen = partial.slots.begin();
  for (const std::int32_t slot : free_slots(partial.receives.back(), -1)) {
    if (std::find(chosen, chosen + position, slot) != chosen + position) continue;
    Partial longer = partial;
    longer.slots[position] = static_cast<std::uint8_t>(slot);
    longer.receives.push_back(passed_down(partial.receives.back(), slot));
    longer.cost = 0;
    for (const std::int32_t step : longer.receives.back()) longer.cost += step;
    next.push_back(std::move(longer));
  }
}

// All choices for a group (for long runs: the best of a beam).
std::vector<Partial> choices(const RunSteps& head) {
  std::vector<Partial> all(1);
  all[0].receives.push_back(head);
  for (std::size_t position = 0; position < head.size(); ++position) {
    std::vector<Partial> next;
    for (const Partial& partial : all) extend(partial, next);
    if (head.size() > kExhaustive && next.size() > kBeam) {
      std::stable_sort(next.begin(), next.end(),
                       [](const Partial& a, const Partial& b) { return a.cost < b.cost; });
      next.resize(kBeam);
    }
    all = std::move(next);
  }
  return all;
}

// Patterns by number.
class Numbers {
 public:
  explicit Numbers(SimplexFamily& family) : family_(family) {}
  std::uint32_t of(const RunSteps& pattern) {
    const auto next = static_cast<std::uint32_t>(family_.patterns.size());
    const auto [at, added] = numbers_.try_emplace(pattern, next);
    if (added) family_.patterns.push_back(pattern);
    return at->second;
  }

 private:
  SimplexFamily& family_;
  std::map<RunSteps, std::uint32_t> numbers_;
};

bool no_later(const Passing& a, const Passing& b) {
  return a.down == b.down && a.right == b.right && a.down_delay <= b.down_delay &&
         a.right_delay <= b.right_delay && a.last_arrival <= b.last_arrival;
}

void add_passing(std::vector<Passing>& all, const Passing& passing) {
  for (const Passing& old : all) {
    if (no_later(old, passing)) return;
  }
  std::erase_if(all, [&](const Passing& old) { return no_later(passing, old); });
  all.push_back(passing);
}

}  // namespace

bool pass_on(const RunSteps& head, const std::uint8_t* slots, PassingSteps& steps) {
  steps.receives.assign(1, head);
  for (std::size_t position = 0; position < head.size(); ++position) {
    steps.receives.push_back(passed_down(steps.receives.back(), slots[position]));
  }
  return passed_right(steps.receives, slots, steps);
}

namespace {

// Adds the passings of a pattern, and the patterns that they lead to.
void expand(std::uint32_t pattern, Numbers& numbers, SimplexFamily& family) {
  const std::uint32_t run_length = family.run_length;
  std::vector<Passing> passings;
  for (const Partial& choice : choices(family.patterns[pattern])) {
    PassingSteps steps{};
    if (!passed_right(choice.receives, choice.slots.data(), steps)) continue;
    add_passing(passings, {.slots = choice.slots,
                           .down = numbers.of(pattern_of(choice.receives[run_length])),
                           .right = numbers.of(pattern_of(steps.right)),
                           .down_delay = choice.receives[run_length][0],
                           .right_delay = steps.right[0],
                           .last_arrival = choice.receives[run_length - 1][0]});
  }
  family.passings.resize(family.patterns.size());
  family.passings[pattern] = std::move(passings);
}

// Removes passings to patterns without passings, until the remaining patterns lead only to each
// other.
void close(SimplexFamily& family) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::vector<Passing>& passings : family.passings) {
      changed |=
          std::erase_if(passings, [&](const Passing& passing) {
            return family.passings[passing.down].empty() || family.passings[passing.right].empty();
          }) > 0;
    }
  }
}

SimplexFamily find_family(std::uint32_t run_length) {
  SimplexFamily family;
  family.run_length = run_length;
  Numbers numbers(family);
  RunSteps alternating;
  for (std::uint32_t block = 0; block < run_length; ++block) {
    alternating.push_back(static_cast<std::int32_t>(2 * block));
  }
  (void)numbers.of(alternating);
  // The next pattern is the one that most passings lead to, so that the family closes soonest.
  std::vector<std::uint32_t> wanted(1, 1);
  std::vector<bool> seen(1);
  for (std::size_t looked = 0; run_length <= kExhaustive || looked < kPatterns; ++looked) {
    std::uint32_t best = 0;
    for (std::uint32_t pattern = 0; pattern < wanted.size(); ++pattern) {
      if (!seen[pattern] && (seen[best] || wanted[pattern] > wanted[best])) best = pattern;
    }
    if (seen[best]) break;
    seen[best] = true;
    expand(best, numbers, family);
    wanted.resize(family.patterns.size());
    seen.resize(family.patterns.size());
    for (const Passing& passing : family.passings[best]) {
      ++wanted[passing.down];
      ++wanted[passing.right];
    }
  }
  close(family);
  return family;
}

}  // namespace

const SimplexFamily& simplex_family(std::uint32_t run_length) {
  ESPALIER_ASSERT(run_length <= kMaxDirectRunLength);
  static std::mutex mutex;
  static std::map<std::uint32_t, SimplexFamily> found;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = found.try_emplace(run_length);
  if (is_new) at->second = find_family(run_length);
  return at->second;
}

}  // namespace espalier::searched
