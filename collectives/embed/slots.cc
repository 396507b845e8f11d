// Searches for a placement in which no link occurs twice in a slot.
//
// Simulated annealing in rounds: each round starts from a random placement and cools over twice the
// moves of the round before. The rounds do not depend on the limits of the search, so that a
// placement that is found is the same for every greater limit.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collectives/embed/anneal.h"
#include "collectives/embed/placement.h"
#include "espalier/internal/base/assert.h"

namespace espalier::embed {
namespace {

constexpr std::uint64_t kFirstMoves = 4096;  // of the first round, per rank
constexpr double kHot = 2.0 * kExcessTransferEnergy, kCold = 0.15 * kExcessTransferEnergy;
constexpr std::uint64_t kReported = 4096;  // moves between two reports
// In ten moves, this many exchange ranks on nodes near one another. The others bring the two ranks
// of a transfer near one another.
constexpr std::uint32_t kLocalOfTen = 3;

class SlotSearch {
 public:
  SlotSearch(const Routes& routes, const Traffic& traffic, const Search& search)
      : routes_(routes),
        traffic_(traffic),
        search_(search),
        loads_(routes, std::vector<std::uint32_t>(count_slots(traffic), 1)),
        dice_(search.seed),
        bins_(slots_of(traffic)),
        node_of_(traffic.ranks),
        rank_at_(traffic.ranks),
        touching_(traffic.ranks) {
    ESPALIER_ASSERT(bins_.size() == traffic.transfers.size() && search.root < traffic.ranks);
    for (std::uint32_t index = 0; index < traffic.transfers.size(); ++index) {
      const Transfer& transfer = traffic.transfers[index];
      ESPALIER_ASSERT(transfer.from < traffic.ranks && transfer.to < traffic.ranks);
      touching_[transfer.from].push_back(index);
      touching_[transfer.to].push_back(index);
    }
    for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank) {
      seat(rank, (search.root + rank) % traffic.ranks);
    }
    for (std::uint32_t index = 0; index < bins_.size(); ++index) add(index);
  }

  [[nodiscard]] Placement find() {
    Placement best{node_of_, loads_.over(), 0, false};
    // Two ranks or fewer, of which the root stays: nothing can move.
    const bool can_move = traffic_.ranks > (search_.root_moves ? 1 : 2);
    for (std::uint64_t length = kFirstMoves * traffic_.ranks;
         can_move && best.over > 0 && !is_over(); length *= 2) {
      shuffle();
      cool(length, best);
    }
    best.latency = latency_of(routes_, traffic_, best.node_of);
    return best;
  }

 private:
  void seat(std::uint32_t rank, std::uint32_t node) {
    ESPALIER_ASSERT(rank < node_of_.size() && node < rank_at_.size());
    node_of_[rank] = node;
    rank_at_[node] = rank;
  }
  void add(std::uint32_t index) {
    const Transfer& transfer = traffic_.transfers[index];
    loads_.add(node_of_[transfer.from], node_of_[transfer.to], bins_[index]);
  }
  void remove(std::uint32_t index) {
    const Transfer& transfer = traffic_.transfers[index];
    loads_.remove(node_of_[transfer.from], node_of_[transfer.to], bins_[index]);
  }
  [[nodiscard]] std::int64_t energy() const {
    return kExcessTransferEnergy * loads_.over() + loads_.hops();
  }
  [[nodiscard]] bool is_over() {
    return done_ >= search_.moves || (search_.is_late && search_.is_late());
  }
  void shuffle() {
    for (std::uint32_t index = 0; index < bins_.size(); ++index) remove(index);
    const std::uint32_t fixed = search_.root_moves ? 0 : 1;
    for (std::uint32_t rank = traffic_.ranks - 1; rank > fixed; --rank) {
      exchange_nodes(rank, fixed + dice_.roll(rank - fixed + 1));
    }
    for (std::uint32_t index = 0; index < bins_.size(); ++index) add(index);
  }
  void exchange_nodes(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t node = node_of_[a];
    seat(a, node_of_[b]);
    seat(b, node);
    ESPALIER_ASSERT(rank_at_[node_of_[a]] == a && rank_at_[node_of_[b]] == b);
  }

  // One round. Keeps the best placement.
  void cool(std::uint64_t length, Placement& best) {
    double heat = kHot;
    const double ratio =
        std::pow(kCold / kHot, static_cast<double>(kReported) / static_cast<double>(length));
    for (std::uint64_t move = 0; move < length; ++move, ++done_) {
      if (move % kReported == 0) {
        if (is_over()) return;
        heat *= ratio;
        if (search_.progress) {
          search_.progress(static_cast<double>(done_) / static_cast<double>(search_.moves));
        }
      }
      step(heat);
      if (loads_.over() >= best.over) continue;
      best.over = loads_.over();
      best.node_of = node_of_;
      if (best.over == 0) return;
    }
  }
  void step(double heat) {
    ESPALIER_ASSERT(routes_.ranks() >= 2 && !traffic_.transfers.empty());
    const Transfer& transfer =
        traffic_.transfers[dice_.roll(static_cast<std::uint32_t>(traffic_.transfers.size()))];
    const bool moves_to = dice_.roll(2) == 0;
    const std::uint32_t moved = moves_to ? transfer.to : transfer.from;
    const std::uint32_t other_end = moves_to ? transfer.from : transfer.to;
    const std::uint32_t anchor = dice_.roll(10) < kLocalOfTen ? moved : other_end;
    const double share = dice_.share();
    const double near = share * share * share * share * share * (routes_.ranks() - 1);
    const std::uint32_t index = std::min(static_cast<std::uint32_t>(near), routes_.ranks() - 2);
    const std::uint32_t other = rank_at_[routes_.near(node_of_[anchor], index)];
    if (moved == other || (!search_.root_moves && (moved == 0 || other == 0))) return;
    exchange(moved, other, static_cast<double>(energy()) - heat * std::log(dice_.share()));
  }
  // Exchanges the nodes of two ranks, unless the energy would exceed `limit`.
  void exchange(std::uint32_t a, std::uint32_t b, double limit) {
    ESPALIER_ASSERT(a != b && a < node_of_.size() && b < node_of_.size());
    moved_ = touching_[a];
    for (const std::uint32_t index : touching_[b]) {
      const Transfer& transfer = traffic_.transfers[index];
      if (transfer.from != a && transfer.to != a) moved_.push_back(index);
    }
    for (const std::uint32_t index : moved_) remove(index);
    exchange_nodes(a, b);
    std::size_t added = 0;
    const auto exceeds = [&] { return static_cast<double>(energy()) > limit; };
    while (added < moved_.size() && !exceeds()) add(moved_[added++]);
    if (!exceeds()) return;
    while (added > 0) remove(moved_[--added]);
    exchange_nodes(a, b);
    for (const std::uint32_t index : moved_) add(index);
  }

  const Routes& routes_;
  const Traffic& traffic_;
  const Search& search_;
  Loads loads_;
  Dice dice_;
  std::uint64_t done_ = 0;           // moves
  std::vector<std::uint32_t> bins_;  // by transfer
  std::vector<std::uint32_t> node_of_, rank_at_;
  std::vector<std::vector<std::uint32_t>> touching_;  // transfers of each rank
  std::vector<std::uint32_t> moved_;                  // transfers that exchange() changes
};

}  // namespace

std::uint32_t count_slots(const Traffic& traffic) {
  return std::accumulate(traffic.slots.begin(), traffic.slots.end(), 0u);
}

std::vector<std::uint32_t> slots_of(const Traffic& traffic) {
  ESPALIER_ASSERT(!traffic.slots.empty());
  std::vector<std::uint32_t> first(traffic.slots.size(), 0), slots;
  std::partial_sum(traffic.slots.begin(), traffic.slots.end() - 1, first.begin() + 1);
  for (const Transfer& transfer : traffic.transfers) {
    ESPALIER_ASSERT(transfer.phase < traffic.slots.size());
    ESPALIER_ASSERT(transfer.slot < traffic.slots[transfer.phase]);
    slots.push_back(first[transfer.phase] + transfer.slot);
  }
  return slots;
}

Placement find_in_slots(const Routes& routes, const Traffic& traffic, const Search& search) {
  return SlotSearch(routes, traffic, search).find();
}

}  // namespace espalier::embed
