// `time-expanded`: allgather and reduce-scatter of short messages on any graph, in few steps. Nodes
// exchange messages with neighbours only; routers run programs.
//
// Allgather, step by step. In a step every node may receive as many blocks as lanes lead to it,
// each from a neighbour that had the block before the step. Which link brings which block to a node
// is a bipartite matching: blocks are taken in the order of their value to the node, and an
// augmenting path says whether a further one still fits. So every step brings as many blocks to
// every rank as possible. First come blocks that few nodes have; among equals, chance decides. A
// router takes a block only if the block is then nearer to a rank that lacks it, or as near by
// another way, and first those that come nearer to many ranks.
//
// Searches kAttempts times, with numbers of a fixed generator, and takes the first result with the
// fewest steps. The search ends early at max(diameter, ceil((p - 1) / lanes into a rank)), a lower
// bound. So the result depends on the topology only.
//
// Reduce-scatter: the allgather of the reversed graph, backwards.
//
// The next round of blocks begins after the last step: S steps for one block, S N for N of them.
// Cost: steps * (alpha + beta * m / N); N = 1 is the cheapest. For long messages: packed-trees.

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/search/fitting.h"
#include "collectives/search/packing/packing_graph.h"
#include "collectives/search/packing/tree_packing.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "collectives/search/tree_hops.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

constexpr int kAttempts = 200;
constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();

using Lists = std::vector<std::vector<std::uint32_t>>;

// Links as distances, and as the lanes that lead to each node.
struct LaneGraph {
  explicit LaneGraph(const PackingGraph& graph)
      : ranks(graph.ranks), nodes(graph.nodes), lanes_into(graph.nodes), away(graph.nodes) {
    Lists out(nodes);
    for (const PackingLink& link : graph.links) {
      out[link.from].push_back(link.to);
      for (std::int64_t lane = 0; lane < link.lanes; ++lane)
        lanes_into[link.to].push_back(link.from);
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      away[node].assign(nodes, kAbsent);
      away[node][node] = 0;
      std::vector<std::uint32_t> queue = {node};
      for (std::size_t next = 0; next < queue.size(); ++next) {
        for (const std::uint32_t on : out[queue[next]]) {
          if (away[node][on] != kAbsent) continue;
          away[node][on] = away[node][queue[next]] + 1;
          queue.push_back(on);
        }
      }
    }
  }

  // No allgather takes fewer steps; kAbsent: none is possible.
  [[nodiscard]] std::uint32_t least_steps() const {
    std::uint32_t least = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto lanes = static_cast<std::uint32_t>(lanes_into[rank].size());
      if (ranks > 1 && lanes == 0) return kAbsent;
      if (lanes > 0) least = std::max(least, (ranks - 1 + lanes - 1) / lanes);
      for (std::uint32_t from = 0; from < ranks; ++from) least = std::max(least, away[from][rank]);
    }
    return least;
  }

  std::uint32_t ranks, nodes;
  Lists lanes_into;  // by node: the other end of each lane
  Lists away;        // away[u][v]: links from u to v
};

// A message of an allgather: the block of rank `origin`.
struct TimedMessage {
  std::uint32_t from = 0, to = 0, origin = 0;
  std::int32_t step = 0;
};

// One search. Blocks are named by their origin.
class Attempt {
 public:
  Attempt(const LaneGraph& graph, std::mt19937_64& random)
      : graph_(graph),
        random_(random),
        arrived_(graph.nodes, std::vector<std::int32_t>(graph.ranks, kNever)),
        holders_(graph.ranks, 1),
        nearest_(graph.ranks) {
    for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) {
      arrived_[rank][rank] = -1;
      nearest_[rank] = graph.away[rank];
    }
    left_ = graph.ranks * (graph.ranks - 1);
  }

  // The messages in order of steps; none if they take more steps than `limit`.
  std::optional<std::vector<TimedMessage>> run(std::int32_t limit) {
    for (std::int32_t step = 0; left_ > 0; ++step) {
      if (step >= limit) return std::nullopt;
      const std::size_t before = messages_.size();
      // Ranks first: what they receive needs no router any more.
      for (std::uint32_t node = 0; node < graph_.nodes; ++node) receive(node, step);
      if (messages_.size() == before) return std::nullopt;
    }
    return useful();
  }

 private:
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  struct Wanted {
    std::int64_t value = 0;  // the greatest first
    std::uint64_t chance = 0;
    std::uint32_t origin = 0;
  };

  // Returns the number of ranks that lack the block and come nearer to it if `node` has it, times
  // all ranks, plus the number of ranks that get one more neighbour as near.
  [[nodiscard]] std::int64_t gain(std::uint32_t node, std::uint32_t origin) const {
    std::int64_t nearer = 0, as_near = 0;
    for (std::uint32_t rank = 0; rank < graph_.ranks; ++rank) {
      if (arrived_[rank][origin] != kNever) continue;
      nearer += graph_.away[node][rank] < nearest_[origin][rank] ? 1 : 0;
      as_near += graph_.away[node][rank] == nearest_[origin][rank] ? 1 : 0;
    }
    return nearer * graph_.ranks + as_near;
  }

  void receive(std::uint32_t node, std::int32_t step) {
    std::vector<Wanted> wanted;
    for (std::uint32_t origin = 0; origin < graph_.ranks; ++origin) {
      if (arrived_[node][origin] != kNever) continue;
      const bool is_rank = node < graph_.ranks;
      const std::int64_t more = is_rank ? 0 : gain(node, origin);
      if (!is_rank && more == 0) continue;
      wanted.push_back({more * graph_.nodes - holders_[origin], random_(), origin});
    }
    std::sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) {
      return std::tuple(b.value, a.chance, a.origin) < std::tuple(a.value, b.chance, b.origin);
    });
    const std::vector<std::uint32_t>& lanes = graph_.lanes_into[node];
    block_of_.assign(lanes.size(), kAbsent);
    std::size_t taken = 0;
    for (const Wanted& one : wanted) {
      if (taken == lanes.size()) break;
      tried_.assign(lanes.size(), false);
      taken += find_lane(lanes, one.origin, step) ? 1 : 0;
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (block_of_[lane] != kAbsent) take(lanes[lane], node, block_of_[lane], step);
    }
  }

  // Finds a lane for the block, if need be by moving others to other lanes.
  bool find_lane(const std::vector<std::uint32_t>& lanes, std::uint32_t origin, std::int32_t step) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const std::int32_t there = arrived_[lanes[lane]][origin];
      if (tried_[lane] || there == kNever || there >= step) continue;
      tried_[lane] = true;
      if (block_of_[lane] == kAbsent || find_lane(lanes, block_of_[lane], step)) {
        block_of_[lane] = origin;
        return true;
      }
    }
    return false;
  }

  void take(std::uint32_t from, std::uint32_t node, std::uint32_t origin, std::int32_t step) {
    arrived_[node][origin] = step;
    ++holders_[origin];
    for (std::uint32_t rank = 0; rank < graph_.ranks; ++rank) {
      nearest_[origin][rank] = std::min(nearest_[origin][rank], graph_.away[node][rank]);
    }
    if (node < graph_.ranks) --left_;
    messages_.push_back({from, node, origin, step});
  }

  // Without those to routers that pass a block to no one.
  [[nodiscard]] std::vector<TimedMessage> useful() const {
    std::vector<std::vector<bool>> needed(graph_.nodes, std::vector<bool>(graph_.ranks, false));
    std::vector<TimedMessage> kept;
    for (std::size_t next = messages_.size(); next-- > 0;) {
      const TimedMessage& one = messages_[next];
      if (one.to >= graph_.ranks && !needed[one.to][one.origin]) continue;
      needed[one.from][one.origin] = true;
      kept.push_back(one);
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }

  const LaneGraph& graph_;
  std::mt19937_64& random_;
  std::vector<std::vector<std::int32_t>> arrived_;  // by node and origin: the step
  std::vector<std::int64_t> holders_;               // by origin: nodes that have the block
  Lists nearest_;  // by origin and rank: links from the nearest node that has the block
  std::size_t left_ = 0;
  std::vector<TimedMessage> messages_;
  // State of one node and step: the block of each lane, and which lanes were tried.
  std::vector<std::uint32_t> block_of_;
  std::vector<bool> tried_;
};

struct Gathering {
  std::int32_t steps = 0;
  std::vector<PackedTree> trees;                 // by root
  std::vector<std::vector<EdgeSteps>> steps_of;  // by root and edge
};

Result<Gathering> find_gathering(const PackingGraph& links) {
  const LaneGraph graph(links);
  const std::uint32_t least = graph.least_steps();
  if (least == kAbsent) return fail("no links lead from some rank to another");
  std::mt19937_64 random(1);
  std::optional<std::vector<TimedMessage>> best;
  std::int32_t limit = std::numeric_limits<std::int32_t>::max();
  for (int attempt = 0; attempt < kAttempts && limit > as_int(least); ++attempt) {
    auto found = Attempt(graph, random).run(limit - 1);
    if (!found) continue;
    limit = found->empty() ? 0 : found->back().step + 1;
    best = std::move(found);
  }
  if (!best) return fail("no schedule was found");
  Gathering gathering;
  gathering.steps = limit;
  gathering.steps_of.resize(graph.ranks);
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) gathering.trees.push_back({rank, 0, {}});
  for (const TimedMessage& one : *best) {
    gathering.trees[one.origin].edges.push_back({one.from, one.to});
    gathering.steps_of[one.origin].push_back({one.step});
  }
  return gathering;
}

lower::HopGraph hops_of(const PackingGraph& graph, const Gathering& gathering, bool reduces) {
  TreeHops hops(graph, 1);
  for (std::uint32_t root = 0; root < graph.ranks; ++root) {
    std::vector<EdgeSteps> steps = gathering.steps_of[root];
    const PackedTree& tree = gathering.trees[root];
    if (!reduces) {
      (void)hops.copy(root, 0, as_int(root));
      (void)hops.broadcast(tree, 0, as_int(root), {-1, as_int(root)}, steps);
      continue;
    }
    for (EdgeSteps& one : steps) one.front() = gathering.steps - 1 - one.front();
    (void)hops.reduce(tree, 0, as_int(root), steps);
  }
  return hops.hops();
}

Result<Programs> find_programs(const topology::Topology& topology,
                               const CollectiveParameters& parameters, const Outline& outline) {
  const bool reduces = outline.collective == Collective::kReduceScatter;
  const PackingGraph graph = packing_graph(topology);
  const auto gathering = find_gathering(reduces ? reversed(graph) : graph);
  if (!gathering) return fail(gathering.error());
  const auto make = [&](const lower::Waits&) { return hops_of(graph, *gathering, reduces); };
  return write_what_fits(topology, parameters, outline, graph, {make}, gathering->steps);
}

Result<Programs> time_expanded(Collective collective, const topology::Topology& topology,
                               const CollectiveParameters& parameters) {
  if (auto known = check_parameters(topology, parameters); !known) return fail(known.error());
  const std::string who = "time-expanded on " + topology.title() + ": ";
  if (!can_pack_all_roots(topology)) {
    return fail(who + "expected at most " + std::to_string(kMaxPackedRoots) +
                " nodes, and at most " + std::to_string(kMaxPackedLinks) + " links per node");
  }
  if (topology.ranks() == 1 && topology.nodes() > 1) {
    return fail(who + "expected at least two ranks, or no router");
  }
  const Outline outline{.collective = collective,
                        .algorithm = "time-expanded",
                        .needs_commutative = collective == Collective::kReduceScatter,
                        .nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0,
                        .port_model = PortModel::kMultiport,
                        .contention = ContentionGuarantee::kSlot};
  if (topology.nodes() == 1) return write_alone(parameters, outline);
  auto programs = find_programs(topology, parameters, outline);
  if (programs) return programs;
  return fail(who + programs.error().message);
}

}  // namespace

const SearchedAlgorithm kTimeExpandedRows[] = {
    row("time-expanded", Collective::kAllgather, time_expanded,
        "few steps for one block, by matchings step by step: S*N steps, S near max(diameter, "
        "ceil((p-1)/lanes))",
        {.topologies = "at most 64 nodes of 16 links",
         .applies = can_pack_all_roots,
         .own_links = true}),
    row("time-expanded", Collective::kReduceScatter, time_expanded,
        "few steps for one block, by matchings step by step: S*N steps, S near max(diameter, "
        "ceil((p-1)/lanes))",
        {.needs_commutative = true,
         .topologies = "at most 64 nodes of 16 links",
         .applies = can_pack_all_roots,
         .own_links = true}),
};

}  // namespace espalier::searched
