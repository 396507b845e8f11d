// Every algorithm for meshes, tori and rings, rank-local and searched, verified with its claim
// about the links, and run on simulated machines in the steps that it claims, with the reference's
// results: squares, other shapes, odd and prime sizes and lines, every root class. Butterflies on
// hypercubes. By default a sample; the whole with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <set>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "espalier/collectives/search.h"
#include "planner/make/shape.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

std::vector<std::string> specs() {
  std::vector<std::string> all{"mesh:1x1",  "mesh:1x6",  "mesh:7x1",  "mesh:2x2",    "mesh:3x3",
                               "mesh:2x5",  "mesh:4x4",  "mesh:5x7",  "mesh:2x3x4",  "torus:1x1",
                               "torus:2x2", "torus:3x4", "torus:5x4", "torus:2x3x4", "torus:3x3x3",
                               "ring:1",    "ring:2",    "ring:3",    "ring:8",      "ring:9"};
  if (!whole()) return all;
  all.insert(all.end(), {"mesh:8x8", "mesh:2x16", "mesh:11x3", "mesh:7x9", "mesh:1x23", "torus:8x8",
                         "torus:4x4x4", "torus:5x3x2", "mesh:4x3x5", "ring:31", "ring:32"});
  for (int rows = 1; rows <= 6; ++rows) {
    for (int columns = 1; columns <= 6; ++columns) {
      all.push_back("mesh:" + std::to_string(rows) + "x" + std::to_string(columns));
    }
  }
  return all;
}

CollectiveParameters parameters_on(const topology::Topology& topology, const topology::Shape& shape,
                                   std::uint32_t root) {
  CollectiveParameters parameters = topology_parameters(topology, root, &kBlocks);
  set_shape(shape, parameters);
  return parameters;
}

void prove_and_run(const topology::Topology& topology, const CollectiveParameters& parameters,
                   const Programs& programs) {
  ASSERT_FALSE(programs.empty());
  const std::string name = std::string(collective_name(programs[0].collective)) + " " +
                           programs[0].algorithm + " on " + topology.spec() + ", root " +
                           std::to_string(parameters.root);
  const verify::Verdict verdict = verified(topology, programs, 0, name);
  EXPECT_TRUE(verdict.slot) << name << ": one message per step and link";
  const bool pipelined = programs[0].blocks[0].block_bytes != 0;
  EXPECT_EQ(verdict.for_all || !pipelined, true) << name << ": " << verdict.limited;
  for (const std::int64_t blocks : {1, 2, 3, 7}) {
    if (::testing::Test::HasFailure()) return;
    if (blocks == 1 || pipelined) run(programs, parameters, blocks, name);
  }
}

TEST(Grid, Mesh) {
  std::uint32_t schedules = 0;
  for (const std::string& spec : specs()) {
    const auto topology = or_throw(topology::parse(spec));
    const topology::Shape shape = topology->shape();
    const std::uint32_t p = topology->ranks(), columns = std::max(1u, shape.columns);
    if (small_sample() && p > 16) continue;
    for (const Algorithm& one : algorithms()) {
      const CollectiveParameters any = parameters_on(*topology, shape, 0);
      const bool for_grids = one.where == Where::kGrid || one.where == Where::kTorus;
      if (!for_grids || !runs_on(one, any)) continue;
      const bool rooted = has_root(one.collective);
      for (const std::uint32_t root :
           rooted ? std::set{0u, columns - 1, p / 2, p - 1} : std::set{0u}) {
        const CollectiveParameters parameters = parameters_on(*topology, shape, root);
        prove_and_run(*topology, parameters, programs_of(one, parameters));
        if (HasFailure()) return;
        ++schedules;
      }
    }
    for (const searched::SearchedAlgorithm& algorithm : searched::searched_algorithms()) {
      const bool all_port = std::string(algorithm.name) == "all-port";
      // tests/graphs covers what takes any graph.
      const bool any_graph = algorithm.collective == Collective::kAllToAll && algorithm.own_links;
      if ((algorithm.collective != Collective::kAllToAll && !all_port) || any_graph ||
          !algorithm.applies(*topology)) {
        continue;
      }
      const CollectiveParameters parameters = parameters_on(*topology, shape, 0);
      prove_and_run(*topology, parameters, or_throw(algorithm.search(*topology, parameters)));
      if (HasFailure()) return;
      ++schedules;
    }
  }
  std::printf("%u schedules verified and run\n", schedules);
  EXPECT_GE(schedules, 40u);
}

// The steps of `all-port` are as few as the links of a node and the diameter allow. torus:2x2x3 is
// the one known exception.
TEST(Grid, AllPortUsesEveryLink) {
  std::vector<std::string> specs{"ring:2",      "ring:9",      "ring:32",    "torus:2x3",
                                 "torus:3x4",   "torus:4x4",   "torus:7x5",  "torus:8x8",
                                 "torus:2x3x4", "torus:3x3x3", "torus:2x16", "hypercube:1",
                                 "hypercube:3", "hypercube:5"};
  if (whole()) {
    specs.insert(specs.end(), {"torus:4x4x4", "torus:16x16", "torus:4x8x8", "hypercube:8"});
    for (int p = 1; p <= 64; ++p) specs.push_back("ring:" + std::to_string(p));
  }
  const auto* algorithm = searched::find_searched(Collective::kAllgather, "all-port");
  ASSERT_NE(algorithm, nullptr);
  for (const std::string& spec : specs) {
    const auto topology = or_throw(topology::parse(spec));
    const std::int64_t p = topology->ranks(), links = topology->link_count() / topology->ranks();
    std::int64_t diameter = 0;
    for (std::uint32_t to = 0; to < p; ++to) {
      diameter = std::max<std::int64_t>(diameter, topology->route(0, to).size() - 1);
    }
    const topology::Shape shape = topology->shape();
    const CollectiveParameters parameters = parameters_on(*topology, shape, 0);
    const Programs programs = or_throw(algorithm->search(*topology, parameters));
    const std::int64_t least =
        p == 1 ? 1 : std::max(diameter, (p - 1 + links - 1) / links);  // alone: a copy
    EXPECT_EQ(phase_steps(programs[0], 1), least) << spec;
    EXPECT_EQ(phase_steps(programs[0], 5), 5 * least) << spec;
  }
  const auto exception = or_throw(topology::parse("torus:2x2x3"));
  const topology::Shape shape = exception->shape();
  const CollectiveParameters parameters = parameters_on(*exception, shape, 0);
  EXPECT_EQ(phase_steps(or_throw(algorithm->search(*exception, parameters))[0], 1), 4);
}

// Partners of a butterfly differ in one bit: they are neighbours on a hypercube, and each link
// carries one message in its own step only.
TEST(Grid, ButterfliesOnHypercubesHaveNoContention) {
  constexpr std::pair<Collective, const char*> kButterflies[] = {
      {Collective::kAllreduce, "recursive-doubling"},
      {Collective::kAllreduce, "rabenseifner"},
      {Collective::kAllgather, "recursive-doubling"},
      {Collective::kBarrier, "recursive-doubling"}};
  for (const char* spec : {"hypercube:1", "hypercube:2", "hypercube:3", "hypercube:5"}) {
    const auto topology = or_throw(topology::parse(spec));
    const topology::Shape shape = topology->shape();
    const CollectiveParameters parameters = parameters_on(*topology, shape, 0);
    for (const auto& [collective, algorithm] : kButterflies) {
      prove_and_run(*topology, parameters,
                    programs_of(*find_algorithm(collective, algorithm), parameters));
    }
  }
}

}  // namespace
}  // namespace espalier::grid
