// [DD96], Dimakopoulos and Dimopoulos: leaf communications in complete trees.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/papers/cost/leaf_queues.h"
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

// Steps until the last leaf below a router has what the router sends to one child after another.
std::int64_t router_steps(std::uint32_t k, std::uint32_t level) {
  std::int64_t last = 0;
  for (std::uint32_t child = 1; level > 0 && child <= k; ++child) {
    last = std::max(last, child + router_steps(k, level - 1));
  }
  return last;
}

void from_a_router(Chapter& chapter) {
  for (const std::uint32_t k : {2u, 3u, 4u}) {
    std::string formula, ours;
    for (std::uint32_t level = 1; level <= 4; ++level) {
      formula += (level > 1 ? " " : "") + std::to_string(k * level);
      ours += (level > 1 ? " " : "") + std::to_string(router_steps(k, level));
    }
    chapter.items.push_back(
        {"equation 1", "broadcast from a router at level 1 .. 4, steps, k=" + std::to_string(k),
         kNothing, formula, "", ours, "message by message"});
  }
}

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
      chapter.items.push_back({"section 2.1",
                               "pipelined broadcast of " + std::to_string(blocks) +
                                   " blocks, single-port, steps, " + size_text(tree),
                               kNothing, "", std::to_string((k + 1) * h - 1 + k * (blocks - 1)),
                               leaf_steps(tree, Collective::kBroadcast, "leaf", blocks), kProven,
                               "the paper has one packet only"});
    }
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

const char* capacity_words(bool constant) { return constant ? "constant" : "exponential"; }

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
  for (const bool constant : {true, false}) {
    chapter.items.push_back(
        {"Theorem 7",
         std::string("multinode broadcast, multiport, flooding, queues unrolled, ") +
             capacity_words(constant) + " capacities, steps, " + size_text(tree),
         kNothing, std::to_string(formula), n == 2 ? "2" : "",
         leaf_steps(tree, Collective::kAllgather, "leaf-flood", 1, constant ? "1" : "k"), kProven,
         n == 2 ? kTwoLeaves : ""});
  }
  note =
      "the paper needs 2 log_k n - 2 steps more without queues and asks what is least; the "
      "optimum itself is reached";
  if (h == 1) note = n == 2 ? kTwoLeaves : "";
  chapter.items.push_back(
      {"section 3.2", "multinode broadcast, multiport, no queue, steps, " + size_text(tree),
       kNothing, std::to_string(without), optimum == std::to_string(without) ? "" : optimum,
       leaf_steps(tree, Collective::kAllgather, "leaf"), kProven, note});
}

// A ring of leaves without rules for routers: its messages are stored and forwarded.
void multinode_ring(Chapter& chapter, TreeSize tree, const char* steps) {
  const std::int64_t k = tree.k, h = tree.h, n = power(k, tree.h);
  chapter.items.push_back(
      {"Theorems 3 and 4",
       "multinode broadcast, single-port, a ring of the leaves, lowered, steps, " + size_text(tree),
       kNothing, std::to_string(k * n + (k + 1) * (h - 2) + 1), steps,
       proven_steps({.topology = spec(tree),
                     .collective = Collective::kAllgather,
                     .algorithm = "ring",
                     .single_send_hops = true}),
       kProven,
       "the theorem's bound for any schedule; in a ring a router of level 1 sends (k+1)(n-1) "
       "times"});
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
  multinode_ring(chapter, {3, 2}, "33");
  multinode_ring(chapter, {2, 3}, "53");
  multinode_ring(chapter, {4, 2}, "76");
  multinode_ring(chapter, {3, 3}, "278");
  // The queues that the conclusion speaks of.
  for (const auto& [tree, longest] : {std::pair{TreeSize{2, 4}, "8"}, {TreeSize{3, 4}, "54"}}) {
    chapter.items.push_back(
        {"section 4",
         "multinode broadcast, multiport, flooding, exponential capacities, "
         "longest queue, messages, " +
             size_text(tree),
         kNothing, "", longest,
         std::to_string(cost::multiport_flood(tree.k, exponential(tree)).longest), kQueues,
         "the paper: excessive in the minimum number of steps; the schedule "
         "without queues takes as many steps"});
  }
}

// The formula before equation 2; without the last term.
std::int64_t phase_slots(TreeSize tree, const std::vector<std::uint32_t>& capacities) {
  std::int64_t steps = 0;
  for (std::uint32_t i = 1; i <= tree.h; ++i) {
    const std::int64_t messages = (tree.k - 1) * power(tree.k, 2 * i - 2);
    steps += (messages + capacities[i - 1] - 1) / capacities[i - 1];
  }
  return steps;
}

// Fig. 4: phases one after the other, and pipelined.
void phases(Chapter& chapter, TreeSize tree, bool constant) {
  const std::int64_t h = tree.h;
  const std::int64_t slots =
      phase_slots(tree, constant ? std::vector<std::uint32_t>(tree.h, 1) : exponential(tree));
  const std::string words = std::string(capacity_words(constant)) + " capacities, steps, ";
  const auto steps = [&](const char* algorithm) {
    return leaf_steps(tree, Collective::kAllToAll, algorithm, 1, constant ? "1" : "k");
  };
  chapter.items.push_back(
      {"section 3.3", "total exchange, multiport, phases in series, " + words + size_text(tree),
       kNothing, std::to_string(slots + h * h), "", steps("leaf-serial"), kProven});
  chapter.items.push_back(
      {"equation 2", "total exchange, multiport, no contention, " + words + size_text(tree),
       kNothing, std::to_string(slots + 2 * h - 1), "", steps("leaf"), kProven});
}

// Theorem 8: its bound, rounded up, and the distance that section 3.3 states.
void exponential_bound(Chapter& chapter, TreeSize tree) {
  const std::int64_t n = power(tree.k, tree.h);
  const double h = tree.h, loglog = std::log(h) / std::log(tree.k);
  const double bound = static_cast<double>(n) + 2 * h - 2 * loglog - 2;
  const std::int64_t reached = n + 2 * std::int64_t{tree.h} - 2;
  chapter.items.push_back(
      {"Theorem 8", "total exchange, exponential capacities, least steps, " + size_text(tree),
       kNothing, fixed(bound, 2), std::to_string(reached),
       leaf_steps(tree, Collective::kAllToAll, "leaf", 1, "k"), kProven,
       "a bound; n + 2 log_k n - 2 steps are within 2 log_k log_k n = " + fixed(2 * loglog, 2)});
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
    for (const bool constant : {true, false}) phases(chapter, tree, constant);
    exponential_bound(chapter, tree);
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

// Section 4: nodes of level i have k_i children. The paper says that its results can be easily
// generalized, without formulas.
const cost::Arities kUnequalTrees[] = {{2, 3},    {3, 2},    {4, 3},   {2, 5},
                                       {2, 3, 4}, {4, 3, 2}, {3, 2, 2}};
constexpr char kGeneralized[] = "the paper has no formula for different k_i";

// The numbers of a tree with different arities, by level 0 .. h.
struct UnequalTree {
  cost::Arities arities;
  std::vector<std::int64_t> leaves = {1};  // below a node
  std::int64_t n = 1, h = 0;

  explicit UnequalTree(const cost::Arities& k) : arities(k) {
    for (const std::uint32_t arity : k) leaves.push_back(n *= arity);
    h = static_cast<std::int64_t>(k.size());
  }
  std::string list() const {
    std::string text;
    for (const std::uint32_t arity : arities) {
      text += (text.empty() ? "k=" : "x") + std::to_string(arity);
    }
    return text;
  }
  std::int64_t k(std::int64_t level) const { return arities[static_cast<std::size_t>(level - 1)]; }
  std::int64_t below(std::int64_t level) const { return leaves[static_cast<std::size_t>(level)]; }
};

// Theorem 3 for different k_i: a router of level l below the root sends k_l n messages. It begins
// in step l + 1, and its last message reaches the last leaf k_1 + ... + k_(l-1) steps later.
std::int64_t multinode_bound(const UnequalTree& tree) {
  std::int64_t most = 0, down = 0;
  for (std::int64_t level = 1; level <= tree.h; down += tree.k(level++)) {
    const std::int64_t sends = tree.k(level) - (level == tree.h ? 1 : 0);
    most = std::max(most, level + sends * tree.n + down);
  }
  return most;
}

// Theorem 5 for different k_i: the messages that a router of level l sends up, down and between its
// own branches. The first arrives in step l, and the last needs l - 1 steps more.
std::int64_t single_exchange_bound(const UnequalTree& tree) {
  std::int64_t most = 0;
  for (std::int64_t level = 1; level <= tree.h; ++level) {
    const std::int64_t all = tree.below(level), branch = tree.below(level - 1);
    const std::int64_t sends = 2 * all * (tree.n - all) + all * (all - branch);
    most = std::max(most, sends + 2 * level - 1);
  }
  return most;
}

// Equation 2 for different k_i, without its last terms. `capacities`: of level 1, 2, ..
std::int64_t exchange_slots(const UnequalTree& tree, const std::vector<std::int64_t>& capacities) {
  std::int64_t slots = 0;
  for (std::int64_t level = 1; level <= tree.h; ++level) {
    const std::int64_t branch = tree.below(level - 1);
    const std::int64_t lanes = capacities[static_cast<std::size_t>(level - 1)];
    slots += ((tree.k(level) - 1) * branch * branch + lanes - 1) / lanes;
  }
  return slots;
}

std::int64_t pipelined_steps(const UnequalTree& tree, bool constant) {
  const std::vector<std::int64_t> ones(tree.arities.size(), 1);
  return exchange_slots(tree, constant ? ones : tree.leaves) + 2 * tree.h - 1;
}

void different_arities(Chapter& chapter) {
  for (const cost::Arities& arities : kUnequalTrees) {
    const UnequalTree tree(arities);
    const std::string spec = "fattree:" + tree.list(), size = ", steps, " + tree.list();
    const auto add = [&](const char* what, std::int64_t expected, const std::string& steps,
                         const char* how) {
      chapter.items.push_back({"section 4", what + size, kNothing, "", std::to_string(expected),
                               steps, how, kGeneralized});
    };
    const auto proven = [&](Collective collective, const char* algorithm, const char* c = "1") {
      return proven_steps({.topology = spec + ",c=" + c,
                           .collective = collective,
                           .algorithm = algorithm,
                           .every_blocks = true});
    };
    const std::int64_t sum = std::accumulate(arities.begin(), arities.end(), std::int64_t{0});
    const std::int64_t least = tree.n + (arities[0] == 2 ? 1 : 0);
    add("broadcast, single-port", tree.h - 1 + sum, proven(Collective::kBroadcast, "leaf"),
        kProven);
    add("broadcast, multiport", 2 * tree.h, proven(Collective::kBroadcast, "leaf-multiport"),
        kProven);
    add("scatter, furthest first", least, proven(Collective::kScatter, "leaf"), kProven);
    add("gather, nearest first", least, proven(Collective::kGather, "leaf"), kProven);
    add("multinode broadcast, single-port", multinode_bound(tree),
        std::to_string(cost::single_port_multinode_broadcast(arities).steps), kQueues);
    add("multinode broadcast, single-port, by programs", multinode_bound(tree),
        proven_steps({.topology = spec + ",c=1",
                      .collective = Collective::kAllgather,
                      .algorithm = "leaf-single",
                      .blocks = 1}),
        kProven);
    add("multinode broadcast, multiport, flooding", least,
        std::to_string(cost::multiport_flood(arities, cost::Arities(arities.size(), 1)).steps),
        kQueues);
    add("multinode broadcast, multiport, no queue", least, proven(Collective::kAllgather, "leaf"),
        kProven);
    add("total exchange, single-port", single_exchange_bound(tree),
        std::to_string(cost::single_port_total_exchange(arities).steps), kQueues);
    add("total exchange, single-port, by programs", single_exchange_bound(tree),
        proven(Collective::kAllToAll, "leaf-single"), kProven);
    const std::int64_t branch = tree.below(tree.h - 1);
    add("total exchange, multiport, levels overlapped, constant capacities",
        branch * (tree.n - branch) + 2 * tree.h - 1,
        proven(Collective::kAllToAll, "leaf-overlapped"), kProven);
    add("total exchange, multiport, constant capacities", pipelined_steps(tree, true),
        proven(Collective::kAllToAll, "leaf"), kProven);
    add("total exchange, multiport, exponential capacities", pipelined_steps(tree, false),
        proven(Collective::kAllToAll, "leaf", "k"), kProven);
  }
}

struct TreeWithLanes {
  cost::Arities arities;
  std::vector<std::int64_t> capacities;  // of level 1, 2, ..
};
const TreeWithLanes kTreesOfManyLevels[] = {
    {{2, 3, 2, 3, 2}, {1, 1, 1, 1, 1}},
    {{2, 3, 2, 3, 2}, {1, 2, 6, 12, 36}},
    {{3, 2, 3, 2, 3, 2}, {1, 1, 1, 1, 1, 1}},
    {{3, 2, 3, 2, 3, 2}, {1, 3, 5, 13, 25, 61}},
    {{2, 2, 2, 2, 2, 2, 3}, {1, 2, 3, 5, 7, 11, 13}},
    {{4, 2, 3, 2}, {1, 3, 5, 11}},
};

// Total exchanges with as many terms as a program has, or with more than one action per stage.
void many_levels(Chapter& chapter) {
  for (const auto& [arities, capacities] : kTreesOfManyLevels) {
    const UnequalTree tree(arities);
    std::string lanes;
    for (const std::int64_t c : capacities) lanes += (lanes.empty() ? "" : ",") + std::to_string(c);
    const std::int64_t slots = exchange_slots(tree, capacities), h = tree.h;
    const auto add = [&](const std::string& what, const char* algorithm, std::int64_t ramp) {
      chapter.items.push_back(
          {"section 4",
           "total exchange, multiport, " + what + ", steps, " + tree.list() + ", c=" + lanes,
           kNothing, "", std::to_string(slots + ramp),
           proven_steps({.topology = "fattree:" + tree.list() + ",c=" + lanes,
                         .collective = Collective::kAllToAll,
                         .algorithm = algorithm,
                         .every_blocks = true}),
           kProven, kGeneralized});
    };
    add("phases in series", "leaf-serial", h * h);
    add("no contention", "leaf", 2 * h - 1);
  }
}

}  // namespace

Chapter leaf_communications() {
  Chapter chapter{
      "[DD96]", "Leaf communications in complete trees (Dimakopoulos, Dimopoulos)", {}, {}};
  from_a_router(chapter);
  single_source(chapter);
  multinode(chapter);
  total_exchange(chapter);
  different_arities(chapter);
  many_levels(chapter);
  return chapter;
}

}  // namespace espalier::papers
