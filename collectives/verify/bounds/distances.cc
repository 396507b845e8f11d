// Hops between two ranks one of which needs data of the other. A message goes one hop, and its
// receive is L - 1 steps after its send, so the data take L steps per hop.

#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {
namespace {

constexpr std::uint64_t kMaxDistanceWork = std::uint64_t{1} << 20;  // links that are followed

// Distances from a rank, or to it, and the furthest rank that counts.
class DistanceSearch {
 public:
  explicit DistanceSearch(const topology::Topology& topology)
      : next_(topology.nodes()), previous_(topology.nodes()) {
    for (const topology::Link& link : topology.links()) {
      next_[link.from].push_back(link.to);
      previous_[link.to].push_back(link.from);
    }
  }

  // Examines the ranks first .. last - 1, from `rank` or to it.
  void examine(std::uint32_t rank, bool to_it, std::uint32_t first, std::uint32_t last) {
    const auto& next = to_it ? previous_ : next_;
    away_.assign(next.size(), -1);
    away_[rank] = 0;
    order_.assign(1, rank);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (const std::uint32_t on : next[order_[i]]) {
        if (away_[on] >= 0) continue;
        away_[on] = away_[order_[i]] + 1;
        order_.push_back(on);
      }
    }
    for (std::uint32_t other = first; other < last; ++other) {
      if (away_[other] <= hops) continue;
      hops = away_[other];
      from = to_it ? other : rank;
      to = to_it ? rank : other;
    }
  }

  std::int64_t hops = 0;
  std::uint32_t from = 0, to = 0;

 private:
  std::vector<std::vector<std::uint32_t>> next_, previous_;
  std::vector<std::int64_t> away_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

void add_distances(const topology::Topology& topology, const Program& common, std::string& limited,
                   std::vector<LowerBound>& found) {
  const std::uint64_t links = topology.link_count(), nodes = topology.nodes();
  if (links >= nodes * (nodes - 1) || links > kMaxDistanceWork) return;
  const std::uint32_t ranks = common.ranks;
  DistanceSearch search(topology);
  switch (common.collective) {
    case Collective::kBroadcast:
    case Collective::kScatter: search.examine(common.root, false, 0, ranks); break;
    case Collective::kReduce:
    case Collective::kGather: search.examine(common.root, true, 0, ranks); break;
    default: {
      const bool ordered =
          common.collective == Collective::kScan || common.collective == Collective::kExscan;
      search.examine(0, false, 0, ranks);
      search.examine(ranks - 1, true, 0, ranks);
      // The cuts around each node contain the other distances if S = L = 1 (hops.cc).
      if (!ordered && send_ticks(common) == 1 && latency_ticks(common) == 1) break;
      if (links * ranks > kMaxDistanceWork) {
        limited =
            "distances are taken only from the first rank and to the last: all of them need "
            "more operations than a proof may take";
        break;
      }
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        search.examine(rank, false, ordered ? rank + 1 : 0, ranks);
      }
    }
  }
  found.push_back(
      {"hops: " + topology.node_name(search.from) + " to " + topology.node_name(search.to),
       latency_ticks(common) * search.hops, 0, 1,
       Witness{.kind = Witness::Kind::kHops, .from = search.from, .to = search.to}});
}

}  // namespace espalier::verify
