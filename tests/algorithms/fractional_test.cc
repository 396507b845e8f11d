// Fractional trees: replayed for every run length, and compared with an independent prototype
// (testdata/golden.json) and with the statements in [Sanders03].

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/build/builder.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/prototype_values.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

std::int64_t div_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// P_i by the paper's recurrence.
std::uint64_t reached(std::uint32_t run_length, std::int64_t i) {
  std::vector<std::uint64_t> reach;
  for (std::int64_t k = 0; k <= i; ++k) {
    const std::int64_t down = k - run_length;
    reach.push_back(k <= run_length ? static_cast<std::uint64_t>(k) + 1
                                    : run_length + reach[static_cast<std::size_t>(down)] +
                                          reach[static_cast<std::size_t>(down - 1)]);
  }
  return reach.back();
}

#ifdef ESPALIER_ASSERTIONS
TEST(FractionalTreeDeathTest, HasRanksAndARunLength) {
  EXPECT_DEATH(FractionalTree(0, 1), "expected 1 <= ranks");
  EXPECT_DEATH(FractionalTree(kMaxRanks + 1, 1), "ranks <= kMaxRanks");
  EXPECT_DEATH(FractionalTree(8, 0), "expected 1 <= run_length");
  EXPECT_DEATH(FractionalTree(8, kMaxRunLength + 1), "run_length <= kMaxRunLength");
}
#endif

TEST(FractionalTree, ReachOfThePrototype) {
  const nlohmann::json values = prototype_values()["ft_P"];
  ASSERT_GE(values.size(), 6u);
  for (const auto& [key, row] : values.items()) {
    const auto run_length = static_cast<std::uint32_t>(std::stoul(key));
    for (std::size_t i = 1; i < row.size(); ++i) {
      const auto reach = row[i].get<std::uint32_t>();
      EXPECT_EQ(reached(run_length, static_cast<std::int64_t>(i)), reach);
      const auto last = static_cast<std::int32_t>(i) - 1;
      EXPECT_EQ(FractionalTree(reach, run_length).last_arrival(), last) << "r " << run_length;
      EXPECT_EQ(FractionalTree(reach + 1, run_length).last_arrival(), last + 1)
          << "r " << run_length;
    }
  }
}

TEST(FractionalTree, DepthOfThePrototype) {
  const nlohmann::json values = prototype_values()["ft_d"];  // "r,P": d
  ASSERT_GE(values.size(), 40u);
  for (const auto& [key, depth] : values.items()) {
    const std::size_t comma = key.find(',');
    const auto run_length = static_cast<std::uint32_t>(std::stoul(key.substr(0, comma)));
    const auto p = static_cast<std::uint32_t>(std::stoul(key.substr(comma + 1)));
    EXPECT_EQ(FractionalTree(p, run_length).last_arrival(), depth.get<std::int32_t>()) << key;
  }
}

// The rule of [Sanders03] gives 8 for P = 1024 and k = 4096 t.
TEST(FractionalTree, DefaultRun) {
  EXPECT_EQ(fractional_run_length({.ranks = 1024}), 8u);
  EXPECT_EQ(fractional_run_length({.ranks = 16384}), 7u);
  EXPECT_EQ(fractional_run_length({.ranks = 2}), 16u);
  EXPECT_EQ(fractional_run_length({.ranks = kMaxRanks}), 5u);
  EXPECT_EQ(fractional_run_length({.ranks = 1024, .run_length = 3}), 3u);
}

// Every rank is fed once, at the time given by the recurrence.
TEST(FractionalTree, SeatsFitTogether) {
  for (const std::uint32_t run_length : {1u, 2u, 3u, 5u, 8u, 20u}) {
    for (const std::uint32_t p : {3u, 9u, 20u, 21u, 22u, 64u, 100u, 777u, 5000u}) {
      const FractionalTree tree(p, run_length);
      std::int32_t last = -1;
      std::vector<int> fed(p, 0);
      for (std::uint32_t virtual_rank = 0; virtual_rank < p; ++virtual_rank) {
        const FractionalTree::Seat seat = tree.seat(virtual_rank);
        last = std::max(last, seat.arrival);
        ASSERT_EQ(seat.head + seat.position, virtual_rank);
        if (seat.down != 0) {
          const auto next = tree.seat(seat.down);
          ASSERT_EQ(next.arrival, seat.arrival + 1);
          ++fed[seat.down];
        }
        if (seat.right == 0 || seat.position != 0) continue;
        const auto right = tree.seat(seat.right);
        ASSERT_EQ(right.arrival, seat.arrival + static_cast<std::int32_t>(run_length) + 1);
        ASSERT_TRUE(right.is_right);
        ASSERT_EQ(right.from_group, virtual_rank);
        ++fed[seat.right];
      }
      EXPECT_EQ(last, tree.last_arrival());
      EXPECT_EQ(std::count(fed.begin(), fed.end(), 1), p - 1);
      EXPECT_EQ(fed[0], 0);
    }
  }
}

using Expected =
    std::function<std::int64_t(std::uint32_t p, std::uint32_t run_length, std::int64_t n)>;

// Replays the whole grid with roots 0, 1 and p-1.
void replay_all(const char* name, Collective collective, const Expected& expected) {
  const Algorithm* algorithm = find_algorithm(collective, name);
  ASSERT_NE(algorithm, nullptr);
  std::vector<std::uint32_t> ranks{64, 100};
  for (std::uint32_t p = 1; p <= 40; p += small_sample() && p >= 8 ? 8 : 1) ranks.push_back(p);
  for (const std::uint32_t p : ranks) {
    for (const std::uint32_t run_length : {0u, 1u, 2u, 3u, 4u, 7u, algorithm->max_run_length}) {
      for (const std::uint32_t root : std::set<std::uint32_t>{0, p > 1 ? 1u : 0u, p - 1}) {
        CollectiveParameters parameters{.ranks = p, .root = root, .topology_digest = 7};
        parameters.window = 1 + (p + run_length) % 9;
        parameters.run_length = run_length;
        const Programs programs = or_throw(replay::generate(*algorithm, parameters));
        for (const std::int64_t n : {1, 2, 3, 7, 20}) {
          const auto steps = replay::run(programs, n);
          ASSERT_EQ(message_of(steps), "") << name << " r " << run_length;
          ASSERT_EQ(*steps, expected(p, fractional_run_length(parameters), n))
              << name << " p " << p << " r " << run_length << " N " << n;
        }
        ASSERT_EQ(programs[0].needs_commutative,
                  collective == Collective::kReduce && root != 0 && root + 1 != p);
      }
    }
  }
}

std::int64_t depth_of(std::uint32_t p, std::uint32_t run_length) {
  std::int64_t i = 0;
  while (reached(run_length, i) < p) ++i;
  return i - 1;
}

std::int64_t steps_of(std::uint32_t p, std::uint32_t run_length, std::int64_t n) {
  return p == 2 ? n : depth_of(p, run_length) + n + div_up(n, run_length) - 1;
}

TEST(Fractional, BroadcastReplayed) {
  replay_all("fractional", Collective::kBroadcast,
             [](std::uint32_t p, std::uint32_t run_length, std::int64_t n) {
               return p == 1 ? 0 : steps_of(p, run_length, n);
             });
}

TEST(Fractional, ReduceReplayed) {
  replay_all("fractional", Collective::kReduce,
             [](std::uint32_t p, std::uint32_t run_length, std::int64_t n) {
               return p == 1 ? n : steps_of(p, run_length, n);
             });
}

std::int64_t couples_steps(std::uint32_t p, std::uint32_t run_length, std::int64_t n) {
  if (p == 2) return n;
  const std::uint32_t couples = (p + 1) / 2;
  const bool chain = couples > 2 && depth_of(couples, run_length) == couples - 2;
  return 2 * steps_of(couples, run_length, n) - (p % 2 == 1 && chain ? 1 : 0);
}

TEST(Fractional, SimplexReplayed) {
  replay_all("fractional-simplex", Collective::kBroadcast,
             [](std::uint32_t p, std::uint32_t run_length, std::int64_t n) {
               return p == 1 ? 0 : couples_steps(p, run_length, n);
             });
}

TEST(Fractional, SimplexReduceReplayed) {
  replay_all("fractional-simplex", Collective::kReduce,
             [](std::uint32_t p, std::uint32_t run_length, std::int64_t n) {
               return p == 1 ? n : couples_steps(p, run_length, n);
             });
}

// First blocks with pairs of ranks, P = 1024: the depths found by a prototype.
TEST(Fractional, SimplexDepths) {
  const std::uint32_t runs[] = {2, 4, 6, 8, 10, 12, 16, 20};
  const std::int64_t depths[] = {38, 60, 82, 100, 116, 132, 164, 190};
  const Algorithm& algorithm = *find_algorithm(Collective::kBroadcast, "fractional-simplex");
  for (std::size_t at = 0; at < 8; ++at) {
    Program program;
    ASSERT_EQ(algorithm.generate({.ranks = 1024, .run_length = runs[at]}, 5, program), Status::kOk);
    EXPECT_EQ(count_value(program.counts[program.steps_ref], 1), depths[at]) << "r " << runs[at];
  }
}

// Run lengths that do not fit a program's tables are refused, and the maximum run length fits.
TEST(Fractional, LongestRun) {
  const struct {
    Collective collective;
    const char* name;
    std::uint32_t run_length;
    std::uint32_t actions;
  } rows[] = {{Collective::kReduce, "fractional", 20, 62},
              {Collective::kBroadcast, "fractional", 30, 61},
              {Collective::kBroadcast, "fractional-simplex", 30, 61},
              {Collective::kReduce, "fractional-simplex", 15, 62}};
  for (const auto& row : rows) {
    const Algorithm& algorithm = *find_algorithm(row.collective, row.name);
    EXPECT_EQ(algorithm.max_run_length, row.run_length);
    Program program;
    EXPECT_EQ(algorithm.generate({.ranks = 9, .run_length = row.run_length + 1}, 3, program),
              Status::kTooLarge);
    EXPECT_EQ(program.actions_count, 0);
    std::uint32_t most = 0;
    for (std::uint32_t rank = 0; rank < 2000; ++rank) {
      const CollectiveParameters parameters{
          .ranks = 2000, .root = 77, .window = 64, .run_length = row.run_length};
      ASSERT_EQ(algorithm.generate(parameters, rank, program), Status::kOk) << rank;
      most = std::max<std::uint32_t>(most, program.actions_count);
    }
    EXPECT_EQ(most, row.actions);
  }
}

TEST(Fractional, NeighboursAgreeAtAnySize) {
  for (const char* name : {"fractional", "fractional-simplex"}) {
    const Algorithm* algorithm = find_algorithm(Collective::kBroadcast, name);
    for (const std::uint32_t run_length : {1u, 4u, 20u, algorithm->max_run_length}) {
      for (std::uint32_t sample = 0; sample < 50; ++sample) {
        const std::uint32_t p = kMaxRanks - 2 - sample;
        CollectiveParameters parameters{
            .ranks = p, .root = sample * 1000, .run_length = run_length};
        const auto transfers = replay::neighbours(*algorithm, parameters, p / 50 * sample);
        ASSERT_EQ(message_of(transfers), "") << name << " run " << run_length;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
