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
// the nodes. If all peers are neighbours, hops.cc has stronger bounds.

#include "collectives/verify/bounds/cuts.h"

#include <iterator>
#include <set>

#include "collectives/verify/bounds/hops.h"
#include "collectives/verify/bounds/tree.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/base/arithmetic.h"

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

  // The cut around one rank. Without `links`: one message per pair of ranks.
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
      for (const double border : values) {
        Side in, out;
        for (std::uint32_t node = 0; node < common_.ranks; ++node) {
          (coordinate(node) <= border ? in : out).add(common_, node);
        }
        std::int64_t leaving = 0, entering = 0;
        for (const topology::Link& link : links) {
          const bool from = coordinate(link.from) <= border, to = coordinate(link.to) <= border;
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

  [[nodiscard]] std::vector<LowerBound> take() { return std::move(found_); }

 private:
  void add(const std::string& reason, std::int64_t blocks, std::int64_t lanes) {
    if (blocks == 0 || lanes == 0) return;
    const std::int64_t s = send_ticks(common_), l = latency_ticks(common_);
    found_.push_back(
        {reason, (l - s) * lanes * segment_count_, blocks * s, lanes * segment_count_});
  }

  const topology::Topology& topology_;
  const Program& common_;
  std::int64_t segment_count_;
  std::vector<LowerBound> found_;
};

}  // namespace

void add_cuts(const topology::Topology& topology, const Program& common, std::int64_t segment_count,
              Facts facts, std::vector<LowerBound>& all) {
  const bool by_links = facts.links || facts.neighbours;
  const std::optional<Tree> tree = by_links ? Tree::read(topology, common) : std::nullopt;
  std::vector<LowerBound> found;
  if (facts.neighbours && send_ticks(common) == 1 && latency_ticks(common) == 1) {
    found = hop_bounds(topology, common, segment_count, tree);
  } else {
    Cuts cuts(topology, common, segment_count);
    const std::uint64_t nodes = topology.nodes();
    for (const std::uint32_t node : std::set<std::uint32_t>{0, common.root, common.ranks - 1}) {
      cuts.around(node, by_links);
    }
    const bool complete = topology.link_count() >= nodes * (nodes - 1);
    if (tree) {
      cuts.at_each_link(*tree);
    } else if (by_links && !complete && topology.link_count() * nodes <= kMaxCutWork) {
      cuts.between_coordinates();
    }
    found = cuts.take();
  }
  for (LowerBound& lower_bound : greatest(found, 1)) all.push_back(std::move(lower_bound));
}

}  // namespace espalier::verify
