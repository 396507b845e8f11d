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
// * Cuts of a tree: each of its links. Cuts of other topologies: around one node, and between any
//   two coordinates of the nodes.

#include "collectives/verify/bounds/hops.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "collectives/verify/bounds/lower_bounds.h"

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
        const std::vector<HopLoad> after = loads_of(edge, true);
        add("hops and links: " + name, after, lanes);
        add("hops and links: " + name, loads_of(edge, false), lanes);
        out.insert(out.end(), after.begin(), after.end());
        const std::vector<HopLoad> before = loads_of(edge ^ 1, false);
        in.insert(in.end(), before.begin(), before.end());
      }
      if (multiport_) continue;
      add("hops and port: all that " + topology_.node_name(node) + " sends", out, 1);
      if (!one_receive()) continue;
      add("hops and port: all that " + topology_.node_name(node) + " receives", in, 1);
    }
  }

  void in_graph();
  [[nodiscard]] std::vector<LowerBound> take() { return std::move(found_); }

 private:
  // Adds the bounds of the cut that separates the nodes `inside` from the others.
  void add_cut(const std::string& name, const std::vector<bool>& inside);
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

  // Adds a bound for the slowest blocks, for these and the next slowest, and so on.
  void add(const std::string& reason, std::vector<HopLoad> loads, std::int64_t lanes) {
    std::sort(loads.begin(), loads.end(),
              [](const HopLoad& a, const HopLoad& b) { return a.steps > b.steps; });
    std::int64_t blocks = 0, opposite = 0;
    for (const HopLoad& load : loads) {
      opposite = blocks == 0 ? load.opposite : std::min(opposite, load.opposite);
      blocks += load.blocks;
      if (load.blocks == 0) continue;
      found_.push_back({reason, (opposite + load.steps) * lanes * segment_count_, blocks,
                        lanes * segment_count_});
    }
  }

  const topology::Topology& topology_;
  const Program& common_;
  std::int64_t segment_count_;
  bool multiport_;
  std::vector<topology::Link> links_;                            // of a graph
  std::vector<std::vector<std::uint32_t>> leads_to_, led_from_;  // by node
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
    for (const std::uint32_t on : next[order[i]]) {
      if (away[on] >= 0) continue;
      away[on] = away[order[i]] + 1;
      order.push_back(on);
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

void HopBounds::add_cut(const std::string& name, const std::vector<bool>& inside) {
  std::set<std::uint32_t> tails, heads;
  std::int64_t lanes = 0;
  for (const topology::Link& link : links_) {
    if (!inside[link.from] || inside[link.to]) continue;
    tails.insert(link.from);
    heads.insert(link.to);
    lanes += link.capacity;
  }
  Branch from, to;
  if (!branch_of(inside, true, tails, from) || !branch_of(inside, false, heads, to)) return;
  if (!multiport_) lanes = std::min(lanes, static_cast<std::int64_t>(tails.size()));
  if (one_receive()) lanes = std::min(lanes, static_cast<std::int64_t>(heads.size()));
  add(name, loads(from, to, true), lanes);
  add(name, loads(from, to, false), lanes);
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
      const std::string name = "hops and links: between the " + std::to_string(ranks) +
                               " ranks of the first " + (across ? "columns and " : "rows and ") +
                               std::to_string(common_.ranks - ranks) + " others";
      add_cut(name, inside);
      inside.flip();
      add_cut(name, inside);
    }
  }
}

void HopBounds::in_graph() {
  const std::uint32_t nodes = topology_.nodes();
  if (topology_.link_count() > kMaxCutWork / 64) return;
  links_ = topology_.links();
  leads_to_.resize(nodes);
  led_from_.resize(nodes);
  for (const topology::Link& link : links_) {
    leads_to_[link.from].push_back(link.to);
    led_from_[link.to].push_back(link.from);
  }
  std::set<std::uint32_t> alone = {0, common_.root, common_.ranks - 1};
  if (links_.size() * nodes <= kMaxCutWork) {
    for (std::uint32_t node = 0; node < common_.ranks; ++node) alone.insert(node);
  }
  for (const std::uint32_t node : alone) {
    std::vector<bool> inside(nodes, false);
    inside[node] = true;
    add_cut("hops and links: out of " + topology_.node_name(node), inside);
    inside.flip();
    add_cut("hops and links: into " + topology_.node_name(node), inside);
  }
  const bool complete = links_.size() >= std::uint64_t{nodes} * (nodes - 1);
  if (!complete) between_coordinates();
}

}  // namespace

std::vector<LowerBound> hop_bounds(const topology::Topology& topology, const Program& common,
                                   std::int64_t segment_count, const std::optional<Tree>& tree) {
  HopBounds hops(topology, common, segment_count);
  if (tree) {
    hops.in_tree(*tree);
  } else {
    hops.in_graph();
  }
  return hops.take();
}

}  // namespace espalier::verify
