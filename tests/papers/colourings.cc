// [SST09] and [SST07]: Fig. 1, the lemmas on colourings and Table A.1, on the trees that the
// programs use; and the times of section 4.1 beside the least over all numbers of pieces.

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/algorithms/trees/two_trees.h"
#include "tests/papers/item.h"

namespace espalier::papers {
namespace {

constexpr char kTheTrees[] = "the trees themselves";
constexpr std::uint32_t kMost = 600;

// Fig. 3 as it stands but for "= 1", which must be "!= 0": the colour of the edge into an even PE
// of T1, mirrored trees. Counts the levels of recursion and the passes of the loop.
struct EdgeColour {
  std::uint32_t n;
  int levels = 0, passes = 0;

  unsigned operator()(std::uint32_t i, std::uint32_t h = 1) {
    ++levels;
    if (i == std::bit_floor(n)) return 1;
    while ((i & (1u << h)) == 0) ++h, ++passes;
    const bool right = ((2u << h) & i) != 0 || i + (1u << h) > n;
    const std::uint32_t parent = right ? i - (1u << h) : i + (1u << h);
    return (*this)(parent, h) ^ (n / 2 % 2) ^ (parent > i ? 1 : 0);
  }
};

// The colours of the edges into PEs 1 .. n in one tree.
template <typename Colour>
std::string colours(std::uint32_t n, Colour colour) {
  std::string text;
  for (std::uint32_t pe = 1; pe <= n; ++pe) text += std::to_string(colour(pe));
  return text;
}

// A leaf of T1 is inner in T2, whose edges have the other colours of T1's mirror image.
void figure_1(Chapter& chapter) {
  for (const std::uint32_t n : {6u, 8u, 10u, 12u}) {
    const TwoTrees trees(n, Pairing::kMirror);
    for (const unsigned tree : {0u, 1u}) {
      const std::string drawn = colours(n, [&](std::uint32_t pe) {
        const unsigned colour = EdgeColour{n}(pe % 2 == 0 ? pe : n + 1 - pe);
        return tree == 0 ? colour : 1 - colour;
      });
      const std::string ours = colours(
          n, [&](std::uint32_t pe) { return static_cast<unsigned>(trees.edge(tree, pe).colour); });
      chapter.items.push_back({"[SST09] Fig. 1",
                               "colours of the edges into PEs 1 .. " + std::to_string(n) + " in T" +
                                   std::to_string(tree + 1),
                               kNothing, drawn, "", ours, kTheTrees,
                               "the drawing is lost; by Fig. 3, corrected"});
    }
  }
}

// [SST07], section 2, steps 1 to 5: the parent of node j of the in-order trees of nodes 1 .. n; 0
// for the root.
std::uint32_t parent_by_steps(std::uint32_t n, std::uint32_t j) {
  const std::uint32_t size = std::bit_ceil(n + 1) - 1;
  do {
    const std::uint32_t lowest = j & (~j + 1);
    j = (j ^ lowest) | (lowest << 1);
  } while (j > n && j <= size);
  return j > size ? 0 : j;
}

void sst07_figure_1(Chapter& chapter) {
  std::int64_t others = 0;
  std::string first[2], second[2];  // by the steps, ours
  for (std::uint32_t n = 2; n <= kMost; ++n) {
    const TwoTrees trees(n, Pairing::kShift);
    for (std::uint32_t pe = 1; pe <= n; ++pe) {
      const std::uint32_t shifted = parent_by_steps(n + 1, pe + 1);
      const std::uint32_t parents[2] = {parent_by_steps(n, pe), shifted == 0 ? 0 : shifted - 1};
      for (const unsigned tree : {0u, 1u}) {
        others += trees.parent(tree, pe) == parents[tree] ? 0 : 1;
        if (n != 9) continue;
        first[tree] += " " + std::to_string(parents[tree]);
        second[tree] += " " + std::to_string(trees.parent(tree, pe));
      }
    }
  }
  for (const unsigned tree : {0u, 1u}) {
    chapter.items.push_back({"[SST07] Fig. 1",
                             "p = 10: parents of PEs 1 .. 9 in T" + std::to_string(tree + 1),
                             kNothing, first[tree].substr(1), "", second[tree].substr(1), kTheTrees,
                             "the drawing is lost; by steps 1 to 5 with 2^h > p-1. 0: the root"});
  }
  chapter.items.push_back(
      {"[SST07] Fig. 1",
       "PEs whose parent is not that of steps 1 to 5, all p up to " + std::to_string(kMost + 1),
       kNothing, "0", "", std::to_string(others), kTheTrees});
}

void lemma_1(Chapter& chapter) {
  for (const auto& [name, pairing, step] : {std::tuple{"mirroring, even", Pairing::kMirror, 2u},
                                            std::tuple{"shifting, all", Pairing::kShift, 1u}}) {
    std::int64_t parents = 0, children = 0;
    for (std::uint32_t n = 2; n <= kMost; n += step) {
      const TwoTrees trees(n, pairing);
      for (std::uint32_t pe = 1; pe <= n; ++pe) {
        parents += trees.edge(0, pe).colour == trees.edge(1, pe).colour ? 1 : 0;
        for (const unsigned tree : {0u, 1u}) {
          if (!trees.is_inner(tree, pe)) continue;
          const TwoTrees::Both below = trees.children(tree, trees.edge(tree, pe));
          const bool both = below.of[0].pe != 0 && below.of[1].pe != 0;
          children += both && below.of[0].colour == below.of[1].colour ? 1 : 0;
        }
      }
    }
    const std::string which =
        std::string(name) + " p up to " + std::to_string(kMost) + ": PEs with ";
    chapter.items.push_back({"[SST09] Lemma 1", which + "two parents by edges of one colour",
                             kNothing, "0", "", std::to_string(parents), kTheTrees});
    chapter.items.push_back(
        {"[SST09] Lemma 1", which + "two children by edges of one colour", kNothing, "0", "",
         std::to_string(children), kTheTrees,
         pairing == Pairing::kShift ? "the paper leaves a fast colouring for shifting open" : ""});
  }
}

void theorem_2(Chapter& chapter) {
  std::int64_t levels = 0, passes = 0;
  for (std::uint32_t n = 2; n <= kMost; n += 2) {
    const int log = static_cast<int>(std::bit_width(n)) - 1;
    for (std::uint32_t pe = 2; pe <= n; pe += 2) {
      EdgeColour colour{n};
      (void)colour(pe);
      levels += colour.levels > log ? 1 : 0;
      passes += colour.passes > log ? 1 : 0;
    }
  }
  const std::string where = ", even p up to " + std::to_string(kMost);
  chapter.items.push_back({"[SST09] Theorem 2",
                           "PEs with more than log p levels of recursion" + where, kNothing, "0",
                           "", std::to_string(levels), "Fig. 3, corrected"});
  chapter.items.push_back({"[SST09] Theorem 2",
                           "PEs with more than log p passes of the loop" + where, kNothing, "0", "",
                           std::to_string(passes), "Fig. 3, corrected"});
}

// The graph of the appendix: a node per PE and tree; edges between a PE's two nodes, and between
// siblings.
struct SiblingGraph {
  std::int64_t cycles = 0, ends = 0;

  explicit SiblingGraph(const TwoTrees& trees, std::uint32_t n) {
    std::vector<std::uint32_t> group(std::size_t{2} * n + 2);
    std::iota(group.begin(), group.end(), 0u);
    std::vector<int> degree(group.size(), 1);
    const auto find = [&](std::uint32_t node) {
      while (group[node] != node) node = group[node] = group[group[node]];
      return node;
    };
    const auto join = [&](std::uint32_t a, std::uint32_t b) {
      a = find(a);
      b = find(b);
      cycles += a == b ? 1 : 0;
      group[a] = b;
    };
    for (std::uint32_t pe = 1; pe <= n; ++pe) {
      join(2 * pe, 2 * pe + 1);
      for (const unsigned tree : {0u, 1u}) {
        if (!trees.is_inner(tree, pe)) continue;
        const TwoTrees::Both below = trees.children(tree, trees.edge(tree, pe));
        if (below.of[0].pe == 0 || below.of[1].pe == 0) continue;
        join(2 * below.of[0].pe + tree, 2 * below.of[1].pe + tree);
        ++degree[2 * below.of[0].pe + tree];
        ++degree[2 * below.of[1].pe + tree];
      }
    }
    ends = std::count(degree.begin() + 2, degree.end(), 1);
  }
};

void lemma_3(Chapter& chapter) {
  std::int64_t cycles = 0, other = 0;
  for (std::uint32_t n = 4; n <= kMost; n += 2) {
    const SiblingGraph graph(TwoTrees(n, Pairing::kMirror), n);
    cycles += graph.cycles;
    other += graph.ends == 4 ? 0 : 1;
  }
  const std::string where = ", even p from 4 to " + std::to_string(kMost);
  chapter.items.push_back({"[SST09] Lemma 3", "cycles in G" + where, kNothing, "0", "",
                           std::to_string(cycles), kTheTrees});
  chapter.items.push_back({"[SST09] section A.1", "graphs G without exactly four ends" + where,
                           kNothing, "0", "", std::to_string(other), kTheTrees});
}

// The path G1 of the appendix: from the root of T1 to the PE's leaf in T2, to the sibling of this
// leaf, to its PE's node in T1, to the sibling of this node, and so on. Positions are counted from
// 1; 0: not on the path.
struct FirstPath {
  std::vector<std::int64_t> of[2];  // by PE, in T1 and in T2

  FirstPath(const TwoTrees& trees, std::uint32_t n) {
    for (std::vector<std::int64_t>& positions : of) positions.assign(n + 1, 0);
    std::int64_t position = 0;
    unsigned tree = 0;
    for (std::uint32_t pe = trees.root(0); pe != 0 && of[tree][pe] == 0;
         pe = sibling(trees, tree, pe)) {
      of[tree][pe] = ++position;
      tree = 1 - tree;
      of[tree][pe] = ++position;
    }
  }

 private:
  // Returns 0 if there is none.
  static std::uint32_t sibling(const TwoTrees& trees, unsigned tree, std::uint32_t pe) {
    const std::uint32_t parent = trees.parent(tree, pe);
    if (parent == 0) return 0;
    const TwoTrees::Both below = trees.children(tree, trees.edge(tree, parent));
    return below.of[0].pe == pe ? below.of[1].pe : below.of[0].pe;
  }
};

// The root of T1 gets colour 1.
void lemma_4(Chapter& chapter) {
  std::int64_t outside = 0, siblings = 0, nodes = 0;
  for (std::uint32_t n = 4; n <= kMost; n += 2) {
    const TwoTrees trees(n, Pairing::kMirror);
    const FirstPath path(trees, n);
    for (std::uint32_t pe = 2; pe <= n; pe += 2) {  // inner in T1
      outside += (path.of[0][pe] == 0 ? 1 : 0) + (path.of[1][pe] == 0 ? 1 : 0);
      const TwoTrees::Edge edge = trees.edge(0, pe);
      nodes += edge.colour != (path.of[0][pe] < path.of[1][pe] ? 1 : 0) ? 1 : 0;
      const TwoTrees::Both below = trees.children(0, edge);
      const auto [left, right] = std::tuple{below.of[0], below.of[1]};
      if (left.pe % 2 != 0 || right.pe % 2 != 0 || left.pe == 0 || right.pe == 0) continue;
      const bool left_first = path.of[0][left.pe] < path.of[0][right.pe];
      siblings += left.colour != (left_first ? 0 : 1) || right.colour != (left_first ? 1 : 0);
    }
  }
  const std::string where = ", even p from 4 to " + std::to_string(kMost);
  chapter.items.push_back({"[SST09] section A.1", "nodes of V1 that G1 does not visit" + where,
                           kNothing, "0", "", std::to_string(outside), kTheTrees});
  chapter.items.push_back({"[SST09] Lemma 4",
                           "siblings whose colours are not 0 and 1 in their order in G1" + where,
                           kNothing, "0", "", std::to_string(siblings), kTheTrees});
  chapter.items.push_back(
      {"[SST09] Lemma 4",
       "inner PEs of T1 whose colour is not 1 before, 0 after their leaf in G1" + where, kNothing,
       "0", "", std::to_string(nodes), kTheTrees});
}

void table_a1(Chapter& chapter) {
  const struct {
    const char* name;
    Printed printed;
    unsigned half, of_v, left, right;
  } cases[] = {{"1.1", "1 0 1 1", 1, 1, 1, 0},
               {"1.2", "0 1 0 1", 1, 0, 0, 1},
               {"2.1", "0 1 1 0", 0, 1, 0, 1},
               {"2.2", "1 0 0 0", 0, 0, 1, 0}};
  for (const auto& one : cases) {
    std::int64_t others = 0;
    std::string found;
    for (std::uint32_t n = 4; n <= kMost; n += 2) {
      if (n / 2 % 2 != one.half) continue;
      const TwoTrees trees(n, Pairing::kMirror);
      for (std::uint32_t pe = 4; pe <= n; pe += 4) {  // height above 1
        const TwoTrees::Edge edge = trees.edge(0, pe);
        const TwoTrees::Both below = trees.children(0, edge);
        if (edge.colour != one.of_v || below.of[0].pe == 0 || below.of[1].pe == 0) continue;
        const auto row = {unsigned{below.of[0].colour}, unsigned{below.of[1].colour},
                          unsigned{edge.colour}, n / 2 % 2};
        std::string text;
        for (const unsigned value : row) text += (text.empty() ? "" : " ") + std::to_string(value);
        if (found.empty()) found = text;
        others += text == found ? 0 : 1;
      }
    }
    if (others > 0) found += ", and " + std::to_string(others) + " others";
    chapter.items.push_back({"[SST09] Table A.1",
                             std::string("case ") + one.name +
                                 ": colours of v_l, v_r, v, and p/2 mod 2, even p up to " +
                                 std::to_string(kMost),
                             one.printed, "", "", found, kTheTrees});
  }
}

// The least of (a + b k)(1 + bm / (b k)) over k, in units of alpha.
double least_time(double a, double b, double bm) {
  double least = 1e300;
  for (int k = 1; k < 100000; ++k) {
    least = std::min(least, (a + b * k) * (1 + bm / (b * k)));
  }
  return least;
}

void measured_times(Chapter& chapter) {
  chapter.items.push_back({"[SST09] section 6.4", "time of a colouring, 100 000 PEs",
                           "never takes more than 1.5 µs", "", "", "see precomputation.md", "-",
                           "measured by the authors", true});
}

void times(Chapter& chapter) {
  const double log = 10, bm = 4096;
  const char* const where = "p = 1024, alpha = 1, beta m = 4096: ";
  chapter.items.push_back({"[SST09] equation 2", std::string(where) + "time of two trees", kNothing,
                           fixed(bm + 2 * log + std::sqrt(8 * bm * log), 0), "",
                           fixed(least_time(2 * log, 2, bm), 0), "trying all k"});
  double best = 1, least = 1e300;
  for (int k = 1; k < 10000; ++k) {
    const double time = (2 * log + 2 * k) * (1 + bm / (2 * k));
    if (time < least) least = time, best = k;
  }
  chapter.items.push_back({"[SST09] section 4.1", std::string(where) + "k*", kNothing,
                           fixed(std::sqrt(bm * log / 2), 0), "", fixed(best, 0), "trying all k"});
  const double one_tree = std::pow(std::sqrt(2 * log) + std::sqrt(2 * bm), 2);
  double tried = 1e300;
  for (int k = 1; k < 10000; ++k) tried = std::min(tried, 2 * (log + k) * (1 + bm / k));
  chapter.items.push_back({"[SST09] equation 1", std::string(where) + "time of a binary tree",
                           kNothing, fixed(one_tree, 0), "", fixed(tried, 0), "trying all k"});
}

}  // namespace

void colourings(Chapter& chapter) {
  figure_1(chapter);
  sst07_figure_1(chapter);
  lemma_1(chapter);
  theorem_2(chapter);
  lemma_3(chapter);
  lemma_4(chapter);
  table_a1(chapter);
  times(chapter);
  measured_times(chapter);
}

}  // namespace espalier::papers
