// [DD96], Dimakopoulos and Dimopoulos: leaf communications in complete trees.

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/cost/leaf_queues.h"
#include "tests/papers/item.h"
#include "tests/papers/proven.h"

namespace espalier::papers {
namespace {

struct TreeSize {
  std::uint32_t k, h;
};
constexpr TreeSize kLeafTrees[] = {{2, 1}, {2, 2}, {2, 3}, {2, 4}, {3, 1},
                                   {3, 2}, {3, 3}, {4, 2}, {4, 3}, {5, 2}};

std::int64_t power(std::int64_t base, std::uint32_t exponent) {
  std::int64_t value = 1;
  while (exponent-- > 0) value *= base;
  return value;
}

std::string size_text(TreeSize tree) {
  return "k=" + std::to_string(tree.k) + ", n=" + std::to_string(power(tree.k, tree.h));
}

std::string spec(TreeSize tree, const char* capacity = "1") {
  return "fattree:k=" + std::to_string(tree.k) + ",h=" + std::to_string(tree.h) + ",c=" + capacity;
}

std::string leaf_steps(TreeSize tree, Collective collective, const char* algorithm,
                       std::int64_t blocks = 1, const char* capacity = "1") {
  return proven_steps({.topology = spec(tree, capacity),
                       .collective = collective,
                       .algorithm = algorithm,
                       .blocks = blocks});
}

constexpr char kQueues[] = "simulation with queues";
constexpr char kTwoLeaves[] = "with two leaves there is no next closest leaf to wait for";

// n, or n + 1 if k = 2: sections 2.2 and 3.2 of the paper.
std::int64_t least_steps(TreeSize tree) { return power(tree.k, tree.h) + (tree.k == 2 ? 1 : 0); }

void single_source(Chapter& chapter) {
  for (const TreeSize tree : kLeafTrees) {
    const std::int64_t k = tree.k, h = tree.h, n = power(k, tree.h);
    chapter.items.push_back({"Theorem 1", "broadcast, single-port, steps, " + size_text(tree),
                             kNothing, std::to_string((k + 1) * h - 1), "",
                             leaf_steps(tree, Collective::kBroadcast, "leaf"), kProven});
    chapter.items.push_back({"section 3.1", "broadcast, multiport, steps, " + size_text(tree),
                             kNothing, std::to_string(2 * h), "",
                             leaf_steps(tree, Collective::kBroadcast, "leaf-multiport"), kProven});
    for (const auto& [name, collective] :
         {std::pair{"scatter", Collective::kScatter}, std::pair{"gather", Collective::kGather}}) {
      chapter.items.push_back(
          {"Theorem 2", std::string(name) + ", furthest first, steps, " + size_text(tree), kNothing,
           std::to_string(least_steps(tree)), n == 2 ? "2" : "",
           leaf_steps(tree, collective, "leaf"), kProven, n == 2 ? kTwoLeaves : ""});
    }
  }
  for (const TreeSize tree : {TreeSize{2, 3}, TreeSize{3, 2}, TreeSize{4, 2}}) {
    const std::int64_t k = tree.k, h = tree.h;
    for (const std::int64_t blocks : {2, 7}) {
      chapter.items.push_back({"-",
                               "pipelined broadcast of " + std::to_string(blocks) +
                                   " blocks, single-port, steps, " + size_text(tree),
                               kNothing, "", std::to_string((k + 1) * h - 1 + k * (blocks - 1)),
                               leaf_steps(tree, Collective::kBroadcast, "leaf", blocks), kProven,
                               "the paper has one packet only"});
    }
  }
}

// The paper's flood reaches its lower bound; without queues it needs 2 log_k n - 2 steps more.
void multiport_multinode(Chapter& chapter, TreeSize tree) {
  const std::int64_t h = tree.h, n = power(tree.k, tree.h);
  const std::int64_t formula = least_steps(tree), without = formula + 2 * h - 2;
  const std::string optimum = std::to_string(n == 2 ? 2 : formula);
  const cost::Queued flood = cost::multiport_flood(tree.k, std::vector<std::uint32_t>(tree.h, 1));
  std::string note = "queues of up to " + std::to_string(flood.longest) + " messages";
  if (n == 2) note += std::string("; ") + kTwoLeaves;
  chapter.items.push_back(
      {"Theorem 7", "multinode broadcast, multiport, flooding, steps, " + size_text(tree), kNothing,
       std::to_string(formula), n == 2 ? "2" : "", std::to_string(flood.steps), kQueues, note});
  note =
      "the paper needs 2 log_k n - 2 steps more without queues and asks what is least; the "
      "optimum itself is reached";
  if (h == 1) note = n == 2 ? kTwoLeaves : "";
  chapter.items.push_back(
      {"section 3.2", "multinode broadcast, multiport, no queue, steps, " + size_text(tree),
       kNothing, std::to_string(without), optimum == std::to_string(without) ? "" : optimum,
       leaf_steps(tree, Collective::kAllgather, "leaf"), kProven, note});
}

// Theorem 3's bound; for h = 1, where the theorem is one less, the sends of the root and one step.
std::int64_t single_port_steps(TreeSize tree) {
  const std::int64_t k = tree.k, h = tree.h;
  return tree.h == 1 ? k * k - k + 1 : k * power(k, tree.h) + (k + 1) * (h - 2) + 1;
}

// The trees of one height with at most 256 leaves. For h = 1 a sample: tests/grid/exchange_test.cc
// has all of them.
std::vector<TreeSize> trees_of_height(std::uint32_t height) {
  std::vector<TreeSize> trees;
  for (std::uint32_t k = 2; power(k, height) <= 256; ++k) {
    if (height == 1 && k > 16 && k != 32 && k != 64 && k != 128) continue;
    trees.push_back({k, height});
  }
  return trees;
}

// Adds the trees of one height, and how many of their schedules take `steps(tree)` steps.
template <class Steps>
void all_trees(Chapter& chapter, const char* where, const std::string& what, Collective collective,
               std::uint32_t height, Steps steps) {
  std::int64_t equal = 0;
  std::string arities;
  const std::vector<TreeSize> trees = trees_of_height(height);
  for (const TreeSize tree : trees) {
    arities += (arities.empty() ? "" : ", ") + std::to_string(tree.k);
    if (leaf_steps(tree, collective, "leaf-single") == std::to_string(steps(tree))) ++equal;
  }
  chapter.items.push_back(
      {where, what + ", trees with these steps, h=" + std::to_string(height) + ", k=" + arities,
       kNothing, std::to_string(trees.size()), "", std::to_string(equal), kProven});
}

void multinode(Chapter& chapter) {
  for (const TreeSize tree : kLeafTrees) {
    const std::int64_t k = tree.k, h = tree.h, n = power(k, tree.h);
    const std::string formula = std::to_string(k * n + (k + 1) * (h - 2) + 1);
    const std::string corrected = h == 1 ? std::to_string(single_port_steps(tree)) : "";
    const std::string note = h == 1 ? "the formula is for h >= 2" : "";
    chapter.items.push_back(
        {"Theorems 3 and 4", "multinode broadcast, single-port, steps, " + size_text(tree),
         kNothing, formula, corrected,
         std::to_string(cost::single_port_multinode_broadcast(tree.k, tree.h).steps), kQueues,
         note});
    chapter.items.push_back(
        {"Theorems 3 and 4",
         "multinode broadcast, single-port, by programs, steps, " + size_text(tree), kNothing,
         formula, corrected, leaf_steps(tree, Collective::kAllgather, "leaf-single"), kProven,
         note});
    multiport_multinode(chapter, tree);
  }
  for (std::uint32_t height = 1; power(2, height) <= 256; ++height) {
    all_trees(chapter, "Theorems 3 and 4", "multinode broadcast, single-port",
              Collective::kAllgather, height, single_port_steps);
  }
}

// Capacities of the two kinds of trees that the paper has.
std::vector<std::uint32_t> exponential(TreeSize tree) {
  std::vector<std::uint32_t> capacities;
  for (std::uint32_t level = 0; level < tree.h; ++level) {
    capacities.push_back(static_cast<std::uint32_t>(power(tree.k, level)));
  }
  return capacities;
}

std::int64_t pipelined_steps(TreeSize tree, const std::vector<std::uint32_t>& capacities) {
  std::int64_t steps = 2 * std::int64_t{tree.h} - 1;
  for (std::uint32_t i = 1; i <= tree.h; ++i) {
    const std::int64_t messages = (tree.k - 1) * power(tree.k, 2 * i - 2);
    steps += (messages + capacities[i - 1] - 1) / capacities[i - 1];
  }
  return steps;
}

void total_exchange(Chapter& chapter) {
  for (const TreeSize tree : kLeafTrees) {
    const std::int64_t k = tree.k, h = tree.h, n = power(k, tree.h);
    // n = k^h, so the numerator divides for h >= 2; for h = 1 it is rounded up.
    const std::int64_t inner =
        (n * n * (2 * k + 1) * (k - 1) + k * k * k - 1) / (k * k * k) + 2 * h - 3;
    const std::int64_t root = n * n * (k - 1) / k + 2 * h - 1;
    chapter.items.push_back(
        {"Theorems 5 and 6", "total exchange, single-port, steps, " + size_text(tree), kNothing,
         std::to_string(inner), root <= inner ? "" : std::to_string(root),
         std::to_string(cost::single_port_total_exchange(tree.k, tree.h).steps), kQueues,
         root > inner ? "the root must send n^2 (k-1)/k messages: its bound is the larger one"
                      : ""});
    chapter.items.push_back(
        {"Theorems 5 and 6", "total exchange, single-port, by programs, steps, " + size_text(tree),
         kNothing, std::to_string(inner), root <= inner ? "" : std::to_string(root),
         leaf_steps(tree, Collective::kAllToAll, "leaf-single"), kProven, "no message waits"});
  }
  for (std::uint32_t height = 1; power(2, height) <= 256; ++height) {
    all_trees(chapter, "Theorems 5 and 6", "total exchange, single-port", Collective::kAllToAll,
              height, [](TreeSize tree) {
                const std::int64_t k = tree.k, h = tree.h, n = power(k, tree.h);
                const std::int64_t root = n * n * (k - 1) / k + 2 * h - 1;
                const std::int64_t inner = n * n * (2 * k + 1) * (k - 1) / (k * k * k) + 2 * h - 3;
                return h == 1 ? root : std::max(root, inner);
              });
  }
  for (const TreeSize tree : kLeafTrees) {
    for (const bool constant : {true, false}) {
      const std::vector<std::uint32_t> capacities =
          constant ? std::vector<std::uint32_t>(tree.h, 1) : exponential(tree);
      chapter.items.push_back(
          {"equation 2",
           std::string("total exchange, multiport, no contention, ") +
               (constant ? "constant" : "exponential") + " capacities, steps, " + size_text(tree),
           kNothing, std::to_string(pipelined_steps(tree, capacities)), "",
           leaf_steps(tree, Collective::kAllToAll, "leaf", 1, constant ? "1" : "k"), kProven});
    }
    const std::int64_t below = power(tree.k, tree.h - 1), n = below * tree.k;
    chapter.items.push_back(
        {"equation 2",
         "total exchange, multiport, levels overlapped, constant capacities, steps, " +
             size_text(tree),
         kNothing, "", std::to_string(below * (n - below) + 2 * std::int64_t{tree.h} - 1),
         leaf_steps(tree, Collective::kAllToAll, "leaf-overlapped"), kProven,
         "what crosses a branch of the root is the bound; the paper takes level after level"});
  }
}

}  // namespace

Chapter leaf_communications() {
  Chapter chapter{
      "[DD96]", "Leaf communications in complete trees (Dimakopoulos, Dimopoulos)", {}, {}};
  single_source(chapter);
  multinode(chapter);
  total_exchange(chapter);
  return chapter;
}

}  // namespace espalier::papers
