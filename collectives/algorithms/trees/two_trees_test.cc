// Shapes and colours, compared with an independent prototype (testdata/golden.json), and every
// property by exhaustive checks for n <= 1000, or n <= 3000 with ESPALIER_WHOLE=1.

#include "collectives/algorithms/trees/two_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/algorithms/prototype_values.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;

std::uint32_t largest_n() { return whole() ? 3000 : 1000; }

// h of the papers: ceil(log2(n + 2)).
std::uint32_t paper_height(std::uint32_t n) {
  std::uint32_t h = 0;
  while ((1u << h) < n + 2) ++h;
  return h;
}

// Golden edges are [parent, child, colour] with ranks from 0.
nlohmann::json edges_of(const TwoTrees& trees, unsigned tree, std::uint32_t n) {
  nlohmann::json edges = nlohmann::json::array();
  for (std::uint32_t pe = 1; pe <= n; ++pe) {
    const std::uint32_t parent = trees.parent(tree, pe);
    if (parent == 0) continue;
    edges.push_back({parent - 1, pe - 1, trees.edge(tree, pe).colour});
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

void compare_with_golden(const std::string& section, Pairing pairing) {
  const nlohmann::json values = prototype_values()[section];
  ASSERT_GE(values.size(), 4u);
  for (const auto& [key, value] : values.items()) {
    const auto n = static_cast<std::uint32_t>(std::stoul(key));
    const TwoTrees trees(n, pairing);
    EXPECT_EQ(trees.root(0) - 1, value["root1"].get<std::uint32_t>()) << section << " n " << n;
    EXPECT_EQ(trees.root(1) - 1, value["root2"].get<std::uint32_t>()) << section << " n " << n;
    nlohmann::json t1 = value["T1"], t2 = value["T2"];
    std::sort(t1.begin(), t1.end());
    std::sort(t2.begin(), t2.end());
    EXPECT_EQ(edges_of(trees, 0, n), t1) << section << " n " << n;
    EXPECT_EQ(edges_of(trees, 1, n), t2) << section << " n " << n;
    if (!value.contains("steps_k1")) continue;
    EXPECT_EQ(trees.last_arrival() + 1, value["steps_k1"].get<std::uint32_t>()) << "n " << n;
    EXPECT_EQ(trees.last_arrival() + 1 + 6, value["steps_k4"].get<std::uint32_t>()) << "n " << n;
  }
}

TEST(TwoTrees, ShiftedTreesOfThePrototype) {
  compare_with_golden("two_tree_shift", Pairing::kShift);
}

TEST(TwoTrees, MirroredTreesOfThePrototype) {
  compare_with_golden("two_tree_mirror", Pairing::kMirror);
}

// The colour as written in Fig. 3 of [SST09] (with "is not 0" for "= 1").
unsigned in_edge_colour(std::uint32_t n, std::uint32_t i, std::uint32_t h) {
  std::uint32_t root = 1;
  while (root * 2 <= n) root *= 2;
  if (i == root) return 1;
  while ((i & 1u << h) == 0) ++h;
  const bool down = (i & 1u << (h + 1)) != 0 || i + (1u << h) > n;
  const std::uint32_t parent = down ? i - (1u << h) : i + (1u << h);
  return in_edge_colour(n, parent, h) ^ (n / 2 % 2) ^ (parent > i ? 1 : 0);
}

TEST(TwoTrees, MirroredColoursOfThePaper) {
  for (std::uint32_t n = 2; n <= largest_n(); n += 2) {
    const TwoTrees trees(n, Pairing::kMirror);
    for (std::uint32_t pe = 2; pe <= n; pe += 2) {
      ASSERT_EQ(trees.edge(0, pe).colour, in_edge_colour(n, pe, 1)) << "n " << n << " PE " << pe;
    }
  }
}

// A whole tree computed from the definitions: children from parents, arrivals downwards.
struct WholeTree {
  std::vector<Edge> edges;                           // by rank
  std::vector<std::vector<std::uint32_t>> children;  // by rank, ascending
};

WholeTree whole_tree(const TwoTrees& trees, unsigned tree, std::uint32_t n) {
  WholeTree whole{std::vector<Edge>(n + 1), std::vector<std::vector<std::uint32_t>>(n + 1)};
  for (std::uint32_t pe = 1; pe <= n; ++pe) {
    whole.edges[pe] = trees.edge(tree, pe);
    const std::uint32_t parent = trees.parent(tree, pe);
    if (parent != 0) whole.children[parent].push_back(pe);
  }
  return whole;
}

// The leftmost and rightmost rank below `pe`; counts the ranks that are reached.
void in_order(const WholeTree& whole, std::uint32_t pe, std::uint32_t& low, std::uint32_t& high,
              std::uint32_t& reached) {
  low = high = pe;
  ++reached;
  for (const std::uint32_t child : whole.children[pe]) {
    std::uint32_t child_low = 0, child_high = 0, before = reached;
    in_order(whole, child, child_low, child_high, reached);
    ASSERT_EQ(child_high - child_low + 1, reached - before) << "a subtree is no interval";
    if (child < pe) {
      ASSERT_EQ(child_high + 1, pe);
      low = child_low;
    } else {
      ASSERT_EQ(child_low, pe + 1);
      high = child_high;
    }
  }
}

void check_tree(const TwoTrees& trees, unsigned tree, std::uint32_t n, const WholeTree& whole) {
  std::uint32_t low = 0, high = 0, reached = 0;
  ASSERT_NO_FATAL_FAILURE(in_order(whole, trees.root(tree), low, high, reached));
  ASSERT_EQ(reached, n);
  ASSERT_EQ(whole.edges[trees.root(tree)].arrival, trees.first() == tree ? 0u : 1u);
  ASSERT_EQ(whole.edges[trees.root(tree)].colour, 1 - tree);
  for (std::uint32_t pe = 1; pe <= n; ++pe) {
    const std::vector<std::uint32_t>& below = whole.children[pe];
    const Edge& edge = whole.edges[pe];
    ASSERT_EQ(edge.pe, pe);
    ASSERT_LE(below.size(), 2u);
    ASSERT_TRUE(below.empty() || trees.is_inner(tree, pe)) << "a leaf with children";
    if (below.size() == 2) {
      ASSERT_NE(whole.edges[below[0]].colour, whole.edges[below[1]].colour);
    }
    const TwoTrees::Both children = trees.children(tree, edge);
    std::size_t found = 0;
    for (const Edge& child : children.of) {
      if (child.pe == 0) continue;
      ASSERT_LT(found, below.size());
      ASSERT_EQ(child.pe, below[found]) << "children ascend";
      const Edge& same = whole.edges[child.pe];
      ASSERT_EQ(child.colour, same.colour);
      ASSERT_EQ(child.arrival, same.arrival);
      ASSERT_EQ(same.arrival, edge.arrival + (same.colour != edge.colour ? 1 : 2));
      ++found;
    }
    ASSERT_EQ(found, below.size());
  }
}

void check_all(std::uint32_t n, Pairing pairing) {
  const TwoTrees trees(n, pairing);
  std::uint32_t last = 0;
  const WholeTree t1 = whole_tree(trees, 0, n), t2 = whole_tree(trees, 1, n);
  ASSERT_NO_FATAL_FAILURE(check_tree(trees, 0, n, t1));
  ASSERT_NO_FATAL_FAILURE(check_tree(trees, 1, n, t2));
  std::uint32_t last_1 = 0, last_2 = 0;  // counted from each root's arrival
  for (std::uint32_t pe = 1; pe <= n; ++pe) {
    ASSERT_NE(t1.edges[pe].colour, t2.edges[pe].colour) << "the two edges into a PE differ";
    ASSERT_TRUE(t1.children[pe].empty() || t2.children[pe].empty()) << "inner in one tree only";
    last = std::max({last, t1.edges[pe].arrival, t2.edges[pe].arrival});
    last_1 = std::max(last_1, t1.edges[pe].arrival - t1.edges[trees.root(0)].arrival);
    last_2 = std::max(last_2, t2.edges[pe].arrival - t2.edges[trees.root(1)].arrival);
  }
  ASSERT_EQ(trees.last_arrival(), last);
  ASSERT_EQ(last, std::min(std::max(last_1, last_2 + 1), std::max(last_1 + 1, last_2)))
      << "the better of the two starts";
  // Steps for N blocks: last + 1 + 2(N-1) <= 2h + 2N - 2 ([SST09] section 4.1 gives 2h + 2N).
  const std::uint32_t h = paper_height(n);
  ASSERT_LE(last + 1, 2 * h);
  ASSERT_GE(last + 1 + 3, 2 * h);
}

TEST(TwoTrees, ShiftedByBruteForce) {
  for (std::uint32_t n = 1; n <= largest_n(); ++n) {
    ASSERT_NO_FATAL_FAILURE(check_all(n, Pairing::kShift)) << "n " << n;
  }
}

TEST(TwoTrees, MirroredByBruteForce) {
  for (std::uint32_t n = 2; n <= largest_n(); n += 2) {
    ASSERT_NO_FATAL_FAILURE(check_all(n, Pairing::kMirror)) << "n " << n;
  }
}

// The phases of a scan: without the edges into one spine, each subtree below it begins on its own,
// in step 0 or 1 by the colour of its top edge.
void check_spines(std::uint32_t n, Pairing pairing, Use use) {
  const TwoTrees trees(n, pairing, use);
  std::uint32_t last = 0;
  for (unsigned tree = 0; tree < 2; ++tree) {
    std::uint32_t spine = trees.root(tree), unused = 0;
    for (std::uint32_t pe = spine; pe != 0; ++unused) {
      spine = pe;
      ASSERT_FALSE(trees.in_use(tree, pe));
      const TwoTrees::Both below = trees.children(tree, trees.edge(tree, pe));
      pe = 0;
      for (const Edge& child : below.of) {
        if (child.pe != 0 && (child.pe > spine) == (use == Use::kUp)) pe = child.pe;
      }
    }
    std::uint32_t early[2] = {0, 0};  // top edges that begin in step 0, by colour
    for (std::uint32_t pe = 1; pe <= n; ++pe) {
      const Edge edge = trees.edge(tree, pe);
      if (!trees.in_use(tree, pe)) {
        ASSERT_GT(unused--, 0u) << "not on the spine";
        continue;
      }
      last = std::max(last, edge.arrival);
      const Edge above = trees.edge(tree, trees.parent(tree, pe));
      if (trees.in_use(tree, above.pe)) {
        ASSERT_EQ(edge.arrival, above.arrival + (edge.colour != above.colour ? 1 : 2));
      } else {
        ASSERT_LE(edge.arrival, 1u);
        early[edge.colour] |= edge.arrival == 0 ? 1 : 2;
      }
    }
    ASSERT_EQ(unused, 0u);
    for (const std::uint32_t seen : early) ASSERT_NE(seen, 3u) << "one colour, one step";
    ASSERT_TRUE(early[0] != early[1] || early[0] == 0);
  }
  ASSERT_EQ(trees.last_arrival(), last);
}

TEST(TwoTrees, SpinesByBruteForce) {
  for (std::uint32_t n = 1; n <= largest_n(); ++n) {
    for (const Use use : {Use::kUp, Use::kDown}) {
      ASSERT_NO_FATAL_FAILURE(check_spines(n, Pairing::kShift, use)) << "n " << n;
      if (n % 2 == 1) continue;
      ASSERT_NO_FATAL_FAILURE(check_spines(n, Pairing::kMirror, use)) << "n " << n;
    }
  }
}

// The edges of both phases of a scan: those in use, their steps and the end. Colours are equal
// except those of kUp.
TEST(TwoTrees, ColoursOfAScanByBruteForce) {
  for (std::uint32_t n = 1; n <= largest_n(); ++n) {
    const TwoTrees all(n, Pairing::kShift);
    for (const Use use : {Use::kUp, Use::kUpSameColours, Use::kDown}) {
      const TwoTrees trees(n, Pairing::kShift, use);
      std::uint32_t last = 0;
      for (unsigned tree = 0; tree < 2; ++tree) {
        std::vector<bool> unused(n + 1, false);  // the spine, from the root
        for (std::uint32_t pe = trees.root(tree); pe != 0;) {
          unused[pe] = true;
          std::uint32_t next = 0;
          for (const Edge& child : trees.children(tree, trees.edge(tree, pe)).of) {
            if (child.pe != 0 && (child.pe < pe) == (use == Use::kDown)) next = child.pe;
          }
          pe = next;
        }
        for (std::uint32_t pe = 1; pe <= n; ++pe) {
          ASSERT_EQ(trees.in_use(tree, pe), !unused[pe]) << "n " << n << " PE " << pe;
          const Edge edge = trees.edge(tree, pe);
          if (use != Use::kUp) {
            ASSERT_EQ(edge.colour, all.edge(tree, pe).colour) << "n " << n << " PE " << pe;
          }
          if (unused[pe]) continue;
          last = std::max(last, edge.arrival);
          const std::uint32_t parent = trees.parent(tree, pe);
          if (unused[parent]) {
            ASSERT_LE(edge.arrival, 1u);
          } else {
            const Edge above = trees.edge(tree, parent);
            ASSERT_EQ(edge.arrival, above.arrival + (edge.colour != above.colour ? 1 : 2));
          }
        }
      }
      ASSERT_EQ(trees.last_arrival(), last) << "n " << n;
    }
  }
}

// The properties that a rank and its neighbours must agree on, sampled for n up to 2^29.
TEST(TwoTrees, LargeTreesSampled) {
  std::mt19937 random(3);
  for (int sample = 0; sample < 20000; ++sample) {
    const std::uint32_t n = 2 + random() % ((1u << (2 + random() % 27)) - 1);
    const Pairing pairing = n % 2 == 0 && random() % 2 == 0 ? Pairing::kMirror : Pairing::kShift;
    const TwoTrees trees(n, pairing);
    const std::uint32_t pe = 1 + random() % n;
    Edge edges[2];
    for (unsigned tree = 0; tree < 2; ++tree) {
      edges[tree] = trees.edge(tree, pe);
      ASSERT_LE(edges[tree].arrival, trees.last_arrival());
      const TwoTrees::Both children = trees.children(tree, edges[tree]);
      for (const Edge& child : children.of) {
        if (child.pe == 0) continue;
        ASSERT_EQ(trees.parent(tree, child.pe), pe) << "n " << n;
        ASSERT_EQ(trees.edge(tree, child.pe).arrival, child.arrival) << "n " << n << " PE " << pe;
        ASSERT_EQ(trees.edge(tree, child.pe).colour, child.colour) << "n " << n << " PE " << pe;
      }
      if (children.of[0].pe != 0 && children.of[1].pe != 0) {
        ASSERT_NE(children.of[0].colour, children.of[1].colour) << "n " << n << " PE " << pe;
      }
    }
    ASSERT_NE(edges[0].colour, edges[1].colour) << "n " << n << " PE " << pe;
    const TwoTrees::Both both = trees.edges(pe);
    for (unsigned tree = 0; tree < 2; ++tree) {
      ASSERT_EQ(both.of[tree].pe, pe);
      ASSERT_EQ(both.of[tree].colour, edges[tree].colour);
      ASSERT_EQ(both.of[tree].arrival, edges[tree].arrival);
    }
    ASSERT_LE(trees.last_arrival() + 1, 2 * paper_height(n)) << "n " << n;
  }
}

}  // namespace
}  // namespace espalier
