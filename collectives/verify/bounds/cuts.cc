// Lower bounds on the steps by links: blocks that must cross a cut of the topology, at a limited
// number of messages per step. A message with R segments carries R blocks.
//
// A cut separates nodes U from the other nodes V. Blocks that cross from U to V, per block of N:
//
// * broadcast: all segments if the root is in U; reduce: all segments if the root is in V;
// * allreduce: all segments; scan, exscan: all segments if a rank in U precedes a rank in V;
// * scatter: one per rank in V if the root is in U; gather: one per rank in U if the root is in V;
// * allgather: one per rank in U; reduce-scatter: one per segment of V; all-to-all: one per pair.
//
// This holds regardless of the nodes that pass them on. So T >= ceil(blocks / lanes). Cuts: around
// one node, at each link of a tree, and in other topologies (meshes) between any two coordinates of
// the nodes, and those that flows find (flow_cuts.cc). If all peers are neighbours, hops.cc has
// stronger bounds.
//
// All-to-all, if the fabric routes and no rank passes data on: each pair's blocks cross every link
// of its route.

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/counted.h"
#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/bounds/tree.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {

std::int64_t crossing(const Program& common, const Side& from, const Side& to) {
  if (from.ranks == 0 || to.ranks == 0) return 0;
  const std::int64_t all = common.segments;
  switch (common.collective) {
    case Collective::kBroadcast: return from.root ? all : 0;
    case Collective::kReduce: return to.root ? all : 0;
    case Collective::kScan:
    case Collective::kExscan: return from.lowest < to.highest ? all : 0;
    case Collective::kScatter: return from.root ? to.ranks : 0;
    case Collective::kGather: return to.root ? from.ranks : 0;
    case Collective::kAllgather: return from.ranks;
    case Collective::kReduceScatter: return to.ranks;
    case Collective::kAllToAll: return from.ranks * to.ranks;
    default: return all;
  }
}

namespace {

class Cuts {
 public:
  Cuts(const topology::Topology& topology, const Program& common, std::int64_t segment_count)
      : topology_(topology), common_(common), segment_count_(segment_count) {}

  // The cut around one rank. Without `links`: one message per pair of ranks, or as many as the
  // lanes of their link.
  void around(std::uint32_t node, bool links) {
    std::int64_t out = 0, in = 0;
    for (std::uint32_t other = 0; other < (links ? topology_.nodes() : common_.ranks); ++other) {
      if (other == node) continue;
      out += links ? topology_.capacity(node, other) : lanes_of(topology_, node, other);
      in += links ? topology_.capacity(other, node) : lanes_of(topology_, other, node);
    }
    Side own, rest;
    own.add(common_, node);
    rest = {common_.ranks - std::int64_t{1}, node == 0 ? 1u : 0u,
            common_.ranks - (node == common_.ranks - 1 ? 2 : 1), node != common_.root};
    const std::string name = "links: past those of " + topology_.node_name(node);
    Witness cut{.kind = Witness::Kind::kCut,
                .limit = links ? Witness::Limit::kLinks : Witness::Limit::kPairs,
                .nodes = std::make_shared<std::vector<std::uint32_t>>(1, node)};
    add(name, crossing(common_, own, rest), out, cut);
    cut.others = true;
    add(name, crossing(common_, rest, own), in, cut);
  }

  void at_each_link(const Tree& tree) {
    for (std::size_t k = 0; k < tree.edges().size(); ++k) {
      const Tree::Edge& edge = tree.edges()[k];
      const Side& behind = tree.edges()[k ^ 1].beyond.side;
      add("links: past " + topology_.node_name(edge.from) + " -> " + topology_.node_name(edge.to),
          crossing(common_, behind, edge.beyond.side), edge.capacity,
          {.kind = Witness::Kind::kTreeLink, .from = edge.from, .to = edge.to});
    }
  }

  void between_coordinates() {
    read_links();
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
      for (const double border : values) {
        std::vector<bool> inside(topology_.nodes());
        for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
          inside[node] = coordinate(node) <= border;
        }
        between(inside);
      }
    }
  }

  // The cuts that maximum flows find. Returns whether the search was complete.
  [[nodiscard]] bool of_flows() {
    read_links();
    const FlowCuts flows = flow_cuts(topology_, common_, false);
    for (const std::vector<bool>& inside : flows.insides) between(inside);
    return flows.complete;
  }

  // All pairs of ranks send along their routes.
  void of_routes() {
    read_links();
    const auto key = [](std::uint32_t from, std::uint32_t to) {
      return (std::uint64_t{from} << 32) | to;
    };
    std::unordered_map<std::uint64_t, std::int64_t> loads(links_.size());
    for (std::uint32_t from = 0; from < common_.ranks; ++from) {
      for (std::uint32_t to = 0; to < common_.ranks; ++to) {
        const std::vector<std::uint32_t> route = topology_.route(from, to);
        for (std::size_t hop = 1; hop < route.size(); ++hop)
          ++loads[key(route[hop - 1], route[hop])];
      }
    }
    const std::int64_t s = send_ticks(common_), l = latency_ticks(common_);
    for (const topology::Link& link : links_) {
      // A message brings its receiver one segment, however many it carries.
      const std::int64_t load = loads[key(link.from, link.to)], lanes = link.capacity;
      found_.push_back({"links: all routes over " + topology_.node_name(link.from) + " -> " +
                            topology_.node_name(link.to) + ", if no rank passes data on",
                        (l - s) * lanes, load * s, lanes,
                        Witness{.kind = Witness::Kind::kRoutes, .from = link.from, .to = link.to}});
    }
  }

  [[nodiscard]] std::vector<LowerBound> take() { return std::move(found_); }

 private:
  void read_links() {
    if (links_.empty()) links_ = topology_.links();
  }

  // The cut between the nodes `inside` and the others, both ways.
  void between(const std::vector<bool>& inside) {
    Side in, out;
    for (std::uint32_t node = 0; node < common_.ranks; ++node) {
      (inside[node] ? in : out).add(common_, node);
    }
    std::int64_t leaving = 0, entering = 0;
    for (const topology::Link& link : links_) {
      if (inside[link.from] && !inside[link.to]) leaving += link.capacity;
      if (inside[link.to] && !inside[link.from]) entering += link.capacity;
    }
    const std::string name = "links: past those between " + std::to_string(in.ranks) + " and " +
                             counted(out.ranks, "rank");
    Witness cut = cut_of(inside);
    add(name, crossing(common_, in, out), leaving, cut);
    cut.others = !cut.others;
    add(name, crossing(common_, out, in), entering, std::move(cut));
  }

  void add(const std::string& reason, std::int64_t blocks, std::int64_t lanes, Witness witness) {
    if (blocks == 0 || lanes == 0) return;
    const std::int64_t s = send_ticks(common_), l = latency_ticks(common_);
    found_.push_back({reason, (l - s) * lanes * segment_count_, blocks * s, lanes * segment_count_,
                      std::move(witness)});
  }

  const topology::Topology& topology_;
  const Program& common_;
  std::int64_t segment_count_;
  std::vector<topology::Link> links_;
  std::vector<LowerBound> found_;
};

constexpr std::uint32_t kMaxRoutedRanks = 512;  // of_routes() asks for each route

}  // namespace

// With one send and one receive per step they cannot, except for an all-to-all: docs/verifier.md.
bool profits_from_flows(const Program& common) {
  if (common.collective == Collective::kAllToAll) return true;
  if (common.port_model == PortModel::kMultiport) return true;
  return common.port_model == PortModel::kSingleSend &&
         (common.collective == Collective::kAllgather || common.collective == Collective::kGather);
}

Witness cut_of(const std::vector<bool>& inside) {
  auto nodes = std::make_shared<std::vector<std::uint32_t>>();
  const bool others = 2 * std::count(inside.begin(), inside.end(), true) >
                      static_cast<std::ptrdiff_t>(inside.size());
  for (std::uint32_t node = 0; node < inside.size(); ++node) {
    if (inside[node] != others) nodes->push_back(node);
  }
  return {.kind = Witness::Kind::kCut, .others = others, .nodes = std::move(nodes)};
}

void add_cuts(const topology::Topology& topology, const Program& common, const BoundFacts& facts,
              KnownBounds& known) {
  const bool by_links = facts.links || facts.neighbours;
  const std::optional<Tree> tree = by_links ? Tree::read(topology, common) : std::nullopt;
  std::vector<LowerBound> found;
  if (facts.neighbours && send_ticks(common) == 1 && latency_ticks(common) == 1) {
    found = hop_bounds(topology, common, facts.segment_count, tree, known.limited);
  } else {
    Cuts cuts(topology, common, facts.segment_count);
    const std::uint64_t nodes = topology.nodes();
    for (const std::uint32_t node : std::set<std::uint32_t>{0, common.root, common.ranks - 1}) {
      cuts.around(node, by_links);
    }
    const bool complete = topology.link_count() >= nodes * (nodes - 1);
    if (tree) {
      cuts.at_each_link(*tree);
    } else if (by_links && !complete && topology.link_count() * nodes <= kMaxCutWork) {
      cuts.between_coordinates();
      if (profits_from_flows(common) && !cuts.of_flows()) known.limited = kFlowsEnded;
      const bool straight = facts.direct && common.collective == Collective::kAllToAll;
      if (straight && !facts.neighbours && common.ranks <= kMaxRoutedRanks) cuts.of_routes();
    }
    found = cuts.take();
  }
  if (facts.neighbours) add_distances(topology, common, known.limited, found);
  for (LowerBound& lower_bound : greatest(found, 1)) known.all.push_back(std::move(lower_bound));
}

}  // namespace espalier::verify
