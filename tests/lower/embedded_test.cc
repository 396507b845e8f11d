// The two-tree broadcast on meshes, placed by its known embedding and lowered: one block of each
// segment arrives every two steps, which is the full bandwidth of one of the root's two links.

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/topology/topology.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

// 64 MiB in blocks of 64 KiB at 1 us + 1 ns per byte, on a scale of 1:64: the same number of
// blocks, each of the same transfer time.
constexpr std::uint32_t kScale = 64;
constexpr std::uint64_t kBytes = (64u << 20) / kScale;
constexpr BlockRule kScaledBlocks = {0, 65536 / kScale};
constexpr double kAlpha = 1e-6, kBeta = kScale * 1e-9;

class Embedded : public ::testing::TestWithParam<const char*> {};

TEST_P(Embedded, TwoTreesReachTheirPeriod) {
  const auto topology = or_throw(topology::parse(GetParam()));
  const auto embedding =
      topology::best_embedding(*topology, {.collective = "broadcast",
                                           .algorithm = "two-tree",
                                           .root = 0,
                                           .switching = Switching::kStoreAndForward});
  ASSERT_TRUE(embedding);
  CollectiveParameters parameters = topology_parameters(*topology, 0, &kScaledBlocks);
  Programs programs(programs_of(*find_algorithm(Collective::kBroadcast, "two-tree"), parameters));
  ASSERT_EQ(embed::place_all(embedding->node_of, programs), Status::kOk);
  lower::Report report;
  const Programs lowered =
      or_throw(lower::lower(*topology, parameters, PortModel::kMultiport, programs, report));
  EXPECT_EQ(report.period, 2);
  EXPECT_EQ(report.blocks, 1);
  EXPECT_EQ(report.routed_period, 2);
  const verify::Verdict verdict = verify::verdict_of(*topology, lowered);
  EXPECT_TRUE(verdict.valid && verdict.for_all && verdict.slot) << verdict.counterexample.message;

  sim::Model model = testing::model_for(lowered[0]);
  model.alpha = kAlpha;
  model.beta = kBeta;
  testing::Job job{.count = kBytes / 4, .op = {.type = Type::kI32}};
  // In lock step, two blocks on a link in one step are an error.
  const sim::RunResult result = testing::run_in_lock_step(lowered, job, model);
  EXPECT_EQ(result.steps, phase_steps(lowered[0], 512));
  EXPECT_LE(result.seconds, 1.05 * kBeta * kBytes);
  EXPECT_GE(result.seconds, kBeta * kBytes);
  RecordProperty("microseconds", static_cast<int>(result.seconds * 1e6));
}

INSTANTIATE_TEST_SUITE_P(Meshes, Embedded, ::testing::Values("mesh:4x4", "mesh:8x8"));

}  // namespace
}  // namespace espalier::grid
