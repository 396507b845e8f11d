// Cuts by maximum flows. A cut separates nodes U from the other nodes V; B(U) is the number of
// messages that may cross from U to V per step.
//
// * All blocks cross any cut that separates a source from a target (broadcast: the root from a
//   rank; reduce reversed; allreduce and barrier: rank 0 from a rank, both ways; scans: rank k from
//   rank k + 1). The steps per block are at least 1 / min B(U) (Edmonds), by one flow per pair. For
//   scans neighbouring ranks are enough: if some rank in U precedes some rank in V, then between
//   them a rank in U directly precedes one in V.
// * Allgather: the blocks of the ranks in U cross, so the steps per block are at least the maximum
//   of |U| / B(U), counted in ranks, over all U without some rank (ForestColl, arXiv 2402.06787).
//   A vertex S has an arc of capacity x to every rank. The flow from S to a rank v is p x for every
//   v if and only if no cut has |U| / B(U) > 1 / x. Otherwise the minimum cut has a greater ratio,
//   which replaces 1 / x (Newton). With 1 / x = num / den all arcs are scaled by num, so everything
//   is an integer. A rank that was satisfied stays satisfied when the ratio grows. Reduce-scatter
//   is the same in the reversed graph.
// * Scatter: the blocks of the ranks in V cross. The root is the source, and every other rank has
//   an arc of capacity x to a vertex T: one flow instead of one per rank. Gather: reversed.
// * All-to-all: |U| |V| / B(U) is hard to maximize. The cuts of an allgather are taken.

#include <numeric>

#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/bounds/flow.h"

namespace espalier::verify {
namespace {

class FlowSearch {
 public:
  FlowSearch(const topology::Topology& topology, const Program& common, bool by_senders,
             std::int64_t work)
      : links_(topology.links()),
        nodes_(topology.nodes()),
        ranks_(common.ranks),
        root_(common.root),
        collective_(common.collective),
        by_senders_(by_senders),
        work_(work) {
    for (const topology::Link& link : links_) per_lanes_ += link.capacity;
  }

  FlowCuts run() {
    switch (collective_.value()) {
      case Collective::kBroadcast: fewest(false, root_); break;
      case Collective::kReduce: fewest(true, root_); break;
      case Collective::kScan:
      case Collective::kExscan: fewest_between_neighbours(); break;
      case Collective::kScatter: parts_of_root(false); break;
      case Collective::kGather: parts_of_root(true); break;
      case Collective::kAllgather:
      case Collective::kAllToAll: parts_of_all(false); break;
      case Collective::kReduceScatter: parts_of_all(true); break;
      default:
        fewest(false, 0);
        fewest(true, 0);
        break;
    }
    return std::move(found_);
  }

 private:
  // Returns the topology, reversed if asked for, with one more vertex. Each arc's capacity is in
  // unit_.
  FlowNetwork network(bool reversed) {
    FlowNetwork network(2 * nodes_ + 1);
    unit_.clear();
    const auto add = [&](std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
      unit_.push_back(capacity);
      if (reversed) std::swap(from, to);
      return network.add_arc(from, to, capacity);
    };
    for (const topology::Link& link : links_) {
      add(by_senders_ ? nodes_ + link.from : link.from, link.to, link.capacity);
    }
    for (std::uint32_t node = 0; by_senders_ && node < nodes_; ++node) add(node, nodes_ + node, 1);
    return network;
  }

  // Keeps the minimum cut of the last flow.
  void keep(const FlowNetwork& network, bool reversed) {
    std::vector<bool> inside(nodes_);
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      inside[node] = network.on_source_side(node) != reversed;
    }
    found_.insides.push_back(std::move(inside));
  }

  void fewest(bool reversed, std::uint32_t root) {
    FlowNetwork network = this->network(reversed);
    for (std::uint32_t rank = 0; rank < ranks_ && found_.complete; ++rank) {
      if (rank != root) narrow(network, reversed, root, rank);
    }
  }

  void fewest_between_neighbours() {
    FlowNetwork network = this->network(false);
    for (std::uint32_t rank = 0; rank + 1 < ranks_ && found_.complete; ++rank) {
      narrow(network, false, rank, rank + 1);
    }
  }

  // Keeps the minimum cut between two ranks if it is below all before.
  void narrow(FlowNetwork& network, bool reversed, std::uint32_t from, std::uint32_t to) {
    const std::int64_t flow = network.max_flow(from, to, fewest_, work_);
    found_.complete = flow >= 0;
    if (flow < 0 || flow >= fewest_) return;
    fewest_ = flow;
    keep(network, reversed);
  }

  // Newton's iteration for one flow: `arcs`, each of capacity x, must all be filled.
  void raise(FlowNetwork& network, bool reversed, std::uint32_t source, std::uint32_t sink,
             const std::vector<std::size_t>& arcs, const std::vector<bool>& counted) {
    while (true) {
      for (std::size_t arc = 0; arc < unit_.size(); ++arc) {
        network.set_capacity(arc, unit_[arc] * most_blocks_);
      }
      for (const std::size_t arc : arcs) network.set_capacity(arc, per_lanes_);
      const std::int64_t all = per_lanes_ * static_cast<std::int64_t>(arcs.size());
      const std::int64_t flow = network.max_flow(source, sink, all, work_);
      found_.complete = flow >= 0;
      if (flow < 0 || flow >= all) return;
      keep(network, reversed);
      // The cut's blocks are the arcs of capacity x that it does not contain; the rest of it are
      // lanes.
      std::int64_t blocks = 0;
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        blocks += counted[rank] && network.on_source_side(rank) == (source >= 2 * nodes_) ? 1 : 0;
      }
      const std::int64_t others = static_cast<std::int64_t>(arcs.size()) - blocks;
      const std::int64_t lanes = (flow - others * per_lanes_) / most_blocks_;
      if (lanes == 0) return;  // the topology is not connected
      const std::int64_t by = std::gcd(blocks, lanes);
      most_blocks_ = blocks / by;
      per_lanes_ = lanes / by;
    }
  }

  void parts_of_all(bool reversed) {
    FlowNetwork network = this->network(reversed);
    const std::uint32_t source = 2 * nodes_;
    std::vector<std::size_t> arcs;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      arcs.push_back(network.add_arc(source, rank, 0));
    }
    const std::vector<bool> counted(ranks_, true);
    for (std::uint32_t rank = 0; rank < ranks_ && found_.complete; ++rank) {
      raise(network, reversed, source, rank, arcs, counted);
    }
  }

  void parts_of_root(bool reversed) {
    FlowNetwork network = this->network(reversed);
    const std::uint32_t sink = 2 * nodes_;
    std::vector<std::size_t> arcs;
    std::vector<bool> counted(ranks_, true);
    counted[root_] = false;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (rank != root_) arcs.push_back(network.add_arc(rank, sink, 0));
    }
    raise(network, reversed, root_, sink, arcs, counted);
  }

  std::vector<topology::Link> links_;
  std::uint32_t nodes_, ranks_, root_;
  Collective collective_;
  bool by_senders_;
  std::int64_t work_;
  std::vector<std::int64_t> unit_;  // by arc of the topology: its capacity
  std::int64_t fewest_ = FlowNetwork::kNoLimit;
  std::int64_t most_blocks_ = 1, per_lanes_ = 1;  // the greatest ratio so far; first below any
  FlowCuts found_;
};

}  // namespace

FlowCuts flow_cuts(const topology::Topology& topology, const Program& common, bool by_senders,
                   std::int64_t work) {
  return FlowSearch(topology, common, by_senders, work).run();
}

}  // namespace espalier::verify
