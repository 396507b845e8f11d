#include "tests/graphs/graph_list.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

namespace espalier::graphs {
namespace {

// Writes a topology file in one line.
class GraphWriter {
 public:
  GraphWriter(const std::string& name, std::uint32_t ranks, std::uint32_t routers = 0)
      : spec_("custom: name: \"" + name + "\" ranks: " + std::to_string(ranks)) {
    if (routers > 0) spec_ += " routers: " + std::to_string(routers);
  }

  // Adds a link unless there is one.
  void link(std::uint32_t from, std::uint32_t to, std::uint32_t lanes = 1, bool one_way = false) {
    if (from == to || !linked_.insert({from, to}).second) return;
    if (!one_way && !linked_.insert({to, from}).second) return;
    spec_ += " link { from: " + std::to_string(from) + " to: " + std::to_string(to);
    if (lanes > 1) spec_ += " capacity: " + std::to_string(lanes);
    spec_ += one_way ? " one_way: true }" : " }";
  }
  [[nodiscard]] bool has(std::uint32_t from, std::uint32_t to) const {
    return linked_.count({from, to}) > 0 || linked_.count({to, from}) > 0;
  }
  [[nodiscard]] const std::string& spec() const { return spec_; }

 private:
  std::string spec_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> linked_;
};

using Sides = std::vector<std::uint32_t>;

std::uint32_t size_of(const Sides& sides) {
  return std::accumulate(sides.begin(), sides.end(), 1u, std::multiplies<>());
}

// A mesh with these sides, or a torus; nodes in `holes` are missing, and the others keep their
// order.
NamedGraph grid(const std::string& name, const std::string& words, const Sides& sides, bool wraps,
                bool one_way = false, const std::set<std::uint32_t>& holes = {}) {
  std::vector<std::uint32_t> number(size_of(sides), 0);
  std::uint32_t nodes = 0;
  for (std::uint32_t place = 0; place < number.size(); ++place) {
    if (holes.count(place) == 0) number[place] = nodes++;
  }
  GraphWriter graph(name, nodes);
  for (std::uint32_t place = 0; place < number.size(); ++place) {
    std::uint32_t stride = 1;
    for (const std::uint32_t side : sides) {
      const std::uint32_t at = place / stride % side;
      if (at + 1 < side || wraps) {
        const std::uint32_t next = place - at * stride + (at + 1) % side * stride;
        if (holes.count(place) + holes.count(next) == 0) {
          graph.link(number[place], number[next], 1, one_way);
        }
      }
      stride *= side;
    }
  }
  return {name, words, graph.spec()};
}

NamedGraph hypercube(std::uint32_t dimensions) {
  const std::string name = "hypercube-" + std::to_string(dimensions);
  return grid(name, "a hypercube", Sides(dimensions, 2), false);
}

// Every node is linked to all others in its row and in its column.
NamedGraph hyperx(std::uint32_t rows, std::uint32_t columns) {
  const std::string name = "hyperx-" + std::to_string(rows) + "x" + std::to_string(columns);
  GraphWriter graph(name, rows * columns);
  for (std::uint32_t node = 0; node < rows * columns; ++node) {
    for (std::uint32_t other = node + 1; other < rows * columns; ++other) {
      if (node / columns == other / columns || node % columns == other % columns) {
        graph.link(node, other);
      }
    }
  }
  return {name, "complete rows and columns", graph.spec()};
}

// Eight accelerators as in a DGX-1: two squares with diagonals, some links of two lanes.
NamedGraph cube_mesh() {
  GraphWriter graph("cube-mesh-8", 8);
  for (const std::uint32_t half : {0u, 4u}) {
    graph.link(half, half + 1);
    graph.link(half, half + 2);
    graph.link(half, half + 3, 2);
    graph.link(half + 1, half + 2, 2);
    graph.link(half + 1, half + 3);
    graph.link(half + 2, half + 3, 2);
  }
  graph.link(0, 4, 2);
  graph.link(1, 5, 2);
  graph.link(2, 6);
  graph.link(3, 7);
  return {"cube-mesh-8", "eight accelerators, links of one and two lanes", graph.spec()};
}

// Boxes of eight accelerators: each has six lanes to the switch of its box, and one to the network.
NamedGraph boxes(std::uint32_t count) {
  const std::uint32_t ranks = 8 * count;
  const std::string name = "boxes-" + std::to_string(count) + "x8";
  GraphWriter graph(name, ranks, count + 1);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    graph.link(rank, ranks + rank / 8, 6);
    graph.link(rank, ranks + count);
  }
  return {name, "boxes of eight, a switch each, and a network of one lane per rank", graph.spec()};
}

// Groups of routers with a rank each; all routers of a group are linked, and each has one link to
// another group.
NamedGraph dragonfly(std::uint32_t routers) {
  const std::uint32_t groups = routers + 1, ranks = groups * routers;
  const std::string name = "dragonfly-" + std::to_string(groups) + "x" + std::to_string(routers);
  GraphWriter graph(name, ranks, ranks);
  for (std::uint32_t group = 0; group < groups; ++group) {
    for (std::uint32_t router = 0; router < routers; ++router) {
      const std::uint32_t node = group * routers + router;
      graph.link(node, ranks + node);
      for (std::uint32_t other = router + 1; other < routers; ++other) {
        graph.link(ranks + node, ranks + group * routers + other);
      }
      const std::uint32_t to = (group + router + 1) % groups;
      graph.link(ranks + node, ranks + to * routers + routers - 1 - router);
    }
  }
  return {name, "groups of routers, a rank at each", graph.spec()};
}

// A number below `end`, the same on every machine.
std::uint32_t draw(std::mt19937_64& random, std::uint32_t end) {
  return static_cast<std::uint32_t>(random() % end);
}

// A random graph whose nodes have `degree` links each; drawn until it is connected.
NamedGraph regular(std::uint32_t nodes, std::uint32_t degree, std::uint64_t seed) {
  const std::string name = "random-" + std::to_string(nodes) + "-" + std::to_string(degree);
  std::mt19937_64 random(seed);
  for (;;) {
    std::vector<std::uint32_t> ends;
    for (std::uint32_t node = 0; node < nodes; ++node) ends.insert(ends.end(), degree, node);
    for (std::size_t i = ends.size(); i > 1; --i) {
      std::swap(ends[i - 1], ends[draw(random, static_cast<std::uint32_t>(i))]);
    }
    GraphWriter graph(name, nodes);
    bool simple = true;
    std::vector<std::uint32_t> part(nodes);
    std::iota(part.begin(), part.end(), 0);
    for (std::size_t i = 0; i < ends.size() && simple; i += 2) {
      simple = ends[i] != ends[i + 1] && !graph.has(ends[i], ends[i + 1]);
      graph.link(ends[i], ends[i + 1]);
      const std::uint32_t from = part[ends[i]], to = part[ends[i + 1]];
      std::replace(part.begin(), part.end(), from, to);
    }
    if (!simple || std::count(part.begin(), part.end(), part[0]) != nodes) continue;
    return {name, "a random regular graph", graph.spec()};
  }
}

NamedGraph uneven_tree() {
  GraphWriter graph("uneven-tree", 10, 4);
  for (std::uint32_t rank = 0; rank < 10; ++rank) {
    graph.link(rank, rank < 5 ? 10 : rank < 8 ? 11 : 12);
  }
  graph.link(10, 13, 3);
  graph.link(11, 13, 2);
  graph.link(12, 13);
  return {"uneven-tree", "three boards of five, three and two ranks", graph.spec()};
}

}  // namespace

std::vector<NamedGraph> graph_list() {
  return {grid("ring-9", "a ring", {9}, true),
          grid("ring-8-one-way", "a ring of one-way links", {8}, true, true),
          grid("torus-3x3", "a torus", {3, 3}, true),
          grid("torus-4x4", "a torus", {4, 4}, true),
          grid("torus-4x6", "a torus", {6, 4}, true),
          grid("torus-4x4-one-way", "a torus of one-way links", {4, 4}, true, true),
          grid("torus-3x3x3", "a torus", {3, 3, 3}, true),
          grid("torus-8x8", "a torus", {8, 8}, true),
          hypercube(3),
          hypercube(4),
          hypercube(5),
          grid("mesh-5x5-holes", "a mesh of 5 x 5 without three of its nodes", {5, 5}, false, false,
               {7, 11, 18}),
          grid("mesh-3x3x2", "a mesh", {2, 3, 3}, false),
          cube_mesh(),
          boxes(2),
          regular(16, 3, 1),
          regular(24, 4, 2),
          uneven_tree(),
          dragonfly(4),
          hyperx(3, 4)};
}

std::string random_graph(std::uint64_t seed, std::uint32_t ranks, std::uint32_t routers,
                         std::uint32_t more, bool one_way) {
  std::mt19937_64 random(seed);
  const std::uint32_t nodes = ranks + routers;
  std::vector<std::uint32_t> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[draw(random, static_cast<std::uint32_t>(i))]);
  }
  GraphWriter graph("random", ranks, routers);
  for (std::uint32_t i = 1; i < nodes; ++i) {
    graph.link(order[i], order[draw(random, i)], 1 + draw(random, 3));
  }
  for (std::uint32_t i = 0; i < more; ++i) {
    const std::uint32_t from = draw(random, nodes), to = draw(random, nodes);
    if (!graph.has(from, to)) graph.link(from, to, 1 + draw(random, 3));
  }
  for (std::uint32_t i = 0; one_way && i < nodes; ++i) {
    const std::uint32_t from = order[i], to = order[(i + 1) % nodes];
    if (!graph.has(from, to)) graph.link(from, to, 1, true);
  }
  return graph.spec();
}

}  // namespace espalier::graphs
