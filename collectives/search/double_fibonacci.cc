// Broadcast and commutative reduce by two Fibonacci trees at once, each of which carries half of
// the message.
//
// Steps: D - 1 + 2N with N blocks in each half. D is about 1.44 log2 p: for n = 64, 126, 256, 512
// and 1023 the steps in addition to 2N are 8, 10, 11, 12 and 14; two_tree.cc has 12, 12, 16, 18 and
// 20. Cost: steps * (alpha + beta*m/2N).
//
// Each rank is a node of both trees, with the same parity of time in both. It then receives in both
// kinds of step, and so may send in both. A node with two children sends in both kinds of step, so
// its rank must be a leaf of the other tree. A node with only a fast child is paired with another
// such node, and the same holds for slow children. This works if in each parity class the nodes
// with two children are at most as many as the leaves. That is the case if the fast edges into even
// times, minus those into odd times, are 0 or 1 (the root's own edge counts as one into time 0).
// The shape is therefore the whole Fibonacci skeleton of that depth, minus fast leaves of the
// parity in surplus, minus the latest leaves until n nodes remain.

#include "collectives/search/double_fibonacci.h"

#include <array>
#include <queue>

#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

struct Shape {
  struct TreeNode {
    std::uint32_t time = 0;
    std::uint32_t parent = kNone;
    bool fast = true;
    bool alive = true;
    std::array<std::uint32_t, 2> child{kNone, kNone};  // fast, slow
    [[nodiscard]] unsigned children() const { return (child[0] != kNone) + (child[1] != kNone); }
  };
  std::vector<TreeNode> nodes;
  std::uint32_t alive = 0;
  std::int64_t balance = 1;  // fast edges into even times minus those into odd times
};

std::int64_t weight(const Shape::TreeNode& node) {
  if (!node.fast) return 0;
  return node.time % 2 == 0 ? 1 : -1;
}

// All nodes up to time `last`.
Shape skeleton(std::uint32_t last) {
  Shape shape;
  shape.nodes.emplace_back();
  for (std::uint32_t index = 0; index < shape.nodes.size(); ++index) {
    for (unsigned slow = 0; slow < 2; ++slow) {
      const std::uint32_t time = shape.nodes[index].time + 1 + slow;
      if (time > last) continue;
      shape.nodes[index].child[slow] = static_cast<std::uint32_t>(shape.nodes.size());
      shape.nodes.push_back({.time = time, .parent = index, .fast = slow == 0});
      shape.balance += weight(shape.nodes.back());
    }
  }
  shape.alive = static_cast<std::uint32_t>(shape.nodes.size());
  return shape;
}

// The removable leaves, the latest first, by their effect on the balance: -1, 0, +1.
class Leaves {
 public:
  explicit Leaves(Shape& shape) : shape_(shape) {
    for (std::uint32_t index = 1; index < shape.nodes.size(); ++index) add(index);
  }
  // Removes the latest leaf that leaves a balance of `least` .. `most`; false if there is none.
  bool drop(std::int64_t least, std::int64_t most) {
    Queue* best = nullptr;
    for (const int change : {0, -1, 1}) {
      const std::int64_t balance = shape_.balance + change;
      Queue& queue = queues_[static_cast<unsigned>(change + 1)];
      if (balance < least || balance > most || queue.empty()) continue;
      if (best == nullptr || queue.top().first > best->top().first) best = &queue;
    }
    if (best == nullptr) return false;
    const std::uint32_t index = best->top().second;
    best->pop();
    Shape::TreeNode& node = shape_.nodes[index];
    node.alive = false;
    --shape_.alive;
    shape_.balance -= weight(node);
    shape_.nodes[node.parent].child[node.fast ? 0 : 1] = kNone;
    add(node.parent);
    return true;
  }

 private:
  using Queue = std::priority_queue<std::pair<std::uint32_t, std::uint32_t>>;  // time, node

  void add(std::uint32_t index) {
    const Shape::TreeNode& node = shape_.nodes[index];
    if (index == 0 || node.children() > 0) return;
    queues_[static_cast<std::size_t>(1 - weight(node))].push({node.time, index});
  }

  Shape& shape_;
  std::array<Queue, 3> queues_;
};

// The skeleton up to time `last`, cut to n balanced nodes; false if it is too small.
bool cut(std::uint32_t last, std::uint32_t n, Shape& shape) {
  shape = skeleton(last);
  if (shape.alive < n) return false;
  Leaves leaves(shape);
  while (shape.balance < 0 || shape.balance > 1) {
    const std::int64_t next = shape.balance + (shape.balance < 0 ? 1 : -1);
    if (!leaves.drop(next, next)) return false;
  }
  while (shape.alive > n) {
    if (!leaves.drop(0, 1)) return false;
  }
  return shape.alive == n;
}

// The nodes in order: the fast subtree, the node, the slow subtree.
std::vector<std::uint32_t> in_order(const Shape& shape) {
  std::vector<std::uint32_t> order, above;
  for (std::uint32_t index = 0; index != kNone || !above.empty();) {
    if (index != kNone) {
      above.push_back(index);
      index = shape.nodes[index].child[0];
    } else {
      order.push_back(above.back());
      above.pop_back();
      index = shape.nodes[order.back()].child[1];
    }
  }
  return order;
}

// For every node of the first tree: the node of the second tree with the same rank. A node with
// two children and a leaf of its parity are paired like brackets, in the trees' order. They are
// near one another, so that a mesh has a place for both trees.
std::vector<std::uint32_t> pair_up(const Shape& shape) {
  std::vector<std::uint32_t> partner(shape.nodes.size());
  std::array<std::vector<std::uint32_t>, 2> open;  // by parity of time: all leaves, or none
  for (std::uint32_t index = 0; index < partner.size(); ++index) partner[index] = index;
  for (const std::uint32_t index : in_order(shape)) {
    const Shape::TreeNode& node = shape.nodes[index];
    if (node.children() == 1) continue;
    std::vector<std::uint32_t>& others = open[node.time % 2];
    if (others.empty() || shape.nodes[others.back()].children() == node.children()) {
      others.push_back(index);
      continue;
    }
    partner[index] = others.back();
    partner[others.back()] = index;
    others.pop_back();
  }
  return partner;
}

}  // namespace

DoubleFibonacci double_fibonacci(std::uint32_t n) {
  ESPALIER_ASSERT(n >= 1);
  Shape shape;
  std::uint32_t last = 0;
  while (!cut(last, n, shape)) ++last;
  const std::vector<std::uint32_t> partner = pair_up(shape);
  std::vector<std::uint32_t> pes(shape.nodes.size(), 0);  // by node of the first tree
  std::uint32_t next = 0;
  for (std::uint32_t index = 0; index < shape.nodes.size(); ++index) {
    if (shape.nodes[index].alive) pes[index] = ++next;
  }
  DoubleFibonacci both;
  both.latency = last + 1;
  for (std::uint32_t tree = 0; tree < 2; ++tree) {
    const auto pe = [&](std::uint32_t index) { return pes[tree == 0 ? index : partner[index]]; };
    for (std::uint32_t index = 0; index < shape.nodes.size(); ++index) {
      const Shape::TreeNode& node = shape.nodes[index];
      if (!node.alive) continue;
      const std::uint32_t parent = node.parent == kNone ? 0 : pe(node.parent);
      both.trees[tree].push_back({pe(index), parent, node.time + tree});
    }
  }
  return both;
}

namespace {

Broadcast plan(const CollectiveParameters& parameters, Collective collective) {
  Broadcast broadcast{.outline = {.collective = collective,
                                  .algorithm = "double-fibonacci",
                                  .segments = 2,
                                  .needs_commutative = collective == Collective::kReduce},
                      .period = 2};
  if (parameters.ranks < 2) return broadcast;
  const DoubleFibonacci both = double_fibonacci(parameters.ranks - 1);
  const auto rank = [&](std::uint32_t pe) { return (parameters.root + pe) % parameters.ranks; };
  for (std::uint32_t tree = 0; tree < 2; ++tree) {
    for (const DoubleFibonacci::TreeNode& node : both.trees[tree]) {
      broadcast.streams.push_back(
          {.from = rank(node.parent), .to = rank(node.pe), .segment = tree, .step = node.step});
    }
  }
  broadcast.steps.a = static_cast<std::int32_t>(both.latency) - 1;
  broadcast.steps.b = 2;
  return broadcast;
}

Result<Programs> search_double_fibonacci(Collective collective, const topology::Topology& topology,
                                         const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const Broadcast broadcast = plan(parameters, collective);
  return collective == Collective::kReduce ? write_reduce(parameters, broadcast)
                                           : write_broadcast(parameters, broadcast);
}

}  // namespace

const SearchedAlgorithm kDoubleFibonacciRows[] = {
    row("double-fibonacci", Collective::kBroadcast, search_double_fibonacci,
        "two pipelined Fibonacci trees, half the message each: D-1+2N steps, D about 1.44 log2 p",
        {.any_topology = true}),
    row("double-fibonacci", Collective::kReduce, search_double_fibonacci,
        "two pipelined Fibonacci trees, half the message each: D-1+2N steps, D about 1.44 log2 p",
        {.needs_commutative = true, .any_topology = true}),
};

}  // namespace espalier::searched
