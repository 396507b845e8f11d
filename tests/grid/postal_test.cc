// The postal model's algorithms [Bruck96], and k-nomial trees with several radices: verified, and
// run in lock step, for many lambda. On every mesh up to 8x8 the messages of one step of lambda-
// and alpha-trees share no link, from every source. All of this with ESPALIER_WHOLE=1, otherwise a
// sample.

#include <gtest/gtest.h>

#include <utility>

#include "base/testing/results.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

// Ticks S and L: lambda = 1, 1.29, 1.5, 1.8, 2, 2.5, 3, 5.
constexpr std::pair<std::uint32_t, std::uint32_t> kTicks[] = {{1, 1}, {7, 9}, {2, 3}, {5, 9},
                                                              {1, 2}, {2, 5}, {1, 3}, {2, 10}};

// alpha = `quarters` / 4; 0: the algorithm's choice.
void check_lambda(const Algorithm& algorithm, std::uint32_t ranks, std::uint32_t radix = 0,
                  std::uint32_t quarters = 0) {
  const auto topology = or_throw(topology::parse("complete:" + std::to_string(ranks)));
  for (const auto& [send, latency] : kTicks) {
    for (const std::uint32_t window : {1u, 8u, 16u}) {
      CollectiveParameters parameters;
      parameters.ranks = ranks;
      parameters.root = has_root(algorithm.collective) ? ranks / 3 : 0;
      parameters.radix = radix;
      parameters.ratio_numerator = quarters;
      parameters.ratio_denominator = quarters == 0 ? 0 : 4;
      parameters.topology_digest = topology->digest();
      parameters.window = window;
      parameters.send_ticks = send;
      parameters.latency_ticks = latency;
      const Programs programs = programs_of(algorithm, parameters);
      ASSERT_FALSE(programs.empty());
      const std::string name = name_of(algorithm, *topology, parameters);
      (void)verified(*topology, programs, 1, name);
      if (programs[0].window <= 16) run(programs, parameters, 1, name);
      ASSERT_FALSE(::testing::Test::HasFailure()) << name << ", window " << window;
    }
  }
}

TEST(Grid, PostalModel) {
  for (std::uint32_t ranks = 2; ranks <= 64; ranks += whole() ? 1 : 11) {
    ASSERT_NO_FATAL_FAILURE(
        check_lambda(*find_algorithm(Collective::kBroadcast, "lambda-tree"), ranks));
    ASSERT_NO_FATAL_FAILURE(
        check_lambda(*find_algorithm(Collective::kBroadcast, "alpha-table"), ranks));
    for (const std::uint32_t quarters : {0u, 1u, 2u, 3u}) {
      ASSERT_NO_FATAL_FAILURE(
          check_lambda(*find_algorithm(Collective::kBroadcast, "alpha-tree"), ranks, 0, quarters));
    }
    ASSERT_NO_FATAL_FAILURE(
        check_lambda(*find_algorithm(Collective::kAllreduce, "combine"), ranks));
    for (const Collective::Value collective :
         {Collective::kBroadcast, Collective::kReduce, Collective::kScatter, Collective::kGather}) {
      for (const std::uint32_t radix : {0u, 3u, 4u, 9u}) {
        ASSERT_NO_FATAL_FAILURE(check_lambda(*find_algorithm(collective, "knomial"), ranks, radix));
      }
    }
  }
}

// [Bruck96] section 2.6: row-major order from the source onward, cyclically. It holds if a message
// keeps its links for one step, as here.
void check_mesh(const char* name_of_tree, std::uint32_t rows, std::uint32_t columns) {
  const Algorithm& algorithm = *find_algorithm(Collective::kBroadcast, name_of_tree);
  const auto topology =
      or_throw(topology::parse("mesh:" + std::to_string(rows) + "x" + std::to_string(columns)));
  for (const auto& [send, latency] : kTicks) {
    for (std::uint32_t root = 0; root < rows * columns; root += whole() ? 1 : 5) {
      CollectiveParameters parameters{.ranks = rows * columns,
                                      .root = root,
                                      .topology_digest = topology->digest(),
                                      .rows = rows,
                                      .columns = columns,
                                      .send_ticks = send,
                                      .latency_ticks = latency};
      const Programs programs = programs_of(algorithm, parameters);
      ASSERT_FALSE(programs.empty());
      ASSERT_EQ(programs[0].contention, ContentionGuarantee::kSlot);
      const std::string name = name_of(algorithm, *topology, parameters);
      const verify::Verdict verdict = verified(*topology, programs, 1, name);
      ASSERT_TRUE(verdict.valid && verdict.slot) << name;
    }
  }
}

TEST(Grid, LambdaTreesOnMeshes) {
  for (std::uint32_t rows = 1; rows <= 8; ++rows) {
    for (std::uint32_t columns = 1; columns <= 8; ++columns) {
      if (rows * columns < 2) continue;
      if (!whole() && (rows + columns) % 3 != 1) continue;
      for (const char* tree : {"lambda-tree", "alpha-tree", "alpha-table"}) {
        ASSERT_NO_FATAL_FAILURE(check_mesh(tree, rows, columns));
      }
    }
  }
}

}  // namespace
}  // namespace espalier::grid
