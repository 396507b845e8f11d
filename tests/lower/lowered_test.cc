// Every algorithm except the fat trees' own, lowered onto the links of meshes, trees, crossbars
// and hosts. Checks that the period is the least that the links allow, as proven by the verifier,
// and that simulated machines give correct results in lock step and asynchronously. More topologies
// and roots with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/schedule/expand.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "planner/make/shape.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

struct RoutedSchedule {
  std::string name;
  Programs programs;
};

CollectiveParameters parameters_for(const topology::Topology& topology,
                                    const topology::Shape& shape, std::uint32_t root) {
  CollectiveParameters parameters = topology_parameters(topology, root, &kBlocks);
  set_shape(shape, parameters);
  return parameters;
}

// The schedules of every algorithm that supports the topology and root.
std::vector<RoutedSchedule> all_routed(const topology::Topology& topology, std::uint32_t root) {
  const topology::Shape shape = topology.shape();
  const CollectiveParameters parameters = parameters_for(topology, shape, root);
  std::vector<RoutedSchedule> all;
  for (const Algorithm& one : algorithms()) {
    if (one.where == Where::kFatTree || !runs_on(one, parameters)) continue;
    RoutedSchedule routed{name_of(one, topology, parameters),
                          Programs(programs_of(one, parameters))};
    if (!routed.programs.empty()) all.push_back(std::move(routed));
  }
  for (const searched::SearchedAlgorithm& algorithm : searched::searched_algorithms()) {
    if (!algorithm.applies(topology)) continue;
    RoutedSchedule routed{std::string(collective_name(algorithm.collective)) + " " +
                              algorithm.name + " on " + topology.title(),
                          {}};
    auto found = algorithm.search(topology, parameters);
    if (!found) continue;  // a number of ranks that it cannot do
    routed.programs = *std::move(found);
    const bool only_ranks = routed.programs.size() == topology.ranks();
    // One that uses several links in a step is hop by hop already.
    const bool one_port = routed.programs[0].port_model != PortModel::kMultiport;
    if (only_ranks && one_port) all.push_back(std::move(routed));
  }
  return all;
}

// The maximum over links of the steps that a link needs for the messages that cross it, counted
// from a run of the programs for `blocks` more blocks.
std::int64_t least_period(const topology::Topology& topology, const Programs& routed,
                          std::int64_t blocks, bool single) {
  const bool pipelined = routed[0].blocks[0].block_bytes != 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> loads;
  for (const Program& program : routed) {
    for (const std::int64_t many : {std::int64_t{1}, std::int64_t{2}}) {
      if (!pipelined && many == 2) continue;
      // N must be one that the residue allows.
      const std::int64_t first = program.residue_mod > 0 ? program.residue : 0;
      for (const Instance& one : expand(program, pipelined ? first + many * blocks : 1)) {
        if (one.kind != ActionKind::kSend) continue;
        const auto route = topology.route(program.node, static_cast<std::uint32_t>(one.peer));
        const std::int64_t segment_count = one.a.segment_count;
        for (std::size_t hop = 1; hop < route.size(); ++hop) {
          loads[{route[hop - 1], single ? route[hop - 1] : route[hop]}] +=
              pipelined && many == 1 ? -segment_count : segment_count;
        }
      }
    }
  }
  std::int64_t period = 1;
  for (const auto& [link, load] : loads) {
    const std::int64_t lanes = single ? 1 : topology.capacity(link.first, link.second);
    period = std::max(period, (load + lanes - 1) / lanes);
  }
  return period;
}

testing::Job job_of(const Programs& programs, std::int64_t blocks) {
  testing::Job job{.root = programs[0].root, .op = {.op = Op::kSum, .type = Type::kI32}};
  const bool barrier = programs[0].collective == Collective::kBarrier;
  job.count = testing::count_of_blocks(programs[0], job.op, static_cast<std::uint64_t>(blocks),
                                       barrier ? 0 : 5);
  return job;
}

void run_all(const topology::Topology& topology, const Programs& programs,
             const std::string& name) {
  const bool barrier = programs[0].collective == Collective::kBarrier;
  testing::JobCluster::Options options;
  options.model = testing::model_for(programs[0], [&](std::uint32_t from, std::uint32_t to) {
    return topology.capacity(from, to);
  });
  for (const std::int64_t blocks : {1, 2, 3, 7}) {
    if (barrier && blocks > 1) continue;
    const testing::Job job = job_of(programs, blocks);
    const sim::RunResult result = testing::run_in_lock_step(programs, job, options.model);
    EXPECT_EQ(result.steps, phase_steps(programs[0], blocks)) << name << ", N " << blocks;
    if (::testing::Test::HasFailure()) return;
  }
  options.model.jitter = 0.9;
  options.unwilling = true;
  testing::run_freely(programs, job_of(programs, barrier ? 1 : 3), options);
  EXPECT_FALSE(::testing::Test::HasFailure()) << name;
}

// Whether the routed schedule is proven to be correct if input and output are the same memory.
bool is_in_place(const topology::Topology& topology, const Programs& routed) {
  return verify::verdict_of(topology, routed, {.links = false}).in_place;
}

void lower_one(const topology::Topology& topology, const RoutedSchedule& routed, PortModel ports,
               bool run) {
  const bool single = ports == PortModel::kSingleSend;
  const std::string name = routed.name + (single ? ", single send" : "");
  const topology::Shape shape = topology.shape();
  const CollectiveParameters parameters = parameters_for(topology, shape, routed.programs[0].root);
  lower::Report report;
  auto made = lower::lower(topology, parameters, ports, routed.programs, report);
  if (!made && made.error().message.find(" have room for ") != std::string::npos) {
    // Programs with an action per segment and hop.
    const auto has = [&routed](const char* word) {
      return routed.name.find(word) != std::string::npos;
    };
    EXPECT_TRUE(has("rabenseifner") || has("recursive-halving") || has("ring") || has("bruck") ||
                has("allreduce circulant") || has("reduce-scatter circulant"))
        << routed.name;
    std::printf("refused: %s\n", made.error().message.c_str());
    return;
  }
  if (!made &&
      made.error().message.find("its nodes send over several links") != std::string::npos) {
    EXPECT_TRUE(single && routed.programs[0].port_model == PortModel::kMultiport) << name;
    return;
  }
  const Programs lowered = or_throw(std::move(made));
  ASSERT_EQ(lowered.size(), topology.nodes()) << name;
  ASSERT_TRUE(lower::is_hop_by_hop(topology, lowered)) << name;
  const verify::Verdict verdict = verify::verdict_of(topology, lowered);
  ASSERT_TRUE(verdict.valid) << name << ": " << verdict.counterexample.message;
  EXPECT_TRUE(verdict.for_all) << name << ": " << verdict.limited;
  EXPECT_TRUE(verdict.slot && verdict.async) << name;
  EXPECT_TRUE(verdict.in_place || !is_in_place(topology, routed.programs)) << name;
  if (report.changed) {
    EXPECT_EQ(report.period, least_period(topology, routed.programs, report.blocks, single))
        << name;
    EXPECT_EQ(phase_steps(lowered[0], 2 * report.blocks) - phase_steps(lowered[0], report.blocks),
              report.period)
        << name;
  }
  if (run) run_all(topology, lowered, name);
}

void lower_all(const std::string& spec, std::uint32_t root, PortModel ports, bool run) {
  const auto topology = or_throw(topology::read(spec));
  const std::vector<RoutedSchedule> all = all_routed(*topology, root);
  EXPECT_GE(all.size(), 22u) << "so many can do any number of ranks";
  for (const RoutedSchedule& routed : all) {
    lower_one(*topology, routed, ports, run);
    if (::testing::Test::HasFailure()) return;
  }
}

struct Operand {
  const char* spec;
  std::uint32_t root;
};

class Lowered : public ::testing::TestWithParam<Operand> {};

TEST_P(Lowered, IsProvenAndRuns) {
  lower_all(GetParam().spec, GetParam().root, PortModel::kMultiport, true);
}
TEST_P(Lowered, IsProvenAndRunsWithSingleSends) {
  lower_all(GetParam().spec, GetParam().root, PortModel::kSingleSend, whole());
}

constexpr Operand kPlaces[] = {{"mesh:4x4", 5},
                               {"mesh:3x5", 0},
                               {"mesh:1x6", 2},
                               {"fattree:k=4,h=2,c=1", 0},
                               {"fattree:k=4,h=2,c=k", 3},
                               {"fattree:k=2,h=4,c=1", 7},
                               {"fattree:k=3,h=2,c=2,3", 1},
                               {"fattree:k=4x3,c=1,2", 5},
                               {"crossbar:4x4", 6},
                               {"crossbar:2x2x3", 7},
                               {"hosts:3x4", 6},
                               {"torus:3x3", 5},
                               {"mesh:2x2x2", 2},
                               {"ring:5", 3},
                               {"hyperx:2x3", 1},
                               {"dragonfly:2x2x2", 2},
                               {"file:" ESPALIER_EXAMPLES "/broken-mesh.textproto", 5},
                               {"file:" ESPALIER_EXAMPLES "/uneven-tree.textproto", 1}};
INSTANTIATE_TEST_SUITE_P(Sample, Lowered, ::testing::ValuesIn(kPlaces));

TEST(LoweredLarge, MeshOf64IsProven) { lower_all("mesh:8x8", 0, PortModel::kMultiport, whole()); }

}  // namespace
}  // namespace espalier::grid
