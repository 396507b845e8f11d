#include "tests/papers/cost/leaf_queues.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace espalier::cost {
namespace {

constexpr std::uint32_t kEveryLeaf = 0xffffffffu;
constexpr std::uint32_t kParent = 0xffffffffu;

struct Message {
  std::uint32_t origin = 0;
  std::uint32_t destination = kEveryLeaf;
};

// How many sends a node makes per step.
enum class Ports { kSingle, kAll };

// A complete tree with nodes (level, number in the level); leaves are at level 0.
class Tree {
 public:
  Tree(Arities arities, std::vector<std::uint32_t> capacities, Ports ports)
      : arities_(std::move(arities)),
        height_(static_cast<std::uint32_t>(capacities.size())),
        capacities_(std::move(capacities)),
        ports_(ports) {
    std::uint32_t nodes = 1;
    nodes_.resize(height_ + 1);
    for (std::uint32_t level = height_ + 1; level-- > 0;) {
      nodes_[level].resize(nodes);
      if (level == 0) continue;
      for (NodeQueues& node : nodes_[level]) node.down.resize(children(level));
      nodes *= children(level);
    }
  }

  [[nodiscard]] std::uint32_t leaves() const {
    return static_cast<std::uint32_t>(nodes_[0].size());
  }
  // Queues a message at its leaf.
  void add(const Message& message) { nodes_[0][message.origin].up.push_back(message); }

  // Runs until all `expected` messages have arrived at leaves.
  Queued run(std::int64_t expected) {
    Queued result;
    while (arrived_ < expected) {
      ++result.steps;
      for (std::uint32_t level = 0; level <= height_; ++level) {
        for (std::uint32_t index = 0; index < nodes_[level].size(); ++index) send(level, index);
      }
      for (const Moving& moving : moving_) arrive(moving);
      moving_.clear();
      result.longest = std::max(result.longest, longest());
    }
    return result;
  }

 private:
  struct NodeQueues {
    std::deque<Message> up;
    std::vector<std::deque<Message>> down;  // by child
    std::deque<std::uint32_t> turns;  // children, in the order in which a single port serves them
  };
  struct Moving {
    Message message;
    std::uint32_t level, index;  // where it arrives
    std::uint32_t from;          // the child that it comes from; kParent
  };

  // Number of children of a router of the level.
  [[nodiscard]] std::uint32_t children(std::uint32_t level) const { return arities_[level - 1]; }
  // Number of leaves below a node of the level.
  [[nodiscard]] std::uint32_t below(std::uint32_t level) const {
    std::uint32_t leaves = 1;
    for (; level > 0; --level) leaves *= children(level);
    return leaves;
  }

  void send_up(std::uint32_t level, std::uint32_t index) {
    NodeQueues& node = nodes_[level][index];
    const std::uint32_t k = children(level + 1);
    moving_.push_back({node.up.front(), level + 1, index / k, index % k});
    node.up.pop_front();
  }
  void send_down(std::uint32_t level, std::uint32_t index, std::uint32_t child) {
    NodeQueues& node = nodes_[level][index];
    moving_.push_back(
        {node.down[child].front(), level - 1, index * children(level) + child, kParent});
    node.down[child].pop_front();
  }

  void send(std::uint32_t level, std::uint32_t index) {
    NodeQueues& node = nodes_[level][index];
    if (ports_ == Ports::kSingle) {
      if (!node.up.empty()) return send_up(level, index);
      if (node.turns.empty()) return;
      send_down(level, index, node.turns.front());
      node.turns.pop_front();
      return;
    }
    const auto many = [](std::size_t waiting, std::uint32_t lanes) {
      return std::min<std::size_t>(waiting, lanes);
    };
    if (level < height_) {
      for (std::size_t k = many(node.up.size(), capacities_[level]); k > 0; --k)
        send_up(level, index);
    }
    for (std::uint32_t child = 0; level > 0 && child < children(level); ++child) {
      for (std::size_t k = many(node.down[child].size(), capacities_[level - 1]); k > 0; --k) {
        send_down(level, index, child);
      }
    }
  }

  void arrive(const Moving& moving) {
    if (moving.level == 0) {
      ++arrived_;
      return;
    }
    NodeQueues& node = nodes_[moving.level][moving.index];
    const std::uint32_t leaves = below(moving.level), to = moving.message.destination;
    const bool everywhere = to == kEveryLeaf;
    const bool inside = everywhere || to / leaves == moving.index;
    const bool outside = everywhere || !inside;
    if (moving.from != kParent && outside && moving.level < height_) {
      node.up.push_back(moving.message);
    }
    const std::uint32_t k = children(moving.level);
    for (std::uint32_t child = 0; inside && child < k; ++child) {
      const bool takes_branch = everywhere ? child != moving.from : to / (leaves / k) % k == child;
      if (!takes_branch) continue;
      node.down[child].push_back(moving.message);
      node.turns.push_back(child);
    }
  }

  // Leaves hold their own messages; only routers have queues.
  [[nodiscard]] std::int64_t longest() const {
    std::size_t most = 0;
    for (std::uint32_t level = 1; level <= height_; ++level) {
      for (const NodeQueues& node : nodes_[level]) {
        if (ports_ == Ports::kSingle) {
          most = std::max(most, node.up.size() + node.turns.size());
          continue;
        }
        most = std::max(most, node.up.size());
        for (const std::deque<Message>& queue : node.down) most = std::max(most, queue.size());
      }
    }
    return static_cast<std::int64_t>(most);
  }

  Arities arities_;
  std::uint32_t height_;
  std::vector<std::uint32_t> capacities_;
  Ports ports_;
  std::vector<std::vector<NodeQueues>> nodes_;  // by level
  std::vector<Moving> moving_;
  std::int64_t arrived_ = 0;
};

Queued broadcast_all(Tree& tree) {
  for (std::uint32_t leaf = 0; leaf < tree.leaves(); ++leaf) tree.add({leaf, kEveryLeaf});
  const std::int64_t n = tree.leaves();
  return tree.run(n * (n - 1));
}

}  // namespace

Queued single_port_multinode_broadcast(const Arities& arities) {
  Tree tree(arities, std::vector<std::uint32_t>(arities.size(), 1), Ports::kSingle);
  return broadcast_all(tree);
}

Queued single_port_total_exchange(const Arities& arities) {
  Tree tree(arities, std::vector<std::uint32_t>(arities.size(), 1), Ports::kSingle);
  const std::uint32_t n = tree.leaves();
  for (std::uint32_t leaf = 0; leaf < n; ++leaf) {
    // `near` leaves share a subtree with this one; the leaves outside the largest proper subtree
    // come first.
    std::uint32_t all = n;
    for (std::size_t level = arities.size(); level > 0; --level) {
      const std::uint32_t near = all / arities[level - 1], first = leaf / all * all;
      for (std::uint32_t to = first; to < first + all; ++to) {
        if (to / near != leaf / near) tree.add({leaf, to});
      }
      all = near;
    }
  }
  return tree.run(std::int64_t{n} * (n - 1));
}

Queued multiport_flood(const Arities& arities, const std::vector<std::uint32_t>& capacities) {
  Tree tree(arities, capacities, Ports::kAll);
  return broadcast_all(tree);
}

}  // namespace espalier::cost
