#pragma once
// The trees and algorithms of the tests in this folder.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/fat_tree/leaf_replay.h"
#include "tests/whole.h"

namespace espalier::leaf_replay {

inline std::int64_t power(std::int64_t base, std::uint32_t exponent) {
  std::int64_t value = 1;
  for (std::uint32_t at = 0; at < exponent; ++at) value *= base;
  return value;
}

// Trees with k in 2..5, h in 1..4 (k = 2: up to 6), at most max_ranks ranks, one lane everywhere.
inline std::vector<Tree> trees(std::int64_t max_ranks) {
  std::vector<Tree> all;
  for (std::uint32_t k = 2; k <= 5; ++k) {
    for (std::uint32_t h = 1; h <= (k == 2 ? 6u : 4u); ++h) {
      if (power(k, h) <= max_ranks) all.push_back({k, h, {}});
    }
  }
  return all;
}

// Trees with different arities in 2..5, h in 2..4, at most max_ranks ranks, one lane everywhere.
inline std::vector<Tree> unequal_trees(std::int64_t max_ranks) {
  std::vector<Tree> all;
  std::vector<std::vector<std::uint32_t>> lists = {{}};
  for (std::uint32_t h = 1; h <= 4; ++h) {
    std::vector<std::vector<std::uint32_t>> longer;
    for (const std::vector<std::uint32_t>& list : lists) {
      for (std::uint32_t k = 2; k <= 5; ++k) {
        longer.push_back(list);
        longer.back().push_back(k);
        const Tree tree{0, h, {}, longer.back()};
        const bool equal = longer.back() == std::vector<std::uint32_t>(h, k);
        if (!equal && leaves(tree, h) <= max_ranks) all.push_back(tree);
      }
    }
    lists = longer;
  }
  return all;
}

// Every n-th of the trees, so that about `count` remain.
inline std::vector<Tree> sample(const std::vector<Tree>& trees, std::size_t count) {
  const std::size_t stride = std::max<std::size_t>(1, trees.size() / count);
  std::vector<Tree> some;
  for (std::size_t at = 0; at < trees.size(); at += stride) some.push_back(trees[at]);
  return some;
}

// Both kinds; of the trees with different arities all, or a sample of `count`.
inline std::vector<Tree> all_trees(std::int64_t max_ranks, std::size_t count) {
  std::vector<Tree> all = trees(max_ranks);
  const std::vector<Tree> unequal = unequal_trees(max_ranks);
  for (const Tree& tree : whole() ? unequal : sample(unequal, count)) all.push_back(tree);
  return all;
}

// The tree with all capacities c_1 = first, c_i <= k_(i-1) c_(i-1) + more. If `more` is 0, the
// exponential capacities are the last.
inline std::vector<Tree> with_capacities(const Tree& tree, std::uint32_t first = 1,
                                         std::uint32_t more = 0) {
  std::vector<Tree> all = {{tree.arity, tree.height, {first}, tree.arities}};
  for (std::uint32_t level = 2; level <= tree.height; ++level) {
    std::vector<Tree> longer;
    for (const Tree& one : all) {
      const std::uint32_t most = arity(tree, level - 1) * one.capacities.back() + more;
      for (std::uint32_t lanes = 1; lanes <= most; ++lanes) {
        longer.push_back(one);
        longer.back().capacities.push_back(lanes);
      }
    }
    all = longer;
  }
  return all;
}

inline std::vector<Algorithm> leaf_algorithms() {
  std::uint32_t count = 0;
  const Algorithm* table = algorithms(count);
  std::vector<Algorithm> leaf;
  for (std::uint32_t at = 0; at < count; ++at) {
    if (table[at].where == Where::kFatTree) leaf.push_back(table[at]);
  }
  return leaf;
}

inline bool is_rooted(const Algorithm& algorithm) {
  return algorithm.collective < Collective::kAllgather;
}

}  // namespace espalier::leaf_replay
