#include "collectives/embed/placement.h"

#include <algorithm>

#include "collectives/embed/anneal.h"

namespace espalier::embed {
namespace {

// Follows the first blocks from rank to rank.
class Latency {
 public:
  Latency(const Routes& routes, const Traffic& traffic)
      : routes_(routes), traffic_(traffic), reached_(traffic.ranks * segments(traffic)) {}

  [[nodiscard]] std::int64_t of(const std::vector<std::uint32_t>& node_of) {
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
      const std::int64_t hops = routes_.links(node_of[transfer.from], node_of[transfer.to]).size();
      std::int64_t& to = reached_[transfer.to * segments + transfer.segment];
      to = std::max(to, reached_[transfer.from * segments + transfer.segment] + hops);
      last = std::max(last, to);
    }
    return sum + last;
  }

 private:
  static std::size_t segments(const Traffic& traffic) {
    std::uint32_t most = 0;
    for (const Transfer& transfer : traffic.transfers) most = std::max(most, transfer.segment);
    return most + std::size_t{1};
  }

  const Routes& routes_;
  const Traffic& traffic_;
  std::vector<std::int64_t> reached_;  // by rank, then segment
};

// Store-and-forward: all transfers share one bin, because phases overlap after lowering.
class StoredArrangement {
 public:
  StoredArrangement(const Routes& routes, const Traffic& traffic, const Search& search)
      : routes_(routes),
        traffic_(traffic),
        root_moves_(search.root_moves),
        loads_(routes, {search.period != 0 ? search.period : whole_period(traffic)}),
        latency_(routes, traffic),
        node_of_(traffic.ranks),
        rank_at_(traffic.ranks),
        touching_(traffic.ranks) {
    for (std::uint32_t index = 0; index < traffic.transfers.size(); ++index) {
      const Transfer& transfer = traffic.transfers[index];
      touching_[transfer.from].push_back(index);
      touching_[transfer.to].push_back(index);
    }
    for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank) {
      seat(rank, (search.root + rank) % traffic.ranks);
    }
    for (std::uint32_t index = 0; index < count(); ++index) put(index);
    best_ = node_of_;
    best_energy_ = energy();
  }

  [[nodiscard]] std::int64_t energy() {
    return kExcessTransferEnergy * loads_.over() +
           kExcessTransferEnergy / 8 * latency_.of(node_of_) + loads_.hops() / 8;
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
  [[nodiscard]] static bool done() { return false; }  // there may be a lower latency

  [[nodiscard]] Placement result() {
    keep_best();
    const std::vector<std::uint32_t> wanted = best_;
    for (std::uint32_t rank = 0; rank < wanted.size(); ++rank) {
      if (node_of_[rank] != wanted[rank]) exchange(rank, rank_at_[wanted[rank]]);
    }
    return {wanted, loads_.over(), latency_.of(wanted), false};
  }

 private:
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(traffic_.transfers.size());
  }
  void seat(std::uint32_t rank, std::uint32_t node) {
    node_of_[rank] = node;
    rank_at_[node] = rank;
  }
  void put(std::uint32_t index) {
    const Transfer& transfer = traffic_.transfers[index];
    loads_.add(node_of_[transfer.from], node_of_[transfer.to], 0);
  }
  void take(std::uint32_t index) {
    const Transfer& transfer = traffic_.transfers[index];
    loads_.remove(node_of_[transfer.from], node_of_[transfer.to], 0);
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
  void keep_best() {
    const std::int64_t now = energy();
    if (now >= best_energy_) return;
    best_energy_ = now;
    best_ = node_of_;
  }

  const Routes& routes_;
  const Traffic& traffic_;
  bool root_moves_;
  Loads loads_;
  Latency latency_;
  std::vector<std::uint32_t> node_of_, rank_at_, best_;
  std::vector<std::vector<std::uint32_t>> touching_;  // transfers of each rank
  std::pair<std::uint32_t, std::uint32_t> last_;
  std::int64_t best_energy_ = 0;
};

}  // namespace

std::uint32_t whole_period(const Traffic& traffic) { return count_slots(traffic); }

std::int64_t latency_of(const Routes& routes, const Traffic& traffic,
                        const std::vector<std::uint32_t>& node_of) {
  return Latency(routes, traffic).of(node_of);
}

Placement find_placement(const Routes& routes, const Traffic& traffic, const Search& search) {
  if (search.switching == Switching::kCutThrough) return find_in_slots(routes, traffic, search);
  StoredArrangement model(routes, traffic, search);
  Dice dice(search.seed);
  const Cooling cooling{kExcessTransferEnergy / 2.0, kExcessTransferEnergy / 32.0, search.moves};
  const bool ends = traffic.ranks < 2 || anneal(model, dice, cooling, search);
  Placement found = model.result();
  found.is_cut_short = !ends;
  return found;
}

}  // namespace espalier::embed
