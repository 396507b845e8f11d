// Claimed lower bounds against brute force, and the greatest of several bounds.

#include "collectives/verify/bounds/claimed_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kLooked = 600;  // N of the brute force

std::int64_t greatest_steps(const std::vector<LowerBound>& bounds, std::int64_t blocks) {
  std::int64_t steps = 0;
  for (const LowerBound& bound : bounds) steps = std::max(steps, bound.steps(blocks));
  return steps;
}

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::int32_t operator()(std::int32_t low, std::int32_t high) {
    return std::uniform_int_distribution<std::int32_t>(low, high)(engine_);
  }
  LowerBound bound() { return {"", (*this)(0, 20), (*this)(0, 12), (*this)(1, 9)}; }

 private:
  std::mt19937 engine_;
};

// A claim, lower bounds and steps; nothing else of a schedule.
struct Claimed {
  Program common{};
  ExpandedSchedule schedule;
  Steps steps;

  Claimed(const Count& claim, const Count& taken, std::uint32_t mod, std::uint32_t residue) {
    common.counts[0] = claim;
    common.counts[1] = taken;
    common.counts_count = 2;
    common.bound_ref = 0;
    common.steps_ref = 1;
    common.phases_count = 1;
    common.phases[0].steps_ref = 1;
    common.blocks_count = 1;
    common.blocks[0].block_bytes = 8;
    common.residue_mod = mod;
    common.residue = residue;
    schedule.common = &common;
    steps.stride = std::lcm(std::max(1u, mod), std::max(1u, taken.e));
    for (std::int64_t blocks = 1; blocks <= 3 * steps.stride; ++blocks) {
      const bool occurs = next_blocks(common, blocks) == blocks;
      steps.first.push_back(occurs ? count_value(taken, blocks) : 0);
    }
  }
  [[nodiscard]] bool wrong(std::int64_t blocks) const {
    const std::int64_t claim = count_value(common.counts[0], blocks);
    return claim > greatest_steps(schedule.bounds, blocks) ||
           claim > count_value(common.counts[1], blocks);
  }
};

TEST(ClaimedBound, IsComparedForEveryBlocks) {
  Dice dice(1);
  int wrong = 0, right = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto quotient = static_cast<std::uint32_t>(dice(1, 9));
    const Count claim{dice(-20, 6), dice(0, 4), dice(-2, 2), dice(-9, 9), quotient};
    const Count taken{dice(0, 20), dice(1, 6), dice(0, 2), dice(-3, 3),
                      static_cast<std::uint32_t>(dice(1, 4))};
    const auto mod = static_cast<std::uint32_t>(dice(0, 4));
    const std::uint32_t residue = mod == 0 ? 0 : static_cast<std::uint32_t>(dice(0, 99)) % mod;
    Claimed claimed(claim, taken, mod, residue);
    for (int many = dice(1, 4); many > 0; --many) claimed.schedule.bounds.push_back(dice.bound());
    std::int64_t first = 0;
    for (std::int64_t blocks = 1; blocks <= kLooked && first == 0; ++blocks) {
      if (next_blocks(claimed.common, blocks) == blocks && claimed.wrong(blocks)) first = blocks;
    }
    const ProofResult result = check_bound_for_all(claimed.schedule, claimed.steps);
    ASSERT_EQ(result.undecided(), nullptr);
    const Counterexample* const finding = result.error();
    if (first > 0) {
      ASSERT_TRUE(finding) << "round " << round << ": wrong for N = " << first;
      ASSERT_EQ(finding->blocks, first) << "round " << round;
    } else if (finding) {
      ASSERT_GT(finding->blocks, kLooked);
      ASSERT_TRUE(claimed.wrong(finding->blocks)) << "round " << round;
    }
    ++(finding ? wrong : right);
  }
  EXPECT_GT(wrong, 2000);
  EXPECT_GT(right, 2000);
}

// The cycle of a lower bound may be as long as the number of ranks, and so may that of a claim.
TEST(ClaimedBound, NoCycleIsTooLong) {
  constexpr std::int32_t kEvery = 1 << 18;  // a quarter of the ranks
  Claimed claimed({0, 4, -1, 1 - kEvery, kEvery}, {72, 4, 0, 0, 0}, 0, 0);
  claimed.schedule.bounds = {{"log p", 19, 2, 1}, {"messages", 0, 8 * kEvery - 2, 2 * kEvery}};
  EXPECT_TRUE(check_bound_for_all(claimed.schedule, claimed.steps).passed());
  claimed.schedule.bounds[1].b -= 2;
  claimed.common.counts[0] = {0, 4, 0, 0, 0};
  const ProofResult result = check_bound_for_all(claimed.schedule, claimed.steps);
  const Counterexample* const finding = result.error();
  ASSERT_TRUE(finding);
  EXPECT_TRUE(claimed.wrong(finding->blocks));
  EXPECT_FALSE(claimed.wrong(finding->blocks - 1));
}

TEST(GreatestBound, IsThatOfAllForEveryBlocks) {
  Dice dice(2);
  std::size_t most = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::vector<LowerBound> all;
    for (int many = dice(1, 12); many > 0; --many) all.push_back(dice.bound());
    const std::int64_t first = dice(1, 5);
    const std::vector<LowerBound> few = greatest(all, first);
    for (std::int64_t blocks = first; blocks <= kLooked; ++blocks) {
      ASSERT_EQ(greatest_steps(few, blocks), greatest_steps(all, blocks)) << "round " << round;
    }
    // None can be left out.
    for (std::size_t out = 0; out < few.size(); ++out) {
      std::vector<LowerBound> fewer = few;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(out));
      bool missed = false;
      for (std::int64_t blocks = first; blocks <= kLooked && !missed; ++blocks) {
        missed = greatest_steps(fewer, blocks) < greatest_steps(few, blocks);
      }
      ASSERT_TRUE(missed || few.size() == 1) << "round " << round;
    }
    most = std::max(most, few.size());
  }
  EXPECT_GE(most, 3u);
  EXPECT_TRUE(greatest({}, 1).empty());
}

}  // namespace
}  // namespace espalier::verify
