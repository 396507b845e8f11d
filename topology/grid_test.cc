// Routes of grids: meshes, tori, rings, hypercubes and hyperx.

#include "topology/testing/must_parse.h"

namespace espalier::topology {
namespace {

TEST(Grid, MeshRoutesRowFirst) {
  const auto mesh = must_parse("mesh:3x4");
  expect_paths(*mesh, {{0, 1, 2, 3, 7, 11}, {11, 10, 9, 8, 4, 0}});
  EXPECT_EQ(mesh->node_name(7), "rank 7 (row 1, column 3)");
}

TEST(Grid, ThreeDimensionsRouteColumnsRowsPlanes) {
  const auto mesh = must_parse("mesh:2x3x4");
  expect_paths(*mesh, {{0, 1, 2, 3, 7, 11, 23}, {23, 22, 21, 20, 16, 12, 0}});
  EXPECT_EQ(mesh->node_name(19), "rank 19 (plane 1, row 1, column 3)");
}

// The shorter way round; both ways of an even ring are equally long to the opposite rank: upward.
TEST(Grid, TorusRoutesTakeTheShorterWayAndTiesGoUp) {
  const auto ring = must_parse("ring:6");
  expect_paths(*ring, {{0, 1, 2}, {0, 5, 4}, {0, 1, 2, 3}, {3, 4, 5, 0}});
  EXPECT_EQ(ring->node_name(3), "rank 3");
  expect_paths(*must_parse("torus:4x5"), {{0, 4, 3, 8, 13}, {13, 14, 10, 15, 0}, {17, 2}});
}

// Distances by breadth-first search over links(), which knows nothing of dimensions.
std::vector<std::uint32_t> distances(const Topology& topology, std::uint32_t from) {
  std::vector<std::vector<std::uint32_t>> next(topology.nodes());
  for (const Link& link : topology.links()) next[link.from].push_back(link.to);
  std::vector<std::uint32_t> distance(topology.nodes(), ~0u), queue = {from};
  distance[from] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::uint32_t to : next[queue[i]]) {
      if (distance[to] != ~0u) continue;
      distance[to] = distance[queue[i]] + 1;
      queue.push_back(to);
    }
  }
  return distance;
}

TEST(Grid, RoutesOfGridsAreShortest) {
  for (const char* spec :
       {"mesh:3x4", "mesh:2x3x4", "torus:4x5", "torus:2x2", "torus:3x4x5", "torus:1x6", "ring:2",
        "ring:8", "ring:9", "hypercube:5", "hyperx:4x3", "hyperx:2x3x4"}) {
    const auto topology = must_parse(spec);
    for (std::uint32_t from = 0; from < topology->nodes(); ++from) {
      const std::vector<std::uint32_t> distance = distances(*topology, from);
      for (std::uint32_t to = 0; to < topology->nodes(); ++to) {
        ASSERT_EQ(topology->route(from, to).size(), distance[to] + 1u)
            << spec << " " << from << " " << to;
      }
    }
  }
}

// A rotation of a torus maps routes onto routes, because ties depend on no rank's number.
TEST(Grid, RoutesOfToriDoNotDependOnTheOrigin) {
  for (const char* spec : {"torus:4x6", "torus:2x4x3"}) {
    const auto torus = must_parse(spec);
    const std::vector<std::uint32_t> sizes = torus->shape().grid;
    const auto moved = [&sizes](std::uint32_t node) {
      std::uint32_t stride = 1, to = 0;
      for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
        to += (node / stride + 1) % sizes[d] * stride;
      }
      return to;
    };
    for (std::uint32_t from = 0; from < torus->nodes(); ++from) {
      for (std::uint32_t to = 0; to < torus->nodes(); ++to) {
        std::vector<std::uint32_t> route = torus->route(from, to);
        for (std::uint32_t& node : route) node = moved(node);
        ASSERT_EQ(torus->route(moved(from), moved(to)), route) << spec << " " << from << " " << to;
      }
    }
  }
}

TEST(Grid, HypercubeRoutesCorrectTheLowestBitFirst) {
  const auto cube = must_parse("hypercube:4");
  expect_paths(*cube, {{0, 1, 0b101, 0b1101}});
  EXPECT_EQ(cube->node_name(5), "rank 5 (0101)");
}

TEST(Grid, HyperxRoutesTakeOneHopPerDimension) {
  const auto hyperx = must_parse("hyperx:3x4");
  expect_paths(*hyperx, {{0, 3, 11}, {8, 11}});
  EXPECT_EQ(hyperx->capacity(0, 5), 0u);
}

}  // namespace
}  // namespace espalier::topology
