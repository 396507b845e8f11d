// The conditions of schedule.h for every p up to 2000 (by default a sample), and the limits of the
// generators. That a program is correct: tests/algorithms and tests/grid.

#include "collectives/algorithms/circulant/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "collectives/build/builder.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Blocks = std::vector<std::int32_t>;

Blocks receives_of(const CirculantSchedule& schedule, std::uint32_t rank) {
  CirculantSchedule::Blocks blocks;
  schedule.receives(rank, blocks);
  return Blocks(blocks, blocks + schedule.rounds());
}

Blocks sends_of(const CirculantSchedule& schedule, std::uint32_t rank) {
  CirculantSchedule::Blocks blocks;
  schedule.sends(rank, blocks);
  return Blocks(blocks, blocks + schedule.rounds());
}

void check_receives(const CirculantSchedule& schedule, std::uint32_t rank, const Blocks& receives) {
  const auto window = static_cast<std::int32_t>(schedule.rounds());
  const auto base = static_cast<std::int32_t>(schedule.base(rank));
  std::set<std::int32_t> wanted{base};
  for (std::int32_t block = -window; block < 0; ++block) {
    if (block != base - window) wanted.insert(block);
  }
  EXPECT_EQ(std::set<std::int32_t>(receives.begin(), receives.end()), wanted) << "rank " << rank;
}

void check_sends(const CirculantSchedule& schedule, std::uint32_t rank,
                 const std::vector<Blocks>& receives) {
  const auto window = static_cast<std::int32_t>(schedule.rounds());
  const Blocks sends = sends_of(schedule, rank);
  std::set<std::int32_t> known{static_cast<std::int32_t>(schedule.base(rank)) - window};
  for (std::uint32_t k = 0; k < schedule.rounds(); ++k) {
    const std::uint32_t receiver = (rank + schedule.skip(k)) % schedule.ranks();
    const bool is_known = rank == 0 ? sends[k] == static_cast<std::int32_t>(k)
                                    : receiver == 0 || known.count(sends[k]) > 0;
    EXPECT_TRUE(is_known) << "rank " << rank << " round " << k;
    if (receiver > 0) {
      EXPECT_EQ(receives[receiver][k], sends[k]) << "rank " << rank;
    }
    if (rank > 0) known.insert(receives[rank][k]);
  }
}

TEST(CirculantSchedule, Conditions) {
  for (std::uint32_t p = 2; p <= 2000; ++p) {
    if (!whole() && p > 130 && p % 149 != 0 && p < 1999) continue;
    const CirculantSchedule schedule(p);
    EXPECT_EQ(schedule.rounds(), log2_ceil(p));
    EXPECT_EQ(schedule.skip(0), 1u);
    std::vector<Blocks> receives(p);
    for (std::uint32_t rank = 1; rank < p; ++rank) {
      receives[rank] = receives_of(schedule, rank);
      check_receives(schedule, rank, receives[rank]);
    }
    for (std::uint32_t rank = 0; rank < p; ++rank) check_sends(schedule, rank, receives);
    ASSERT_FALSE(HasFailure()) << "p " << p;
  }
}

TEST(CirculantSchedule, SkipsOfSeventeen) {
  const CirculantSchedule schedule(17);
  EXPECT_EQ(schedule.rounds(), 5u);
  for (const auto& [k, skip] : {std::pair{0u, 1u}, {1u, 2u}, {2u, 3u}, {3u, 5u}, {4u, 9u}}) {
    EXPECT_EQ(schedule.skip(k), skip);
  }
}

Status status_of(Collective collective, std::uint32_t p, std::uint32_t window, std::uint32_t rank) {
  const Algorithm& algorithm = *find_algorithm(collective, "circulant");
  static const auto program = std::make_unique<Program>();
  const Status status = algorithm.generate({.ranks = p, .window = window}, rank, *program);
  EXPECT_EQ(status == Status::kTooLarge, program->actions_count == 0);
  return status;
}

// The rank with the most actions fits a program up to the limit, with any window; beyond it every
// rank is refused.
TEST(CirculantLimits, Programs) {
  const struct {
    Collective collective;
    std::uint32_t most;
  } cases[] = {{Collective::kBroadcast, 1u << 20}, {Collective::kReduce, 1u << 12}};
  for (const auto& one : cases) {
    for (const std::uint32_t p : {one.most, one.most - 1, one.most / 2 + 1}) {
      const std::uint32_t apart = std::max(1u, p / (whole() ? 10000 : 500));
      for (const std::uint32_t window : {1u, 8u, 64u, 1000u}) {
        for (std::uint32_t rank = 0; rank < p; rank += apart) {
          ASSERT_EQ(status_of(one.collective, p, window, rank), Status::kOk)
              << "p " << p << " rank " << rank << " window " << window;
        }
      }
    }
    for (const std::uint32_t rank : {0u, 1u, one.most}) {
      EXPECT_EQ(status_of(one.collective, one.most + 1, 8, rank), Status::kTooLarge);
    }
  }
}

}  // namespace
}  // namespace espalier
