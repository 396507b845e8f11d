// Collectives inside the network: `in-network`. Routers combine what comes up a tree and replicate
// what goes down, on every topology whose routers run programs. Every node sends to all its
// neighbours in the tree in one step.
//
// The tree is breadth-first. For a broadcast it begins at the root; for everything else at the
// centre of the topology, the node whose furthest rank is nearest. On a fat tree that is the root
// router, and the tree has all links. Let D be the depth of the deepest rank; D = h on a fat tree
// of height h. A node of depth d receives a block from all children in step D - d - 1, combines
// them there, and sends the sum up in step D - d. The root turns round: a node of depth d receives
// from its parent in step D + d - 1, and sends on in step D + d.
//
// Steps: allreduce 2D + N - 1, that is 2h + N - 1 on a fat tree, the minimum if leaves have one
// lane; scan and exscan the same, or fewer if rank 0 alone is deepest; reduce D + d + N - 1, where
// d is the depth of the root rank; barrier 2D; broadcast e + N - 1, where e is the distance of the
// furthest rank. Cost: steps * (alpha + beta*m/N). Source: in-network reduction as in SHArP
// [Graham16]; the tree, the steps and the order are this library's.
//
// Order. If the ranks at and below each node are consecutive, every node combines its children in
// rank order, and the operator need not commute; a scan exists only then. In a scan a node keeps
// the sums of its children before the j-th, and adds the prefix from its parent in front of them.
// The path to the last rank sends nothing up, and the path to rank 0 has no prefix.
//
// A block of INPUT may be overwritten by OUTPUT as soon as it is sent: results go to OUTPUT by a
// copy, so both may be the same memory.
//
// `breadth-first` is the same on any graph, where ranks pass blocks on too, for short messages. The
// tree of a reduce begins at the root as well: e + N - 1 steps. No broadcast and no reduce of one
// block takes fewer than e.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "collectives/build/builder.h"
#include "collectives/search/network_tree.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

// Writes the program of one node of the tree.
class InNetworkNode {
 public:
  InNetworkNode(Builder& builder, const NetworkTree& tree, const Program& program,
                std::uint32_t ranks)
      : builder_(builder),
        tree_(tree),
        program_(program),
        me_(program.node),
        node_(tree.nodes[me_]),
        is_rank_(me_ < ranks),
        last_rank_(ranks - 1) {}

  void add_broadcast() {
    if (node_.ranks == 0) return;
    std::optional<Operand> block;
    if (me_ == tree_.root) {
      block = builder_.input(0);
    } else {
      block = is_rank_ ? builder_.output(0) : builder_.slot(0, builder_.ring(1, 1));
      builder_.receive(node_.depth - 1, node_.parent, *block);
    }
    const std::uint32_t after = me_ == tree_.root ? 0 : 1;
    for (const std::uint32_t child : node_.children) {
      builder_.send(node_.depth, child, *block, after);
    }
  }

  // Reduce, allreduce and barrier. `target`: the only rank that gets the result; null: all do.
  void add_reduction(const std::uint32_t* target) {
    if (node_.ranks == 0) return;
    Operand sum = add_sums(node_.children.size() + (is_rank_ ? 1 : 0), 1).back();
    if (me_ != tree_.root) {
      builder_.send(tree_.depth - node_.depth, node_.parent, sum, is_leaf() ? 0 : 1);
      if (!is_on_way(me_, target)) return;
      sum = builder_.slot(0, builder_.ring(node_.children.empty() ? 0 : 1, 1));
      builder_.receive(down(), node_.parent, sum);
    }
    if (is_rank_ && (target == nullptr || *target == me_) && has_output()) {
      builder_.copy(down(), builder_.output(0), sum);
    }
    for (const std::uint32_t child : node_.children) {
      if (is_on_way(child, target)) builder_.send(down() + 1, child, sum, 1);
    }
  }

  // A node with a total sends it up, except on the path to the last rank. prefix: the combination
  // of all ranks before those of this node.
  void add_scan(bool inclusive) {
    if (node_.ranks == 0) return;
    const std::size_t parts = node_.children.size() + (is_rank_ ? 1 : 0);
    const bool sends = node_.last != last_rank_, receives = node_.first != 0;
    const std::uint32_t lifetime = down() + 1 - up();
    std::vector<Operand> sums;  // sums[j]: of parts 0 .. j
    if (sends || parts > 1) sums = add_sums(sends ? parts : parts - 1, lifetime);
    if (sends) {
      builder_.send(tree_.depth - node_.depth, node_.parent, sums.back(), is_leaf() ? 0 : 1);
    }
    std::optional<Operand> prefix;
    if (receives) {
      prefix = builder_.slot(0, builder_.ring(node_.children.empty() ? 0 : 1, 1));
      builder_.receive(down(), node_.parent, *prefix);
      // The combine below waits for the receive of the prefix, and for operations. So a block that
      // no operation has touched is copied onto itself.
      if (sums.size() == 1 && parts > 1 && !is_own(0)) builder_.copy(up(), sums[0], sums[0]);
      for (std::size_t part = 1; part < parts; ++part) {
        builder_.combine(down(), sums[part - 1], *prefix, sums[part - 1]);
      }
    }
    // The window orders a send after steps that far back.
    const std::uint32_t after = receives ? 1 : lifetime;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::optional<Operand> before = part == 0 ? prefix : sums[part - 1];
      if (is_own(part)) {
        add_result(before, inclusive);
      } else if (before) {
        builder_.send(down() + 1, child_of(part), *before, after < program_.window ? after : 0);
      }
    }
  }

 private:
  // The steps in which block 0 comes from the children, and from the parent (at the root: in which
  // it is complete).
  [[nodiscard]] std::uint32_t up() const {
    return is_leaf() ? tree_.depth - node_.depth : tree_.depth - node_.depth - 1;
  }
  [[nodiscard]] std::uint32_t down() const { return tree_.depth + node_.depth - 1; }
  [[nodiscard]] bool is_leaf() const { return node_.children.empty(); }
  [[nodiscard]] bool has_output() const {
    return buffer_extent(program_, Buffer::kOutput) != Extent::kNothing;
  }
  // Whether `target` is `number`, or below it.
  [[nodiscard]] bool is_on_way(std::uint32_t number, const std::uint32_t* target) const {
    if (target == nullptr) return true;
    for (std::uint32_t at = *target; at != tree_.root; at = tree_.nodes[at].parent) {
      if (at == number) return true;
    }
    return number == tree_.root;
  }

  // The parts of a node's sum are its children and, of a rank, its own block, in rank order.
  [[nodiscard]] std::size_t own_part() const {
    const auto after =
        std::find_if(node_.children.begin(), node_.children.end(),
                     [this](std::uint32_t child) { return tree_.nodes[child].first > me_; });
    return static_cast<std::size_t>(after - node_.children.begin());
  }
  [[nodiscard]] bool is_own(std::size_t part) const { return is_rank_ && part == own_part(); }
  [[nodiscard]] std::uint32_t child_of(std::size_t part) const {
    return node_.children[is_rank_ && part > own_part() ? part - 1 : part];
  }

  // Adds the receives of the first `parts` parts, and their sums in order. Each sum is kept for
  // `lifetime` steps.
  std::vector<Operand> add_sums(std::size_t parts, std::uint32_t lifetime) {
    if (is_leaf()) return {builder_.input(0)};
    std::vector<Operand> sums;
    for (std::size_t part = 0; part < parts; ++part) {
      const Operand slot = builder_.slot(0, builder_.ring(lifetime, 1));
      if (is_own(part)) {
        builder_.copy(up(), slot, builder_.input(0));
      } else {
        builder_.receive(up(), child_of(part), slot);
      }
      sums.push_back(slot);
    }
    for (std::size_t part = 1; part < parts; ++part) {
      builder_.combine(up(), sums[part], sums[part - 1], sums[part]);
    }
    return sums;
  }

  void add_result(const std::optional<Operand>& before, bool inclusive) {
    const Operand result = builder_.output(0);
    if (!before) {
      if (inclusive) builder_.copy(0, result, builder_.input(0));
    } else if (inclusive) {
      builder_.combine(down(), result, *before, builder_.input(0));
    } else {
      builder_.copy(down(), result, *before);
    }
  }

  Builder& builder_;
  const NetworkTree& tree_;
  const Program& program_;
  const std::uint32_t me_;
  const NetworkTree::Node& node_;
  const bool is_rank_;
  const std::uint32_t last_rank_;
};

// The step in which block 0 arrives last.
std::uint32_t last_arrival(const NetworkTree& tree, Collective collective,
                           const CollectiveParameters& parameters) {
  if (collective == Collective::kBroadcast) return tree.depth - 1;
  if (collective == Collective::kReduce) {
    return tree.depth + tree.nodes[parameters.root].depth - 1;
  }
  if (collective != Collective::kScan && collective != Collective::kExscan) {
    return 2 * tree.depth - 1;
  }
  std::uint32_t deepest = 0;  // of the ranks that get a prefix
  for (std::uint32_t rank = 1; rank < parameters.ranks; ++rank) {
    deepest = std::max(deepest, tree.nodes[rank].depth);
  }
  return tree.depth + deepest - 1;
}

void add_actions(InNetworkNode node, Collective collective, std::uint32_t root) {
  switch (collective.value()) {
    case Collective::kBroadcast: return node.add_broadcast();
    case Collective::kReduce: return node.add_reduction(&root);
    case Collective::kScan: return node.add_scan(true);
    case Collective::kExscan: return node.add_scan(false);
    default: return node.add_reduction(nullptr);
  }
}

Result<Programs> write_all(const topology::Topology& topology,
                           const CollectiveParameters& parameters, const NetworkTree& tree,
                           const Outline& outline) {
  Programs programs(topology.nodes());
  Count bound{};
  const std::int32_t last = as_int(last_arrival(tree, outline.collective, parameters));
  for (std::uint32_t number = 0; number < topology.nodes(); ++number) {
    Program& program = programs[number];
    Builder builder(program);
    Status status = builder.begin(parameters, number, outline);
    if (status == Status::kOk) {
      if (number == 0) bound = verify::provable_bound(topology, program, 1, true);
      add_actions(InNetworkNode(builder, tree, program, parameters.ranks), outline.collective,
                  parameters.root);
      builder.phase(1, outline.one_block ? last + 1 : last, outline.one_block ? 0 : 1);
      status = builder.finish(bound);
    }
    if (status == Status::kTooLarge) {
      return fail(outline.algorithm + (" on " + topology.title()) + ": " +
                  topology.node_name(number) + " has " +
                  std::to_string(tree.nodes[number].children.size()) +
                  " children in the tree, and its program has no room for them; expected fewer");
    }
    if (status != Status::kOk) {
      return fail(std::string(outline.algorithm) + ": " + status_name(status));
    }
  }
  return programs;
}

Outline outline_of(Collective collective, const char* algorithm, const topology::Topology& topology,
                   const NetworkTree& tree) {
  const bool reduces = collective == Collective::kReduce || collective == Collective::kAllreduce;
  return {.collective = collective,
          .algorithm = algorithm,
          .one_block = collective == Collective::kBarrier,
          .needs_commutative = reduces && !tree.keeps_order,
          .nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0,
          .port_model = PortModel::kMultiport};
}

Result<Programs> in_network(Collective collective, const topology::Topology& topology,
                            const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const std::string name = "in-network on " + topology.title() + ": ";
  if (topology.nodes() == topology.ranks() || topology.ranks() < 2) {
    return fail(name + "expected routers, and at least two ranks");
  }
  auto tree = collective == Collective::kBroadcast ? tree_from(topology, parameters.root)
                                                   : tree_from_centre(topology);
  if (!tree) return fail("in-network on " + tree.error().message);
  const bool scans = collective == Collective::kScan || collective == Collective::kExscan;
  if (scans && !tree->keeps_order) {
    return fail(name + "a router's ranks are not consecutive, so no scan keeps their order");
  }
  return write_all(topology, parameters, *tree,
                   outline_of(collective, "in-network", topology, *tree));
}

Result<Programs> breadth_first(Collective collective, const topology::Topology& topology,
                               const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  if (!can_pack_one_root(topology)) {
    return fail("breadth-first on " + topology.title() + ": expected at most " +
                std::to_string(kMaxPackedNodes) + " nodes, and at most " +
                std::to_string(kMaxPackedLinks) + " links per node");
  }
  if (topology.ranks() == 1 && topology.nodes() > 1) {
    return fail("breadth-first on " + topology.title() +
                ": expected at least two ranks, or no router");
  }
  auto tree =
      has_root(collective) ? tree_from(topology, parameters.root) : tree_from_centre(topology);
  if (!tree) return fail("breadth-first on " + tree.error().message);
  const Outline outline = outline_of(collective, "breadth-first", topology, *tree);
  if (topology.nodes() == 1) return write_alone(parameters, outline);
  return write_all(topology, parameters, *tree, outline);
}

bool with_routers(const topology::Topology& topology) {
  return topology.nodes() > topology.ranks() && topology.ranks() > 1;
}

constexpr SearchedAlgorithm in_network_row(Collective collective, const char* summary) {
  return row("in-network", collective, in_network, summary,
             {.topologies = "topologies with routers, which run programs too",
              .applies = with_routers,
              .has_routers = true});
}

constexpr SearchedAlgorithm breadth_first_row(Collective collective, const char* summary) {
  return row("breadth-first", collective, breadth_first, summary,
             {.needs_commutative =
                  collective == Collective::kReduce || collective == Collective::kAllreduce,
              .topologies = "at most 256 nodes of 16 links",
              .applies = can_pack_one_root,
              .own_links = true});
}

}  // namespace

const SearchedAlgorithm kInNetworkRows[] = {
    in_network_row(
        Collective::kBroadcast,
        "routers replicate along a breadth-first tree: e+N-1 steps, e to the furthest rank"),
    in_network_row(Collective::kReduce,
                   "routers combine, the result goes from the centre to the root: at most 2D+N-1 "
                   "steps, D = h on a fat tree"),
    in_network_row(Collective::kAllreduce,
                   "routers combine up a tree from the centre and replicate down: 2D+N-1 steps, D "
                   "= h on a fat tree"),
    in_network_row(
        Collective::kScan,
        "routers combine up, and add prefixes down: at most 2D+N-1 steps, D = h on a fat tree"),
    in_network_row(
        Collective::kExscan,
        "routers combine up, and add prefixes down: at most 2D+N-1 steps, D = h on a fat tree"),
    in_network_row(Collective::kBarrier,
                   "routers wait for all below, then let all go: 2D steps, D = h on a fat tree"),
};

const SearchedAlgorithm kBreadthFirstRows[] = {
    breadth_first_row(Collective::kBroadcast,
                      "a breadth-first tree from the root: e+N-1 steps, e to the furthest rank"),
    breadth_first_row(Collective::kReduce,
                      "a breadth-first tree into the root: e+N-1 steps, e from the furthest rank"),
    breadth_first_row(Collective::kAllreduce,
                      "into the centre and out again: 2D+N-1 steps, D to the furthest rank"),
    breadth_first_row(Collective::kBarrier,
                      "into the centre and out again: 2D steps, D to the furthest rank"),
};

}  // namespace espalier::searched
