// Lower bounds on the steps by links: what must cross a cut of the topology, at so many messages a
// step. A message of a run of R segments carries R blocks.
//
// * Across a cut (from nodes U to the others, V), per block of N: a broadcast's root in U sends all
//   segments, a reduce's in V gets them; those of an allreduce cross, and those of a scan where a
//   rank in U comes before one in V; a scatter's cross once for each rank in V, a gather's and an
//   allgather's once for each in U; in a reduce-scatter something of U for each segment of V; in an
//   all-to-all one for each pair. That holds whoever passes them on. So T >= ceil(blocks / lanes).
//   Cuts: one node off; where the fabric routes, also a tree at each of its links, and other
//   topologies (meshes) between any two coordinates of their nodes.
// * Where routers have programs every message goes one hop. What crosses the link u -> v of a tree
//   comes from as far behind u as its ranks are, and goes on as far behind v. x blocks that each
//   need t more steps or longer once across, and all at least h before: the last crosses in step
//   h + ceil(x / lanes) or later: T >= h + ceil(x / lanes) + t. (002's bounds, for any
//   tree.) Reversed in time as well: t before, h after.
// * t and h are the hops to the nearest rank it may be for (from); to the furthest, where it
//   must go to all; and where a node sends (receives) once a step, the least steps of a broadcast
//   there (a reduction, reversed): a node serves its neighbours in turn, the slowest first (Slater,
//   Cockayne and Hedetniemi 1981).
// * One send a step: the links out of u share it. One receive a step: those into v.

#include <algorithm>
#include <iterator>
#include <set>

#include "collectives/schedule/arithmetic.h"
#include "collectives/verify/check.h"
#include "collectives/verify/tree.h"

namespace espalier::verify {
namespace {

// Blocks that cross from one side to the other, for N = 1.
std::int64_t crossing(const Program& common, const Side& from, const Side& to) {
  if (from.ranks == 0 || to.ranks == 0) return 0;
  const std::int64_t all = common.segments;
  switch (common.collective) {
    case espalier_Collective_BROADCAST: return from.root ? all : 0;
    case espalier_Collective_REDUCE: return to.root ? all : 0;
    case espalier_Collective_SCAN:
    case espalier_Collective_EXSCAN: return from.lowest < to.highest ? all : 0;
    case espalier_Collective_SCATTER: return from.root ? to.ranks : 0;
    case espalier_Collective_GATHER: return to.root ? from.ranks : 0;
    case espalier_Collective_ALLGATHER: return from.ranks;
    case espalier_Collective_REDUCE_SCATTER: return to.ranks;
    case espalier_Collective_ALL_TO_ALL: return from.ranks * to.ranks;
    default: return all;
  }
}

class Cuts {
 public:
  Cuts(const topology::Topology& topology, const Program& common, std::int64_t run)
      : topology_(topology), common_(common), run_(run) {}

  // One rank against the others. Without `links`: one message for every pair.
  void around(std::uint32_t node, bool links) {
    std::int64_t out = 0, in = 0;
    for (std::uint32_t other = 0; links && other < topology_.nodes(); ++other) {
      out += topology_.capacity(node, other);
      in += topology_.capacity(other, node);
    }
    if (!links) out = in = common_.ranks - std::int64_t{1};
    Side own, rest;
    own.add(common_, node);
    rest = {common_.ranks - std::int64_t{1}, node == 0 ? 1u : 0u,
            common_.ranks - (node == common_.ranks - 1 ? 2 : 1), node != common_.root};
    const std::string name = "links: past those of " + topology_.node_name(node);
    add(name, crossing(common_, own, rest), out);
    add(name, crossing(common_, rest, own), in);
  }

  void at_each_link(const Tree& tree) {
    for (std::size_t k = 0; k < tree.edges().size(); ++k) {
      const Tree::Edge& edge = tree.edges()[k];
      const Side& behind = tree.edges()[k ^ 1].beyond.side;
      add("links: past " + topology_.node_name(edge.from) + " -> " + topology_.node_name(edge.to),
          crossing(common_, behind, edge.beyond.side), edge.capacity);
    }
  }

  void between_coordinates() {
    const std::vector<topology::Link> links = topology_.links();
    for (const bool across : {true, false}) {
      const auto coordinate = [&](std::uint32_t node) {
        const auto position = topology_.position(node);
        return across ? position.x : position.y;
      };
      std::set<double> values;
      for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
        values.insert(coordinate(node));
      }
      values.erase(std::prev(values.end()));
      for (const double at : values) {
        Side in, out;
        for (std::uint32_t node = 0; node < common_.ranks; ++node) {
          (coordinate(node) <= at ? in : out).add(common_, node);
        }
        std::int64_t leaving = 0, entering = 0;
        for (const topology::Link& link : links) {
          const bool from = coordinate(link.from) <= at, to = coordinate(link.to) <= at;
          if (from && !to) leaving += link.capacity;
          if (to && !from) entering += link.capacity;
        }
        const std::string name = "links: past those between " + std::to_string(in.ranks) + " and " +
                                 std::to_string(out.ranks) + " ranks";
        add(name, crossing(common_, in, out), leaving);
        add(name, crossing(common_, out, in), entering);
      }
    }
  }

  [[nodiscard]] std::vector<Witness> take() { return std::move(found_); }

 private:
  void add(const std::string& reason, std::int64_t blocks, std::int64_t lanes) {
    if (blocks == 0 || lanes == 0) return;
    const std::int64_t s = send_ticks(common_), l = latency_ticks(common_);
    found_.push_back({reason, (l - s) * lanes * run_, blocks * s, lanes * run_});
  }

  const topology::Topology& topology_;
  const Program& common_;
  std::int64_t run_;
  std::vector<Witness> found_;
};

// So many blocks (for N = 1) with so many steps elsewhere: before, or after.
struct Load {
  std::int64_t there = 0, blocks = 0;
  std::int64_t opposite = 0;  // at least so many on the other side
};

// By hops and links of a tree whose routers have programs.
class Hops {
 public:
  Hops(const topology::Topology& topology, const Program& common, std::int64_t run,
       const Tree& tree)
      : topology_(topology), common_(common), run_(run), tree_(tree) {}

  std::vector<Witness> find() {
    const bool multiport = common_.port_model == espalier_PortModel_MULTIPORT;
    for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
      std::vector<Load> out, in;
      for (const std::uint32_t edge : tree_.edges_from(node)) {
        const Tree::Edge& link = tree_.edges()[edge];
        const std::string name = topology_.node_name(node) + " -> " + topology_.node_name(link.to);
        const std::int64_t lanes = multiport ? link.capacity : 1;
        const std::vector<Load> after = loads(edge, true);
        add("hops and links: " + name, after, lanes);
        add("hops and links: " + name, loads(edge, false), lanes);
        out.insert(out.end(), after.begin(), after.end());
        const std::vector<Load> before = loads(edge ^ 1, false);
        in.insert(in.end(), before.begin(), before.end());
      }
      if (multiport) continue;
      add("hops and port: all that " + topology_.node_name(node) + " sends", out, 1);
      if (!one_receive()) continue;
      add("hops and port: all that " + topology_.node_name(node) + " receives", in, 1);
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool one_receive() const {
    return common_.port_model == espalier_PortModel_ONE_PORT_DUPLEX ||
           common_.port_model == espalier_PortModel_SIMPLEX;
  }
  // Steps to all ranks of the branch (from all, where they combine).
  [[nodiscard]] std::int64_t to_all(const Branch& branch, bool after) const {
    const bool by_turns =
        after ? common_.port_model != espalier_PortModel_MULTIPORT : one_receive();
    return by_turns ? branch.spread : branch.depth;
  }

  // What crosses the edge, by the steps after it (else before it).
  [[nodiscard]] std::vector<Load> loads(std::uint32_t edge, bool after) const {
    const Branch& from = tree_.edges()[edge ^ 1].beyond;
    const Branch& to = tree_.edges()[edge].beyond;
    const std::int64_t blocks = crossing(common_, from.side, to.side);
    if (blocks == 0) return {};
    // On each side: the least steps, and where blocks differ in theirs, how many there are of each.
    std::int64_t before_it = from.nearest, after_it = to.nearest;
    bool origins = false, targets = false;
    switch (common_.collective) {
      case espalier_Collective_BROADCAST:
        before_it = from.root_at;
        after_it = to_all(to, true);
        break;
      case espalier_Collective_REDUCE:
        before_it = to_all(from, false);
        after_it = to.root_at;
        break;
      case espalier_Collective_ALLREDUCE:
      case espalier_Collective_BARRIER:
        before_it = to_all(from, false);
        after_it = to_all(to, true);
        break;
      case espalier_Collective_SCATTER:
        before_it = from.root_at;
        targets = true;
        break;
      case espalier_Collective_GATHER:
        after_it = to.root_at;
        origins = true;
        break;
      case espalier_Collective_ALLGATHER:
        after_it = to_all(to, true);
        origins = true;
        break;
      case espalier_Collective_REDUCE_SCATTER:
        before_it = to_all(from, false);
        targets = true;
        break;
      case espalier_Collective_ALL_TO_ALL: origins = targets = true; break;
      default: break;  // scans: whose input is wanted where is not looked at
    }
    if (!(after ? targets : origins)) {
      return {{after ? after_it : before_it, blocks, after ? before_it : after_it}};
    }
    const Branch& side = after ? to : from;
    std::vector<Load> all;
    for (std::size_t hops = 0; hops < side.at.size(); ++hops) {
      all.push_back({static_cast<std::int64_t>(hops), side.at[hops] * (blocks / side.side.ranks),
                     after ? before_it : after_it});
    }
    return all;
  }

  // The slowest first, then with the next, and so on.
  void add(const std::string& reason, std::vector<Load> loads, std::int64_t lanes) {
    std::sort(loads.begin(), loads.end(),
              [](const Load& a, const Load& b) { return a.there > b.there; });
    std::int64_t blocks = 0, opposite = 0;
    for (const Load& load : loads) {
      opposite = blocks == 0 ? load.opposite : std::min(opposite, load.opposite);
      blocks += load.blocks;
      if (load.blocks == 0) continue;
      found_.push_back({reason, (opposite + load.there) * lanes * run_, blocks, lanes * run_});
    }
  }

  const topology::Topology& topology_;
  const Program& common_;
  std::int64_t run_;
  const Tree& tree_;
  std::vector<Witness> found_;
};

// For some N none of the others says more.
std::vector<Witness> best_of(const std::vector<Witness>& all) {
  std::set<std::size_t> kept;
  for (const std::int64_t blocks : {1, 2, 3, 8, 64, 4096, 1 << 20}) {
    std::size_t best = all.size();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (best == all.size() || all[k].steps(blocks) > all[best].steps(blocks)) best = k;
    }
    if (best < all.size()) kept.insert(best);
  }
  std::vector<Witness> few;
  for (const std::size_t k : kept) few.push_back(all[k]);
  return few;
}

// So many links times cuts are looked at.
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 24;

}  // namespace

void add_cuts(const topology::Topology& topology, const Program& common, std::int64_t run,
              bool links, std::vector<Witness>& all) {
  const bool modelled = is_modelled(common);
  const std::optional<Tree> tree = links || modelled ? Tree::read(topology, common) : std::nullopt;
  std::vector<Witness> found;
  if (modelled && tree && send_ticks(common) == 1 && latency_ticks(common) == 1) {
    found = Hops(topology, common, run, *tree).find();
  } else {
    Cuts cuts(topology, common, run);
    const std::uint64_t nodes = topology.nodes();
    for (const std::uint32_t node : std::set<std::uint32_t>{0, common.root, common.ranks - 1}) {
      cuts.around(node, links || modelled);
    }
    const bool complete = topology.link_count() >= nodes * (nodes - 1);
    if (tree) {
      cuts.at_each_link(*tree);
    } else if (links && !complete && topology.link_count() * nodes <= kMostWork) {
      cuts.between_coordinates();
    }
    found = cuts.take();
  }
  for (Witness& witness : best_of(found)) all.push_back(std::move(witness));
}

}  // namespace espalier::verify
