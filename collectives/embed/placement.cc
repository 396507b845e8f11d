#include "espalier/collectives/embed/placement.h"

#include <algorithm>
#include <numeric>

#include "collectives/embed/anneal.h"

namespace espalier::embed {
namespace {

// Cut-through: one bin per slot of each phase. Store-and-forward: a single bin, because phases
// overlap after lowering.
std::vector<std::uint32_t> widths_of(const Traffic& traffic, const Search& search) {
  if (search.switching == Switching::kStoreAndForward) {
    return {search.period != 0 ? search.period : whole_period(traffic)};
  }
  const auto slots = std::accumulate(traffic.slots.begin(), traffic.slots.end(), std::size_t{0});
  return std::vector<std::uint32_t>(slots, 1);
}

class RankArrangement {
 public:
  RankArrangement(const Routes& routes, const Traffic& traffic, const Search& search)
      : routes_(routes),
        traffic_(traffic),
        switching_(search.switching),
        root_moves_(search.root_moves),
        loads_(routes, widths_of(traffic, search)),
        node_of_(traffic.ranks),
        rank_at_(traffic.ranks),
        touching_(traffic.ranks),
        reached_(traffic.ranks * segments()) {
    std::vector<std::uint32_t> first_slot(traffic.slots.size(), 0);
    std::partial_sum(traffic.slots.begin(), traffic.slots.end() - 1, first_slot.begin() + 1);
    for (std::uint32_t index = 0; index < traffic.transfers.size(); ++index) {
      const Transfer& transfer = traffic.transfers[index];
      bins_.push_back(is_stored() ? 0 : first_slot[transfer.phase] + transfer.slot);
      touching_[transfer.from].push_back(index);
      touching_[transfer.to].push_back(index);
    }
    for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank) {
      seat(rank, (search.root + rank) % traffic.ranks);
    }
    for (std::uint32_t index = 0; index < bins_.size(); ++index) put(index);
    best_ = node_of_;
    best_energy_ = energy();
  }

  [[nodiscard]] std::int64_t energy() {
    const std::int64_t over = kExcessTransferEnergy * loads_.over();
    return is_stored() ? over + kExcessTransferEnergy / 8 * latency() + loads_.hops() / 8
                       : over + loads_.hops();
  }
  // Moves one end of a transfer to another node, mostly near the other end. The rank on that node
  // takes its place.
  bool move(Dice& dice) {
    keep_best();
    const Transfer& transfer = traffic_.transfers[dice.roll(count())];
    const bool moves_to = dice.roll(2) == 0;
    const std::uint32_t moved = moves_to ? transfer.to : transfer.from;
    const std::uint32_t anchor = moves_to ? transfer.from : transfer.to;
    const double share = dice.share();
    const double near = share * share * share * (routes_.ranks() - 1);
    const std::uint32_t node = routes_.near(node_of_[anchor], static_cast<std::uint32_t>(near));
    const std::uint32_t other = rank_at_[node];
    if (moved == other || (!root_moves_ && (moved == 0 || other == 0))) return false;
    last_ = {moved, other};
    exchange(moved, other);
    return true;
  }
  void undo() { exchange(last_.first, last_.second); }
  [[nodiscard]] bool done() const { return !is_stored() && loads_.over() == 0; }

  [[nodiscard]] Placement result() {
    keep_best();
    const std::vector<std::uint32_t> wanted = best_;
    for (std::uint32_t rank = 0; rank < wanted.size(); ++rank) {
      if (node_of_[rank] != wanted[rank]) exchange(rank, rank_at_[wanted[rank]]);
    }
    return {wanted, loads_.over(), latency()};
  }

 private:
  [[nodiscard]] bool is_stored() const { return switching_ == Switching::kStoreAndForward; }
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(traffic_.transfers.size());
  }
  [[nodiscard]] std::size_t segments() const {
    std::uint32_t most = 0;
    for (const Transfer& transfer : traffic_.transfers) most = std::max(most, transfer.segment);
    return most + std::size_t{1};
  }
  void seat(std::uint32_t rank, std::uint32_t node) {
    node_of_[rank] = node;
    rank_at_[node] = rank;
  }
  void put(std::uint32_t index) {
    const Transfer& transfer = traffic_.transfers[index];
    loads_.add(node_of_[transfer.from], node_of_[transfer.to], bins_[index]);
  }
  void take(std::uint32_t index) {
    const Transfer& transfer = traffic_.transfers[index];
    loads_.remove(node_of_[transfer.from], node_of_[transfer.to], bins_[index]);
  }
  // Calls f(transfer) for all transfers that involve a or b.
  template <class F>
  void each_touching(std::uint32_t a, std::uint32_t b, F f) {
    for (const std::uint32_t index : touching_[a]) f(index);
    for (const std::uint32_t index : touching_[b]) {
      const Transfer& transfer = traffic_.transfers[index];
      if (transfer.from != a && transfer.to != a) f(index);
    }
  }
  void exchange(std::uint32_t a, std::uint32_t b) {
    each_touching(a, b, [this](std::uint32_t index) { take(index); });
    const std::uint32_t node = node_of_[a];
    seat(a, node_of_[b]);
    seat(b, node);
    each_touching(a, b, [this](std::uint32_t index) { put(index); });
  }
  // Phases follow one another. Within a phase, segments are independent.
  [[nodiscard]] std::int64_t latency() {
    std::int64_t sum = 0, last = 0;
    const std::size_t segments = reached_.size() / traffic_.ranks;
    std::uint32_t phase = ~0u;
    for (const Transfer& transfer : traffic_.transfers) {
      if (transfer.phase != phase) {
        std::fill(reached_.begin(), reached_.end(), 0);
        sum += last;
        last = 0;
        phase = transfer.phase;
      }
      const std::int64_t hops =
          routes_.links(node_of_[transfer.from], node_of_[transfer.to]).size();
      std::int64_t& to = reached_[transfer.to * segments + transfer.segment];
      to = std::max(to, reached_[transfer.from * segments + transfer.segment] + hops);
      last = std::max(last, to);
    }
    return sum + last;
  }
  void keep_best() {
    const std::int64_t now = energy();
    if (now >= best_energy_) return;
    best_energy_ = now;
    best_ = node_of_;
  }

  const Routes& routes_;
  const Traffic& traffic_;
  Switching switching_;
  bool root_moves_;
  Loads loads_;
  std::vector<std::uint32_t> bins_;  // by transfer
  std::vector<std::uint32_t> node_of_, rank_at_, best_;
  std::vector<std::vector<std::uint32_t>> touching_;  // transfers of each rank
  std::vector<std::int64_t> reached_;                 // by rank, then segment
  std::pair<std::uint32_t, std::uint32_t> last_;
  std::int64_t best_energy_ = 0;
};

}  // namespace

std::uint32_t whole_period(const Traffic& traffic) {
  return std::accumulate(traffic.slots.begin(), traffic.slots.end(), 0u);
}

Placement find_placement(const Routes& routes, const Traffic& traffic, const Search& search) {
  RankArrangement model(routes, traffic, search);
  Dice dice(search.seed);
  const bool stored = search.switching == Switching::kStoreAndForward;
  const Cooling cooling{stored ? kExcessTransferEnergy / 2.0 : kExcessTransferEnergy * 3.0,
                        stored ? kExcessTransferEnergy / 32.0 : kExcessTransferEnergy / 6.0,
                        search.moves};
  if (traffic.ranks > 1) anneal(model, dice, cooling, search.progress);
  return model.result();
}

}  // namespace espalier::embed
