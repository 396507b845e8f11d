#include "collectives/search/packing/path_packing.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

// A block too many on a link costs as much as this many links.
constexpr std::int64_t kOverloadCost = 64;
// The price of a link rises by 1 / kPriceStep for each block too many.
constexpr std::int64_t kPriceStep = 4;
// The largest number of steps of a round that is tried, unless one block takes more.
constexpr std::int64_t kMaxRoundSteps = 128;
// How often all origins choose, at most.
constexpr int kMaxSweeps = 40;

// The flows of whole blocks of all origins. Loads are in units of 1 / kFlowUnit blocks.
class BlockFlows {
 public:
  BlockFlows(const PackingGraph& graph, const ExchangeFlow& flow, const PackingRate& rate)
      : graph_(graph),
        rate_(rate),
        out_(graph.nodes),
        into_(graph.nodes),
        loads_(graph.links.size(), 0),
        prices_(graph.links.size(), 0),
        flows_(graph.ranks) {
    for (std::size_t link = 0; link < graph.links.size(); ++link) {
      out_[graph.links[link].from].push_back(link);
      into_[graph.links[link].to].push_back(link);
    }
    for (std::uint32_t origin = 0; origin < graph.ranks; ++origin) {
      flows_[origin].resize(graph.links.size());
      for (std::size_t link = 0; link < graph.links.size(); ++link) {
        flows_[origin][link] = rate.blocks * flow.by_origin[origin][link];
        loads_[link] += flows_[origin][link];
      }
    }
  }

  // Makes the flows whole. Returns whether no link is overloaded.
  bool round() {
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      for (std::uint32_t origin = 0; origin < graph_.ranks; ++origin) choose(origin);
      bool overloaded = false;
      for (std::size_t link = 0; link < loads_.size(); ++link) {
        const std::int64_t much = overload(link, loads_[link]);
        prices_[link] += much / kPriceStep;
        overloaded = overloaded || much > 0;
      }
      if (!overloaded) return true;
    }
    return false;
  }

  // Takes the flow of an origin apart; it must be whole.
  void add_paths(std::uint32_t origin, std::vector<PackedPath>& paths) {
    std::vector<std::int64_t>& flow = flows_[origin];
    for (std::uint32_t target = 0; target < graph_.ranks; ++target) {
      for (std::uint32_t number = 0; target != origin && number < rate_.blocks; ++number) {
        PackedPath path{origin, target, number, {target}};
        while (path.nodes.back() != origin) {
          const std::vector<std::size_t>& into = into_[path.nodes.back()];
          const std::size_t link = *std::find_if(into.begin(), into.end(),
                                                 [&](std::size_t one) { return flow[one] > 0; });
          flow[link] -= kFlowUnit;
          path.nodes.push_back(graph_.links[link].from);
        }
        std::reverse(path.nodes.begin(), path.nodes.end());
        paths.push_back(std::move(path));
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t overload(std::size_t link, std::int64_t load) const {
    return std::max<std::int64_t>(0, load - graph_.links[link].lanes * rate_.steps * kFlowUnit);
  }
  // The cost of a block more (or, with added < 0, less) on a link.
  [[nodiscard]] std::int64_t cost(std::size_t link, std::int64_t added) const {
    const std::int64_t price = kFlowUnit + prices_[link];
    return kOverloadCost * (overload(link, loads_[link] + added) - overload(link, loads_[link])) +
           (added > 0 ? price : -price);
  }

  // The cheapest flow of an origin: along the cheapest path that is left, block by block.
  void choose(std::uint32_t origin) {
    std::vector<std::int64_t>& flow = flows_[origin];
    for (std::size_t link = 0; link < flow.size(); ++link) loads_[link] -= flow[link];
    std::fill(flow.begin(), flow.end(), 0);
    std::vector<std::int64_t> missing(graph_.ranks, rate_.blocks);
    missing[origin] = 0;
    for (std::int64_t left = rate_.blocks * (std::int64_t{graph_.ranks} - 1); left > 0; --left) {
      find_ways(origin, flow);
      std::uint32_t nearest = origin;
      for (std::uint32_t rank = 0; rank < graph_.ranks; ++rank) {
        if (missing[rank] > 0 && (nearest == origin || away_[rank] < away_[nearest])) {
          nearest = rank;
        }
      }
      --missing[nearest];
      for (std::uint32_t node = nearest; node != origin;) {
        const auto [link, added] = way_[node];
        flow[link] += added;
        loads_[link] += added;
        node = added > 0 ? graph_.links[link].from : graph_.links[link].to;
      }
    }
  }

  // The cheapest way from the origin to every node (Bellman, Ford, by a queue): along a link with a
  // block more, or against it with one less.
  void find_ways(std::uint32_t origin, const std::vector<std::int64_t>& flow) {
    constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
    away_.assign(graph_.nodes, kFar);
    way_.assign(graph_.nodes, {0, 0});
    queued_.assign(graph_.nodes, false);
    away_[origin] = 0;
    queue_.assign(1, origin);
    const auto relax = [&](std::uint32_t from, std::uint32_t to, std::size_t link,
                           std::int64_t added) {
      const std::int64_t on = away_[from] + cost(link, added);
      if (on >= away_[to]) return;
      away_[to] = on;
      way_[to] = {link, added};
      if (!queued_[to]) queue_.push_back(to);
      queued_[to] = true;
    };
    for (std::size_t next = 0; next < queue_.size(); ++next) {
      const std::uint32_t node = queue_[next];
      queued_[node] = false;
      for (const std::size_t link : out_[node]) {
        if (graph_.links[link].to != origin) relax(node, graph_.links[link].to, link, kFlowUnit);
      }
      for (const std::size_t link : into_[node]) {
        if (flow[link] > 0) relax(node, graph_.links[link].from, link, -kFlowUnit);
      }
    }
  }

  const PackingGraph& graph_;
  PackingRate rate_;
  std::vector<std::vector<std::size_t>> out_, into_;  // by node: its links
  std::vector<std::int64_t> loads_, prices_;          // by link
  std::vector<std::vector<std::int64_t>> flows_;      // by origin and link
  // State of the search: the cost from the origin, the last link with what it adds, and the queue.
  std::vector<std::int64_t> away_;
  std::vector<std::pair<std::size_t, std::int64_t>> way_;
  std::vector<bool> queued_;
  std::vector<std::uint32_t> queue_;
};

std::optional<PathPacking> try_rate(const PackingGraph& graph, const ExchangeFlow& flow,
                                    const PackingRate& rate) {
  BlockFlows flows(graph, flow, rate);
  if (!flows.round()) return std::nullopt;
  PathPacking packing{rate, {}};
  for (std::uint32_t origin = 0; origin < graph.ranks; ++origin) {
    flows.add_paths(origin, packing.paths);
  }
  return packing;
}

}  // namespace

PathPacking pack_paths(const PackingGraph& graph, const ExchangeFlow& flow) {
  ESPALIER_ASSERT(graph.ranks >= 2 && flow.by_origin.size() == graph.ranks);
  std::optional<PathPacking> best;
  // Whether this rate is at least as slow as the best.
  const auto is_slower = [&](const PackingRate& rate) {
    return best && rate.steps * best->rate.blocks >= best->rate.steps * rate.blocks;
  };
  for (std::int64_t blocks = 1; !best || blocks * flow.time <= kMaxRoundSteps * kFlowUnit;
       ++blocks) {
    // The flow may take a thousandth longer than the best, and it is rounded.
    const std::int64_t least = blocks * (flow.time - flow.time / 1000);
    PackingRate rate{std::max<std::int64_t>(1, ceil_div(least, kFlowUnit)), blocks};
    for (; !is_slower(rate); ++rate.steps) {
      auto packing = try_rate(graph, flow, rate);
      if (packing) best = std::move(packing);
    }
    if (best->rate.steps * kFlowUnit * 100 <= best->rate.blocks * flow.time * 101) break;
  }
  return *std::move(best);
}

}  // namespace espalier::searched
