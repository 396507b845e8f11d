#pragma once
// The trees and algorithms of the tests in this folder.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/internal/base/limits.h"
#include "tests/whole.h"

namespace espalier::fat_trees {

struct Tree {
  std::uint32_t arity, height;
  std::vector<std::uint32_t> capacities;    // of levels 1 ..; empty: one lane everywhere
  std::vector<std::uint32_t> arities = {};  // of levels 1 ..; empty: `arity` at every level
};

// Returns the children of a router of `level`.
inline std::uint32_t arity(const Tree& tree, std::uint32_t level) {
  return tree.arities.empty() ? tree.arity : tree.arities[level - 1];
}

// Returns the leaves below a node of `level`.
inline std::int64_t leaves(const Tree& tree, std::uint32_t level) {
  return level == 0 ? 1 : leaves(tree, level - 1) * arity(tree, level);
}

inline std::string spec(const Tree& tree) {
  std::string text = "fattree:k=";
  for (std::size_t at = 0; at < tree.arities.size(); ++at) {
    text += (at == 0 ? "" : "x") + std::to_string(tree.arities[at]);
  }
  if (tree.arities.empty()) text += std::to_string(tree.arity);
  text += ",h=" + std::to_string(tree.height) + ",c=";
  if (tree.capacities.empty()) return text + "1";
  for (std::size_t at = 0; at < tree.capacities.size(); ++at) {
    text += (at == 0 ? "" : ",") + std::to_string(tree.capacities[at]);
  }
  return text;
}

// The parameters for the tree's leaves; `tree` must outlive them.
inline CollectiveParameters parameters_of(const Tree& tree, std::uint32_t root) {
  CollectiveParameters parameters{.ranks = static_cast<std::uint32_t>(leaves(tree, tree.height)),
                                  .root = root,
                                  .arity = tree.arity,
                                  .height = tree.height};
  if (!tree.arities.empty()) parameters.arities = tree.arities.data();
  if (!tree.capacities.empty()) parameters.capacities = tree.capacities.data();
  return parameters;
}

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

// The arities of level 1, 2, .. of all trees of at most `leaves` leaves, whose routers have at most
// `max_arity` children and kMaxLinks links.
inline std::vector<std::vector<std::uint32_t>> arities_of_all(std::int64_t leaves,
                                                              std::uint32_t max_arity = kMaxLinks) {
  std::vector<std::vector<std::uint32_t>> all = {{}};
  for (std::size_t at = 0; at < all.size(); ++at) {
    std::int64_t n = 1;
    for (const std::uint32_t k : all[at]) n *= k;
    for (std::uint32_t k = 2; k <= std::min<std::int64_t>(leaves / n, max_arity); ++k) {
      std::vector<std::uint32_t> more = all[at];
      more.push_back(k);
      if (more.size() > 1 && more.front() == kMaxLinks) continue;  // with the link to the parent
      all.push_back(std::move(more));
    }
  }
  all.erase(all.begin());
  return all;
}

// Trees with different arities in 2..5, at most max_ranks ranks, one lane everywhere.
inline std::vector<Tree> unequal_trees(std::int64_t max_ranks) {
  std::vector<Tree> all;
  for (const std::vector<std::uint32_t>& arities : arities_of_all(max_ranks, 5)) {
    const auto height = static_cast<std::uint32_t>(arities.size());
    const bool equal = arities == std::vector<std::uint32_t>(height, arities[0]);
    if (!equal) all.push_back({0, height, {}, arities});
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

// The most lanes that an all-to-all uses (64 per link, 255 per node) and that have no factor in
// common with the numbers of its messages and ranks. With these lanes everywhere, each stage takes
// as many terms as with any other lanes.
inline std::uint32_t awkward_lanes(const std::vector<std::uint32_t>& arities) {
  std::uint32_t lanes = std::min(64u, 255u / *std::max_element(arities.begin(), arities.end()));
  const auto shares = [&](std::uint32_t k) { return std::gcd(lanes, k * (k - 1)) > 1; };
  while (std::any_of(arities.begin(), arities.end(), shares)) --lanes;
  return lanes;
}

// The tree with one lane everywhere, with exponential capacities, with odd numbers of lanes up to
// 15, and with awkward lanes.
inline std::vector<Tree> with_typical_lanes(const std::vector<std::uint32_t>& arities) {
  const auto height = static_cast<std::uint32_t>(arities.size());
  std::vector<std::uint32_t> exponential = {1}, odd = {1};
  for (std::uint32_t level = 1; level < height; ++level) {
    exponential.push_back(exponential.back() * arities[level - 1]);
    odd.push_back(std::min(odd.back() * arities[level - 1] - 1, 14u) / 2 * 2 + 1);
  }
  std::vector<Tree> all;
  for (const auto& capacities : {std::vector<std::uint32_t>(height, 1), exponential, odd,
                                 std::vector<std::uint32_t>(height, awkward_lanes(arities))}) {
    all.push_back({0, height, capacities, arities});
  }
  return all;
}

inline std::vector<Algorithm> leaf_algorithms() {
  std::vector<Algorithm> leaf;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where == Where::kFatTree) leaf.push_back(algorithm);
  }
  return leaf;
}

inline bool is_rooted(const Algorithm& algorithm) {
  return algorithm.collective < Collective::kAllgather;
}

}  // namespace espalier::fat_trees
