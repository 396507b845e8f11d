// Circulant broadcast and reduce: proven for every N, in exactly N - 1 + ceil(log2 p) steps, which
// is the bound; and run on simulated machines for every N up to 40 that the residue allows.
// Allgather, reduce-scatter and allreduce: proven and run, with lengths that p does not divide and
// with a count for each rank. p up to 300 with ESPALIER_WHOLE=1 (some minutes), otherwise a sample.

#include <gtest/gtest.h>

#include <set>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/build/builder.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

constexpr std::int64_t kMostBlocks = 40;

std::vector<std::uint32_t> circulant_sizes() {
  std::vector<std::uint32_t> all;
  const std::set<std::uint32_t> edges{31, 32, 33, 100, 129, 256, 300};
  for (std::uint32_t p = 2; p <= (small_sample() ? 33 : 300); ++p) {
    if (whole() || p <= 17 || edges.count(p) > 0) all.push_back(p);
  }
  return all;
}

void check(const topology::Topology& topology, const Algorithm& algorithm, std::uint32_t root) {
  CollectiveParameters parameters = topology_parameters(topology, root, &kBlocks);
  const std::string name = name_of(algorithm, topology, parameters);
  const Programs programs = programs_of(algorithm, parameters);
  ASSERT_FALSE(programs.empty()) << name;
  const verify::Verdict verdict = verified(topology, programs, 0, name);
  EXPECT_TRUE(verdict.for_all) << name << ": " << verdict.limited;
  const Program& first = programs[0];
  const std::int64_t rounds = log2_ceil(parameters.ranks);
  EXPECT_EQ(std::max(1u, first.residue_mod), rounds) << name;
  EXPECT_EQ(first.residue, rounds > 1 ? 1u : 0u) << name;
  for (std::int64_t blocks = 1; blocks <= kMostBlocks; blocks += rounds) {
    EXPECT_EQ(count_value(first.counts[first.steps_ref], blocks), blocks - 1 + rounds) << name;
    EXPECT_EQ(count_value(first.counts[first.bound_ref], blocks), blocks - 1 + rounds) << name;
    // p N blocks move, so the samples of large p run the first N only.
    if (!whole() && parameters.ranks > 20 && blocks > rounds + 1) continue;
    run(programs, parameters, blocks, name);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Circulant, EveryN) {
  for (const std::uint32_t p : circulant_sizes()) {
    const auto topology = or_throw(topology::parse("complete:" + std::to_string(p)));
    for (const Collective collective : {Collective::kBroadcast, Collective::kReduce}) {
      const Algorithm* const algorithm = find_algorithm(collective, "circulant");
      ASSERT_NE(algorithm, nullptr);
      for (const std::uint32_t root : std::set<std::uint32_t>{0, p / 3, p - 1}) {
        if (!whole() && p > 20 && root != p / 3) continue;
        check(*topology, *algorithm, root);
        if (HasFailure()) return;
      }
    }
  }
}

// One block: a message is a run of segments in rotated scratch.
TEST(Circulant, RunsOfSegments) {
  for (const std::uint32_t p : circulant_sizes()) {
    const auto topology = or_throw(topology::parse("complete:" + std::to_string(p)));
    CollectiveParameters parameters{.ranks = p, .topology_digest = topology->digest()};
    std::uint32_t tried = 0;
    for (const Algorithm& algorithm : algorithms()) {
      const Programs programs = programs_of(algorithm, parameters);
      if (programs.empty() || !has_rotated_scratch(programs[0])) continue;
      ++tried;
      const std::string name = name_of(algorithm, *topology, parameters);
      EXPECT_TRUE(verified(*topology, programs, 1, name).for_all) << name;
      run(programs, parameters, 1, name);
      if (HasFailure()) return;
    }
    EXPECT_EQ(tried, 4u);
  }
}

}  // namespace
}  // namespace espalier::grid
