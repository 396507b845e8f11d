// Lower bounds if all peers are neighbours, so that every message goes one hop.
//
// * A cut separates nodes U from the other nodes V. A block that crosses it first travels from its
//   ranks to the links of the cut, and then on to its ranks beyond. Let x blocks each need t or
//   more steps after the crossing and h or more before it. The last of them crosses in step h +
//   ceil(x / lanes) or later, so T >= h + ceil(x / lanes) + t. (The bounds of [DD96], for any
//   topology.) The same holds reversed in time, with t before and h after. If a block has several
//   origins or targets, the furthest counts.
// * t and h are hops from (to) the nearest link of the cut: to the nearest rank that the block may
//   be for, or to the furthest if it must reach all. In a tree whose nodes send (receive) once per
//   step, it is the minimum number of steps of a broadcast (a reduction, reversed) there. A node
//   then serves its neighbours in turn, the slowest first (Slater, Cockayne and Hedetniemi 1981).
// * With one send per step, the links out of u share it. With one receive per step, the links into
//   v share it.
// * Cuts of a tree: each of its links. Cuts of other topologies: around one node, between any two
//   coordinates of the nodes, and those that flows find (flow_cuts.cc).
// * If a topology falls apart without a node u, and u sends once per step, the blocks that enter
//   each of the parts share its port. In a tree the parts are the branches at u. The same holds for
//   receives.

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "base/counted.h"
#include "collectives/verify/bounds/all_bounds.h"

namespace espalier::verify {
namespace {

// Blocks (for N = 1) that need a number of steps on one side of the cut: before it, or after it.
struct HopLoad {
  std::int64_t steps = 0, blocks = 0;
  std::int64_t opposite = 0;  // minimum number of steps on the other side
};

class HopBounds {
 public:
  HopBounds(const topology::Topology& topology, const Program& common, std::int64_t segment_count)
      : topology_(topology),
        common_(common),
        segment_count_(segment_count),
        multiport_(common.port_model == PortModel::kMultiport) {}

  void in_tree(const Tree& tree) {
    const auto loads_of = [&](std::uint32_t edge, bool after) {
      return loads(tree.edges()[edge ^ 1].beyond, tree.edges()[edge].beyond, after);
    };
    for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
      std::vector<HopLoad> out, in;
      for (const std::uint32_t edge : tree.edges_from(node)) {
        const Tree::Edge& link = tree.edges()[edge];
        const std::string name = topology_.node_name(node) + " -> " + topology_.node_name(link.to);
        const std::int64_t lanes = multiport_ ? link.capacity : 1;
        const Witness cut{.kind = Witness::Kind::kTreeLink, .from = node, .to = link.to};
        const std::vector<HopLoad> after = loads_of(edge, true);
        add("hops and links: " + name, after, lanes, cut, true);
        add("hops and links: " + name, loads_of(edge, false), lanes, cut, false);
        out.insert(out.end(), after.begin(), after.end());
        const std::vector<HopLoad> before = loads_of(edge ^ 1, false);
        in.insert(in.end(), before.begin(), before.end());
      }
      if (!multiport_) add_branches(node, std::move(out), std::move(in));
    }
  }

  void in_graph(std::string& limited);
  [[nodiscard]] std::vector<LowerBound> take() { return std::move(found_); }

 private:
  struct Neighbour {
    std::uint32_t node = 0, capacity = 1;
  };

  // Adds the bounds of the cut that separates the nodes `inside` from the others.
  void add_cut(const std::string& name, const std::vector<bool>& inside, Witness cut);
  // Adds the bounds of the node's port: of the blocks that it sends into the parts into which the
  // topology falls without it, and that it receives from them.
  void add_branches(std::uint32_t node, std::vector<HopLoad> out, std::vector<HopLoad> in) {
    Witness port{.kind = Witness::Kind::kBranches, .from = node};
    add("hops and port: all that " + topology_.node_name(node) + " sends", std::move(out), 1, port,
        true);
    if (!one_receive()) return;
    port.inwards = true;
    add("hops and port: all that " + topology_.node_name(node) + " receives", std::move(in), 1,
        port, false);
  }
  void at_cut_nodes();
  [[nodiscard]] bool branch_of(const std::vector<bool>& inside, bool inner,
                               const std::set<std::uint32_t>& ends, Branch& branch) const;
  void between_coordinates();

  [[nodiscard]] bool one_receive() const {
    return common_.port_model == PortModel::kOnePortDuplex ||
           common_.port_model == PortModel::kSimplex;
  }
  // Returns the steps to all ranks of the branch, or from all ranks if they combine.
  [[nodiscard]] std::int64_t to_all(const Branch& branch, bool after) const {
    const bool by_turns = after ? !multiport_ : one_receive();
    return by_turns ? branch.spread : branch.depth;
  }

  // Returns the blocks that cross, by their steps after the cut (`after`) or before it.
  [[nodiscard]] std::vector<HopLoad> loads(const Branch& from, const Branch& to, bool after) const {
    const std::int64_t blocks = crossing(common_, from.side, to.side);
    if (blocks == 0) return {};
    // On each side the minimum steps. If blocks differ in their origins or targets, their number
    // per distance counts.
    std::int64_t before_it = from.nearest, after_it = to.nearest;
    bool origins = false, targets = false;
    switch (common_.collective) {
      case Collective::kBroadcast:
        before_it = from.root_at;
        after_it = to_all(to, true);
        break;
      case Collective::kReduce:
        before_it = to_all(from, false);
        after_it = to.root_at;
        break;
      case Collective::kAllreduce:
      case Collective::kBarrier:
        before_it = to_all(from, false);
        after_it = to_all(to, true);
        break;
      case Collective::kScatter:
        before_it = from.root_at;
        targets = true;
        break;
      case Collective::kGather:
        after_it = to.root_at;
        origins = true;
        break;
      case Collective::kAllgather:
        after_it = to_all(to, true);
        origins = true;
        break;
      case Collective::kReduceScatter:
        before_it = to_all(from, false);
        targets = true;
        break;
      case Collective::kAllToAll: origins = targets = true; break;
      default: break;  // scans: no distances are derived from rank order
    }
    if (!(after ? targets : origins)) {
      return {{after ? after_it : before_it, blocks, after ? before_it : after_it}};
    }
    const Branch& side = after ? to : from;
    std::vector<HopLoad> all;
    for (std::size_t hops = 0; hops < side.ranks_at.size(); ++hops) {
      all.push_back({static_cast<std::int64_t>(hops),
                     side.ranks_at[hops] * (blocks / side.side.ranks),
                     after ? before_it : after_it});
    }
    return all;
  }

  // Adds a bound for the slowest blocks, for these and the next slowest, and so on. `after`: they
  // are slow after they cross.
  void add(const std::string& reason, std::vector<HopLoad> loads, std::int64_t lanes,
           const Witness& cut, bool after) {
    std::sort(loads.begin(), loads.end(),
              [](const HopLoad& a, const HopLoad& b) { return a.steps > b.steps; });
    std::int64_t blocks = 0, opposite = 0;
    for (const HopLoad& load : loads) {
      opposite = blocks == 0 ? load.opposite : std::min(opposite, load.opposite);
      blocks += load.blocks;
      if (load.blocks == 0) continue;
      found_.push_back({reason, (opposite + load.steps) * lanes * segment_count_, blocks,
                        lanes * segment_count_, cut});
      found_.back().witness.before = after ? opposite : load.steps;
      found_.back().witness.after = after ? load.steps : opposite;
    }
  }

  const topology::Topology& topology_;
  const Program& common_;
  std::int64_t segment_count_;
  bool multiport_;
  std::vector<std::vector<Neighbour>> leads_to_, led_from_;  // of a graph, by node
  std::vector<LowerBound> found_;
};

// Sets `branch` to one side of a cut, as seen from the ends of its links there. False if some rank
// cannot be reached.
bool HopBounds::branch_of(const std::vector<bool>& inside, bool inner,
                          const std::set<std::uint32_t>& ends, Branch& branch) const {
  const auto& next = inner ? led_from_ : leads_to_;
  std::vector<std::int64_t> away(inside.size(), -1);
  std::vector<std::uint32_t> order(ends.begin(), ends.end());
  for (const std::uint32_t node : ends) away[node] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Neighbour& on : next[order[i]]) {
      if (away[on.node] >= 0) continue;
      away[on.node] = away[order[i]] + 1;
      order.push_back(on.node);
    }
  }
  for (std::uint32_t node = 0; node < common_.ranks; ++node) {
    if (inside[node] != inner) continue;
    if (away[node] < 0) return false;
    const auto hops = static_cast<std::size_t>(away[node]);
    branch.side.add(common_, node);
    branch.ranks_at.resize(std::max(branch.ranks_at.size(), hops + 1), 0);
    ++branch.ranks_at[hops];
    if (node == common_.root) branch.root_at = away[node];
  }
  branch.depth = branch.spread = static_cast<std::int64_t>(branch.ranks_at.size()) - 1;
  const auto nearest = std::find_if(branch.ranks_at.begin(), branch.ranks_at.end(),
                                    [](std::int64_t count) { return count > 0; });
  branch.nearest = nearest - branch.ranks_at.begin();
  return branch.side.ranks > 0;
}

void HopBounds::add_cut(const std::string& name, const std::vector<bool>& inside, Witness cut) {
  std::set<std::uint32_t> tails, heads;
  std::int64_t lanes = 0;
  for (const std::uint32_t node : *cut.nodes) {
    for (const Neighbour& on : cut.others ? led_from_[node] : leads_to_[node]) {
      if (inside[on.node] == inside[node]) continue;
      (cut.others ? heads : tails).insert(node);
      (cut.others ? tails : heads).insert(on.node);
      lanes += on.capacity;
    }
  }
  Branch from, to;
  if (!branch_of(inside, true, tails, from) || !branch_of(inside, false, heads, to)) return;
  const auto limit = [&](Witness::Limit by, std::size_t ends) {
    if (static_cast<std::int64_t>(ends) >= lanes) return;
    lanes = static_cast<std::int64_t>(ends);
    cut.limit = by;
  };
  if (!multiport_) limit(Witness::Limit::kSenders, tails.size());
  if (one_receive()) limit(Witness::Limit::kReceivers, heads.size());
  add(name, loads(from, to, true), lanes, cut, true);
  add(name, loads(from, to, false), lanes, cut, false);
}

// Each node without which the topology falls apart.
void HopBounds::at_cut_nodes() {
  const std::size_t nodes = leads_to_.size();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    std::vector<std::uint32_t> part(nodes, 0);  // number of each node's part; 0: not yet known
    std::uint32_t parts = 0;
    for (std::uint32_t first = 0; first < nodes; ++first) {
      if (first == node || part[first] != 0) continue;
      std::vector<std::uint32_t> queue(1, first);
      part[first] = ++parts;
      for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const auto* next : {&leads_to_[queue[i]], &led_from_[queue[i]]}) {
          for (const Neighbour& on : *next) {
            if (on.node == node || part[on.node] != 0) continue;
            part[on.node] = parts;
            queue.push_back(on.node);
          }
        }
      }
    }
    if (parts < 2) continue;
    std::vector<HopLoad> out, in;
    for (std::uint32_t number = 1; number <= parts; ++number) {
      std::vector<bool> inside(nodes);
      for (std::size_t k = 0; k < nodes; ++k) inside[k] = part[k] == number;
      for (const bool enters : {true, false}) {
        std::set<std::uint32_t> ends;
        for (const Neighbour& on : enters ? leads_to_[node] : led_from_[node]) {
          if (inside[on.node]) ends.insert(on.node);
        }
        Branch there, rest;
        if (enters) inside.flip();
        const bool known =
            branch_of(inside, !enters, ends, there) && branch_of(inside, enters, {node}, rest);
        if (enters) inside.flip();
        if (!known) continue;
        const std::vector<HopLoad> more =
            enters ? loads(rest, there, true) : loads(there, rest, false);
        (enters ? out : in).insert((enters ? out : in).end(), more.begin(), more.end());
      }
    }
    add_branches(node, std::move(out), std::move(in));
  }
}

void HopBounds::between_coordinates() {
  const std::uint32_t nodes = topology_.nodes();
  for (const bool across : {true, false}) {
    std::vector<double> coordinates;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const auto position = topology_.position(node);
      coordinates.push_back(across ? position.x : position.y);
    }
    std::set<double> values(coordinates.begin(), coordinates.end());
    values.erase(std::prev(values.end()));
    for (const double border : values) {
      std::vector<bool> inside;
      for (const double coordinate : coordinates) inside.push_back(coordinate <= border);
      const auto ranks = std::count(inside.begin(), inside.begin() + common_.ranks, true);
      const std::string name = "hops and links: between the " + counted(ranks, "rank") +
                               " of the first " + (across ? "columns and " : "rows and ") +
                               counted(common_.ranks - ranks, "other");
      for (int way = 0; way < 2; ++way) {
        add_cut(name, inside, cut_of(inside));
        inside.flip();
      }
    }
  }
}

void HopBounds::in_graph(std::string& limited) {
  const std::uint32_t nodes = topology_.nodes();
  const std::uint64_t links = topology_.link_count();
  if (links > kMaxCutWork / 64) return;
  leads_to_.resize(nodes);
  led_from_.resize(nodes);
  for (const topology::Link& link : topology_.links()) {
    leads_to_[link.from].push_back({link.to, link.capacity});
    led_from_[link.to].push_back({link.from, link.capacity});
  }
  std::set<std::uint32_t> alone = {0, common_.root, common_.ranks - 1};
  if (links * nodes <= kMaxCutWork) {
    for (std::uint32_t node = 0; node < common_.ranks; ++node) alone.insert(node);
  }
  for (const std::uint32_t node : alone) {
    Witness cut{.kind = Witness::Kind::kCut,
                .nodes = std::make_shared<std::vector<std::uint32_t>>(1, node)};
    std::vector<bool> inside(nodes, false);
    inside[node] = true;
    add_cut("hops and links: out of " + topology_.node_name(node), inside, cut);
    inside.flip();
    cut.others = true;
    add_cut("hops and links: into " + topology_.node_name(node), inside, cut);
  }
  const bool complete = links >= std::uint64_t{nodes} * (nodes - 1);
  if (complete) return;
  between_coordinates();
  if (!multiport_ && links * nodes <= kMaxCutWork / 16) at_cut_nodes();
  if (!profits_from_flows(common_)) return;
  const FlowCuts flows = flow_cuts(topology_, common_, !multiport_);
  for (std::vector<bool> inside : flows.insides) {
    for (int way = 0; way < 2; ++way) {
      const auto within = std::count(inside.begin(), inside.end(), true);
      const std::string name = "hops and links: from " + counted(within, "node") + " to the others";
      add_cut(name, inside, cut_of(inside));
      inside.flip();
    }
  }
  if (!flows.complete) limited = kFlowsEnded;
}

}  // namespace

std::vector<LowerBound> hop_bounds(const topology::Topology& topology, const Program& common,
                                   std::int64_t segment_count, const std::optional<Tree>& tree,
                                   std::string& limited) {
  HopBounds hops(topology, common, segment_count);
  if (tree) {
    hops.in_tree(*tree);
  } else {
    hops.in_graph(limited);
  }
  return hops.take();
}

}  // namespace espalier::verify
