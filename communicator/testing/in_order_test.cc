// Every collective that combines, with an operator that does not commute, to every root, for short,
// medium and long messages: the results are those in the order of ranks. A sample. With
// ESPALIER_WHOLE=1, every number of ranks up to 9, and more sizes.

#include <gtest/gtest.h>

#include <string>

#include "base/testing/results.h"
#include "communicator/schedules.h"
#include "communicator/testing/affine_maps.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using communicator::ScheduleRequest;
using communicator::Schedules;
using namespace communicator::testing;

constexpr Collective::Value kCombining[] = {Collective::kReduce, Collective::kAllreduce,
                                            Collective::kScan, Collective::kExscan,
                                            Collective::kReduceScatter};

// The part of reduced() that the collective leaves on `me`, which may be none.
std::vector<Affine> expected(Collective collective, std::uint32_t me, std::uint32_t ranks,
                             std::uint32_t root, std::uint64_t count) {
  std::uint32_t end = ranks;
  std::uint64_t begin = 0;
  if (collective == Collective::kScan) end = me + 1;
  if (collective == Collective::kExscan) end = me;
  if (collective == Collective::kReduceScatter) begin = me * count;
  if (end == 0 || (collective == Collective::kReduce && me != root)) return {};
  std::vector<Affine> all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = reduced(end, begin + i);
  return all;
}

void check(Communicator& world, Collective collective, std::uint32_t root, std::uint64_t count) {
  const std::uint32_t me = world.rank(), ranks = world.size();
  const bool scatters = collective == Collective::kReduceScatter;
  std::vector<Affine> input(scatters ? ranks * count : count), output(count);
  for (std::uint64_t i = 0; i < input.size(); ++i) input[i] = value_of(me, i);
  Call call{.collective = collective,
            .send = input.data(),
            .receive = output.data(),
            .count = count,
            .op = kJoin,
            .root = root};
  const auto done = world.run(call);
  const std::string what = std::string(collective_name(collective)) + " of " +
                           std::to_string(count) + " on " + std::to_string(ranks) +
                           " ranks, root " + std::to_string(root);
  ASSERT_TRUE(done) << what << ": " << done.error().message;
  const std::vector<Affine> wanted = expected(collective, me, ranks, root, count);
  EXPECT_TRUE(wanted.empty() || output == wanted) << what << ", rank " << me;
}

void check_ranks(std::uint32_t ranks) {
  std::vector<std::uint64_t> counts = {1, 3000, 20'000};
  if (whole()) counts = {1, 7, 64, 512, 3000, 8192, 20'000, 65'000, 200'000};
  on_all(ranks, [&](Communicator& world) {
    for (const Collective collective : kCombining) {
      const std::uint32_t roots = has_root(collective) ? ranks : 1;
      for (std::uint32_t root = 0; root < roots; ++root) {
        for (const std::uint64_t count : counts) check(world, collective, root, count);
      }
    }
  });
}

TEST(InOrder, EveryRootOfFourRanks) { check_ranks(4); }

TEST(InOrder, EveryNumberOfRanks) {
  for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) {
    if (sampled(ranks, 9)) check_ranks(ranks);
  }
}

// The choice alone, for more ranks than a test has threads; above 64 of them it is fixed.
TEST(InOrder, EveryChoiceKeepsTheOrder) {
  for (const std::uint32_t ranks : {2u, 3u, 6u, 65u}) {
    const auto schedules = or_throw(Schedules::make(ranks / 2, ranks, {}, {}));
    for (const Collective collective : kCombining) {
      for (std::uint32_t root = 0; root < (has_root(collective) ? ranks : 1); ++root) {
        if (ranks > 6 && root % (ranks / 4) > 1) continue;
        for (const std::uint64_t bytes : {16u, 48'000u, 320'000u, 4u << 20}) {
          const ScheduleRequest request = {
              .collective = collective, .root = root, .bytes = bytes, .commutes = false};
          const auto planned = or_throw(schedules->obtain(request));
          EXPECT_FALSE(planned->program.needs_commutative)
              << planned->algorithm << " for root " << root << " of " << ranks;
          EXPECT_NE(schedules->find(request), nullptr);
        }
      }
    }
  }
}

// Recursive halving takes a count for each rank and keeps the order, but is not chosen for every
// number of ranks. Without it all ranks refuse the call alike.
TEST(InOrder, UnequalPartsAreInOrderOrRefused) {
  const ScheduleRequest request = {.collective = Collective::kReduceScatter,
                                   .bytes = 48'000,
                                   .commutes = false,
                                   .unequal_counts = true};
  for (const std::uint32_t ranks : {2u, 5u, 8u}) {
    const auto schedules = or_throw(Schedules::make(1, ranks, {}, {}));
    const auto given = or_throw(schedules->obtain(request));
    EXPECT_EQ(given->algorithm, "recursive-halving") << ranks << " ranks";
    EXPECT_FALSE(given->program.needs_commutative) << ranks << " ranks";
  }
  for (const std::uint32_t ranks : {17u, 70u}) {
    const auto refused = or_throw(Schedules::make(1, ranks, {}, {}))->obtain(request);
    ASSERT_FALSE(refused) << ranks << " ranks: " << (*refused)->algorithm;
    EXPECT_EQ(refused.error().message,
              "no schedule of reduce-scatter with a count for each rank keeps the order of ranks, "
              "and the operator does not commute");
  }
}

}  // namespace
}  // namespace espalier
