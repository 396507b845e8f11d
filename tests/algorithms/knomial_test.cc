// The k-nomial trees with every radix and several lambdas, replayed: p up to 64, or up to 199 with
// ESPALIER_WHOLE=1. The other tests of all algorithms take the default radix.

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/trees/interval_tree.h"
#include "collectives/build/builder.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/expected_steps.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

constexpr Collective::Value kCollectives[] = {Collective::kBroadcast, Collective::kReduce,
                                              Collective::kScatter, Collective::kGather};
constexpr std::pair<std::uint32_t, std::uint32_t> kTicks[] = {{1, 1}, {2, 1}, {9, 5}, {7, 2}};

const Algorithm& knomial(Collective collective) { return *find_algorithm(collective, "knomial"); }

std::vector<std::uint32_t> knomial_ranks() {
  std::vector<std::uint32_t> ranks;
  const std::uint32_t last = whole() ? 199 : small_sample() ? 28 : 64;
  for (std::uint32_t p = 1; p <= last; p += whole() || p < 18 ? 1 : 5) ranks.push_back(p);
  return ranks;
}

TEST(Knomial, EveryRadixAndLambda) {
  std::uint32_t replays = 0;
  for (const std::uint32_t p : knomial_ranks()) {
    for (const Collective::Value collective : kCollectives) {
      for (const std::uint32_t radix : {2u, 3u, 4u, 5u, 8u, 16u, 20u}) {
        for (const auto& [latency, send] : kTicks) {
          for (const std::uint32_t root : std::set{0u, p > 1 ? 1u : 0u, p / 2, p - 1}) {
            CollectiveParameters parameters{.ranks = p, .root = root, .radix = radix};
            parameters.window = 1 + (p + radix) % 9;
            parameters.send_ticks = send;
            parameters.latency_ticks = latency;
            const Programs programs = or_throw(replay::generate(knomial(collective), parameters));
            const std::int64_t steps = or_throw(replay::run(programs, 1));
            ASSERT_EQ(steps, expected_steps(knomial(collective), parameters, 1).least)
                << "radix " << radix << " p " << p << " L/S " << latency << '/' << send;
            EXPECT_FALSE(programs[0].needs_commutative);
            ++replays;
          }
        }
      }
    }
  }
  std::printf("replayed %u schedules\n", replays);
  EXPECT_GT(replays, 5000u);
}

// Radix 2 is the binomial tree: the same number of steps in every collective, and, except in
// broadcasts, whose tree has another shape, the same programs.
TEST(Knomial, RadixTwoIsBinomial) {
  for (const std::uint32_t p : {2u, 3u, 7u, 16u, 37u}) {
    for (const Collective::Value collective : kCollectives) {
      const Algorithm& binomial = *find_algorithm(collective, "binomial");
      for (std::uint32_t rank = 0; rank < p; ++rank) {
        Program one, two;
        const CollectiveParameters parameters{.ranks = p, .root = p / 3};
        CollectiveParameters with_radix = parameters;
        with_radix.radix = 2;
        ASSERT_EQ(binomial.generate(parameters, rank, one), Status::kOk);
        ASSERT_EQ(knomial(collective).generate(with_radix, rank, two), Status::kOk);
        EXPECT_EQ(phase_steps(one, 1), phase_steps(two, 1));
        if (collective == Collective::kBroadcast) continue;
        std::memcpy(two.algorithm, one.algorithm, sizeof one.algorithm);
        two.schedule_digest = one.schedule_digest;
        std::vector<std::uint8_t> bytes[2] = {std::vector<std::uint8_t>(kMaxDescriptorBytes),
                                              std::vector<std::uint8_t>(kMaxDescriptorBytes)};
        std::size_t sizes[2] = {};
        ASSERT_EQ(encode_program(one, bytes[0].data(), bytes[0].size(), sizes[0]), Status::kOk);
        ASSERT_EQ(encode_program(two, bytes[1].data(), bytes[1].size(), sizes[1]), Status::kOk);
        EXPECT_EQ(sizes[0], sizes[1]);
        EXPECT_EQ(bytes[0], bytes[1]) << "p " << p << " rank " << rank;
      }
    }
  }
}

// A radix that is not given: no other has fewer ticks, among those that fit every program.
TEST(Knomial, DefaultRadix) {
  for (const auto& [latency, send] :
       {std::pair{1u, 1u}, {2u, 1u}, {9u, 5u}, {16u, 1u}, {64u, 1u}}) {
    for (const std::uint32_t p : {2u, 3u, 9u, 16u, 27u, 100u, 1000u, 131070u}) {
      const std::uint32_t chosen = tree_radix(0, p, send, latency);
      const std::uint32_t steps = IntervalTree(p, 0, chosen, send, latency).steps();
      if (latency == send) {
        EXPECT_EQ(chosen, 2u);
      }
      for (std::uint32_t radix = 2; radix <= 21 && radix <= p; ++radix) {
        const CollectiveParameters parameters{.ranks = p,
                                              .root = p / 2,
                                              .radix = radix,
                                              .send_ticks = send,
                                              .latency_ticks = latency};
        Program program;
        bool fits = true;
        for (const Collective::Value collective : kCollectives) {
          for (const std::uint32_t rank : {p / 2, 0u}) {
            fits &= knomial(collective).generate(parameters, rank, program) == Status::kOk;
          }
        }
        if (radix == chosen) {
          EXPECT_TRUE(fits) << "p " << p << " radix " << radix;
        }
        std::uint32_t divisions = 0;
        for (std::uint64_t reach = 1; reach < p; reach *= radix) ++divisions;
        if ((radix - 1) * divisions <= 20) {
          EXPECT_LE(steps, IntervalTree(p, 0, radix, send, latency).steps())
              << "p " << p << " L/S " << latency << '/' << send << " radix " << radix;
        }
      }
    }
  }
}

TEST(Knomial, RadixDeterminesTheDigest) {
  std::set<std::uint64_t> digests;
  for (const std::uint32_t radix : {0u, 2u, 3u, 4u, 5u, 129u}) {
    Program one, two;
    const CollectiveParameters parameters{.ranks = 5, .radix = radix};
    ASSERT_EQ(knomial(Collective::kScatter).generate(parameters, 0, one), Status::kOk);
    ASSERT_EQ(knomial(Collective::kScatter).generate(parameters, 4, two), Status::kOk);
    EXPECT_EQ(one.schedule_digest, two.schedule_digest);
    digests.insert(one.schedule_digest);
  }
  EXPECT_EQ(digests.size(), 6u);
}

// The parts that a program has room for at a root 0 that sends to, or receives from, all others.
std::uint32_t max_parts(Collective collective) {
  return collective == Collective::kReduce ? 32 : 62;
}

TEST(Knomial, Refusals) {
  Program program;
  for (const Collective::Value collective : kCollectives) {
    const auto status = [&](const CollectiveParameters& parameters) {
      return knomial(collective).generate(parameters, 0, program);
    };
    EXPECT_EQ(status({.ranks = 5, .radix = 1}), Status::kBadArgument);
    EXPECT_EQ(status({.ranks = 5, .radix = kMaxLinearRanks}), Status::kOk);
    EXPECT_EQ(status({.ranks = 5, .radix = kMaxLinearRanks + 1}), Status::kTooLarge);
    EXPECT_EQ(status({.ranks = 5, .send_ticks = 2, .latency_ticks = 1}), Status::kBadArgument);
    std::uint32_t fits = 1;
    while (status({.ranks = fits + 2, .radix = fits + 2}) == Status::kOk) ++fits;
    EXPECT_EQ(fits, max_parts(collective)) << collective_name(collective);
    EXPECT_EQ(program.actions_count, 0) << "cleared";
  }
}

}  // namespace
}  // namespace espalier
