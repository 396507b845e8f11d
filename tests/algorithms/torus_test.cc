// Algorithms on tori, rings and meshes of three dimensions, replayed: steps and traffic as stated,
// and at most one message per link and step. The links are computed here, independently of
// topology/ and of the verifier. By default a sample of sizes; all with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/schedule/expand.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

struct Grid {
  std::vector<std::uint32_t> sizes;
  bool wraps;

  [[nodiscard]] std::uint32_t ranks() const {
    std::uint32_t ranks = 1;
    for (const std::uint32_t size : sizes) ranks *= size;
    return ranks;
  }
  [[nodiscard]] std::string name() const {
    std::string name = wraps ? "torus" : "mesh";
    for (const std::uint32_t size : sizes) name += " " + std::to_string(size);
    return name;
  }
};

std::vector<Grid> grids() {
  std::vector<Grid> all;
  for (const bool wraps : {true, false}) {
    all.insert(all.end(), {{{2, 3, 4}, wraps}, {{3, 3, 3}, wraps}, {{4, 1, 3}, wraps}});
    all.insert(all.end(), {{{1, 1, 1}, wraps}, {{5, 2, 2}, wraps}, {{1, 1, 6}, wraps}});
  }
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 8u, 13u}) all.push_back({{ranks}, true});
  all.insert(all.end(), {{{2, 2}, true}, {{3, 4}, true}, {{4, 5}, true}, {{1, 7}, true}});
  if (!whole()) return all;
  for (std::uint32_t ranks = 1; ranks <= 64; ++ranks) all.push_back({{ranks}, true});
  for (std::uint32_t a = 1; a <= 5; ++a) {
    for (std::uint32_t b = 1; b <= 5; ++b) {
      all.push_back({{a, b}, true});
      for (std::uint32_t c = 1; c <= 5; ++c) {
        all.push_back({{a, b, c}, true});
        all.push_back({{a, b, c}, false});
      }
    }
  }
  return all;
}

CollectiveParameters parameters_on(const Grid& grid) {
  CollectiveParameters parameters{.ranks = grid.ranks()};
  parameters.grid = grid.sizes.data();
  parameters.dimensions = static_cast<std::uint32_t>(grid.sizes.size());
  parameters.wraps = grid.wraps;
  parameters.topology_digest = 7;
  return parameters;
}

using DirectedLink = std::pair<std::uint32_t, std::uint32_t>;

// The links of a message between ranks that differ in one dimension: the one link of a torus, or
// those along the line of a mesh. None if they differ in several, or are no neighbours on a torus.
std::vector<DirectedLink> links_between(const Grid& grid, std::uint32_t from, std::uint32_t to) {
  std::vector<DirectedLink> links;
  std::uint32_t stride = 1;
  for (std::size_t d = grid.sizes.size(); d-- > 0; stride *= grid.sizes[d]) {
    const std::uint32_t size = grid.sizes[d], a = from / stride % size, b = to / stride % size;
    if (a == b || from + b * stride != to + a * stride) continue;
    const bool neighbours = (a + 1) % size == b || (b + 1) % size == a;
    if (grid.wraps) return neighbours ? std::vector{DirectedLink{from, to}} : links;
    for (std::uint32_t node = from; node != to;) {
      const std::uint32_t next = a < b ? node + stride : node - stride;
      links.emplace_back(node, next);
      node = next;
    }
  }
  return links;
}

// The sum over the steps of the longest message, in parts of one rank; -1 if a link has two
// messages in a step, or a message has no links.
std::int64_t traffic_of(const Grid& grid, const Programs& programs) {
  std::map<std::pair<std::int64_t, DirectedLink>, int> loads;
  std::map<std::int64_t, std::int64_t> longest;
  for (const Program& program : programs) {
    for (const Instance& one : expand(program, 1)) {
      if (one.kind != ActionKind::kSend) continue;
      const auto links = links_between(grid, program.node, static_cast<std::uint32_t>(one.peer));
      if (links.empty()) return -1;
      for (const DirectedLink& link : links) {
        if (++loads[{one.step, link}] > 1) return -1;
      }
      longest[one.step] = std::max<std::int64_t>(longest[one.step], one.a.segment_count);
    }
  }
  std::int64_t traffic = 0;
  for (const auto& [step, parts] : longest) traffic += parts;
  return traffic;
}

struct Stated {
  std::int64_t steps = 0, traffic = 0;
};

// As the head of bucket.cc states them.
Stated stated(const Algorithm& algorithm, const Grid& grid) {
  const bool both = std::string(algorithm.name) == "bidirectional-bucket";
  Stated stated;
  std::int64_t later = 1;
  for (std::size_t d = grid.sizes.size(); d-- > 0; later *= grid.sizes[d]) {
    const std::int64_t steps = both ? grid.sizes[d] / 2 : grid.sizes[d] - 1;
    stated.steps += steps;
    stated.traffic += steps * later;
  }
  if (algorithm.collective == Collective::kAllreduce) {
    stated.steps *= 2;
    stated.traffic *= 2;
  }
  return stated;
}

TEST(TorusAlgorithms, TakeTheStatedStepsAndTrafficWithoutContention) {
  std::uint32_t schedules = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kGrid && algorithm.where != Where::kTorus) continue;
    for (const Grid& grid : grids()) {
      CollectiveParameters parameters = parameters_on(grid);
      if (!runs_on(algorithm, parameters)) continue;
      for (const std::uint32_t window : {1u, 3u, 8u}) {
        parameters.window = window;
        const std::string name = std::string(collective_name(algorithm.collective)) + " " +
                                 algorithm.name + " on " + grid.name();
        const Programs programs = or_throw(replay::generate(algorithm, parameters));
        const auto steps = replay::run(programs, 1);
        ASSERT_EQ(message_of(steps), "") << name;
        if (grid.ranks() == 1) continue;  // a copy, if anything
        const Stated expected = stated(algorithm, grid);
        EXPECT_EQ(*steps, expected.steps) << name;
        EXPECT_EQ(traffic_of(grid, programs), expected.traffic) << name;
        ++schedules;
      }
    }
  }
  std::printf("replayed %u schedules\n", schedules);
  EXPECT_GT(schedules, 150u);
}

// The check finds a second message on a link: two rings on a mesh.
TEST(TorusAlgorithms, RingsInBothDirectionsShareTheLinksOfAMesh) {
  const Grid torus{{2, 3}, true}, mesh{{2, 3}, false};
  const Algorithm& both = *find_algorithm(Collective::kAllgather, "bidirectional-bucket");
  const Programs programs = or_throw(replay::generate(both, parameters_on(torus)));
  EXPECT_GT(traffic_of(torus, programs), 0);
  EXPECT_EQ(traffic_of(mesh, programs), -1);
}

TEST(TorusAlgorithms, Refusals) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kGrid && algorithm.where != Where::kTorus) continue;
    Program program;
    const auto status = [&](const Grid& grid, std::uint32_t ranks) {
      CollectiveParameters parameters = parameters_on(grid);
      parameters.ranks = ranks;
      return algorithm.generate(parameters, 0, program);
    };
    EXPECT_EQ(algorithm.generate({.ranks = 6}, 0, program), Status::kUnsupported) << algorithm.name;
    EXPECT_EQ(status({{2, 3}, true}, 7), Status::kUnsupported) << algorithm.name;
    EXPECT_EQ(program.actions_count, 0) << algorithm.name;
    EXPECT_EQ(status({{2, 2, 2, 2}, true}, 16), Status::kUnsupported) << "four dimensions";
    EXPECT_EQ(status({{1, 65536}, true}, 65536), Status::kTooLarge) << algorithm.name;
    EXPECT_FALSE(runs_on(algorithm, {.ranks = 6}));
    const Grid mesh{{2, 3}, false};
    EXPECT_EQ(runs_on(algorithm, parameters_on(mesh)), algorithm.where == Where::kGrid);
  }
}

}  // namespace
}  // namespace espalier
