#pragma once
// Places the ranks of a routed schedule by simulated annealing: the transfers of the schedule, the
// loads that they put on links, and the placements. Host only.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/switching.h"
#include "espalier/topology/topology.h"

namespace espalier::embed {

// All blocks that one rank sends to another in one slot. A phase with several periods has one slot
// per step of the period (step mod period). A phase whose length does not grow with N has one slot
// per step.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint32_t segment = 0;
  std::uint32_t slot = 0;  // within its phase
  std::uint32_t phase = 0;
  std::int64_t first = 0;  // first step of its phase in which it takes place
};

// All transfers of a schedule.
struct Traffic {
  std::uint32_t ranks = 0;
  std::vector<std::uint32_t> slots;  // of each phase
  std::vector<Transfer> transfers;   // by phase, then first step
};

// Returns the transfers of `programs`, which belong to ranks 0, 1, ... Requires constant links in
// phases that are pipelined over blocks.
[[nodiscard]] Traffic traffic_of(const Programs& programs);

// The number of pairs limits the ranks, because a route is stored for each pair.
inline constexpr std::uint32_t kMaxPlaced = 1024;

// The routes of all pairs of ranks, as link numbers.
class Routes {
 public:
  // Requires at most kMaxPlaced ranks.
  explicit Routes(const topology::Topology& topology);

  // The numbers of a route's links, in the order in which a block crosses them: begin() .. end().
  struct Links {
    const std::uint32_t *first, *last;
    // begin() and end() make a route iterable. size() is its number of links.
    [[nodiscard]] const std::uint32_t* begin() const { return first; }
    [[nodiscard]] const std::uint32_t* end() const { return last; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(last - first); }
  };
  // Returns the route from rank `from` to rank `to`, both below ranks(). Valid as long as this
  // object.
  [[nodiscard]] Links links(std::uint32_t from, std::uint32_t to) const {
    ESPALIER_ASSERT(from < ranks_ && to < ranks_);
    const std::size_t pair = std::size_t{from} * ranks_ + to;
    return {links_.data() + starts_[pair], links_.data() + starts_[pair + 1]};
  }
  // Returns the number of ranks.
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  // The other ranks in order of the length of the route to them, nearest first; index < ranks - 1.
  [[nodiscard]] std::uint32_t near(std::uint32_t rank, std::uint32_t index) const {
    ESPALIER_ASSERT(rank < ranks_ && index < ranks_ - 1);
    return near_[std::size_t{rank} * (ranks_ - 1) + index];
  }
  // Returns the lanes of each link, by the number that links() gives it.
  [[nodiscard]] const std::vector<std::uint32_t>& capacities() const { return capacities_; }

 private:
  std::uint32_t ranks_;
  std::vector<std::uint32_t> capacities_;  // lanes of each link
  std::vector<std::uint32_t> starts_;      // ranks^2 + 1
  std::vector<std::uint32_t> links_, near_;
};

// The load of each link in each of several bins, and the excess over the limits.
class Loads {
 public:
  // The limit of a link is its lanes times `widths[bin]` in each bin. `routes` must outlive this
  // object.
  Loads(const Routes& routes, const std::vector<std::uint32_t>& widths);

  // Adds a transfer from rank `from` to rank `to` to a bin.
  void add(std::uint32_t from, std::uint32_t to, std::uint32_t bin) {
    std::uint32_t* const loads = loads_.data() + bin * stride_;
    const std::uint32_t* const most = most_.data() + bin * stride_;
    for (const std::uint32_t link : routes_.links(from, to)) over_ += loads[link]++ >= most[link];
    hops_ += routes_.links(from, to).size();
  }
  // Removes a transfer that was added to this bin.
  void remove(std::uint32_t from, std::uint32_t to, std::uint32_t bin) {
    std::uint32_t* const loads = loads_.data() + bin * stride_;
    const std::uint32_t* const most = most_.data() + bin * stride_;
    for (const std::uint32_t link : routes_.links(from, to)) over_ -= --loads[link] >= most[link];
    hops_ -= routes_.links(from, to).size();
  }
  // Number of transfers beyond the limits, over all links and bins.
  [[nodiscard]] std::int64_t over() const { return over_; }
  // Number of link crossings of all transfers.
  [[nodiscard]] std::int64_t hops() const { return hops_; }

 private:
  const Routes& routes_;
  std::size_t stride_;
  std::vector<std::uint32_t> loads_, most_;
  std::int64_t over_ = 0, hops_ = 0;
};

// Places the ranks of a routed schedule by simulated annealing.

// The parameters of find_placement().
struct Search {
  Switching switching = Switching::kCutThrough;
  bool root_moves = false;  // virtual rank 0 may be on any node; otherwise it is on `root`
  std::uint32_t root = 0;
  // Store-and-forward: a link may carry at most this many blocks per lane in this many steps; 0:
  // whole_period().
  std::uint32_t period = 0;
  std::uint64_t seed = 1;
  std::uint64_t moves = 0;                    // maximum number of moves to try
  std::function<void(double)> progress = {};  // 0 .. 1, the part of the moves
  // Ends the search if it returns true; called after every few thousand moves.
  std::function<bool()> is_late = {};
};

// A placement of the virtual ranks, with its quality.
struct Placement {
  std::vector<std::uint32_t> node_of;  // virtual rank -> node, a permutation
  // Cut-through: excess transfers on links in slots, summed. Store-and-forward: excess over what
  // links carry in a period, summed.
  std::int64_t over = 0;
  // Hops until the last rank (in a reduce: the root) has its first block of every segment.
  std::int64_t latency = 0;
  // Store-and-forward and groups: the search ended by is_late(), so that more moves may find a
  // better placement.
  bool is_cut_short = false;
};

// The number of steps in which every phase forwards one block of each segment, summed over phases.
[[nodiscard]] std::uint32_t whole_period(const Traffic& traffic);

// Finds a placement. Cut-through: ends with the first placement in which no link occurs twice in a
// slot, which is the same for all limits that it keeps. Store-and-forward: returns a placement of
// low latency without an overloaded link. If `over` is not 0, the moves did not suffice, and the
// placement is the best that was found.
[[nodiscard]] Placement find_placement(const Routes& routes, const Traffic& traffic,
                                       const Search& search);

// Cut-through placements: no link twice in a slot.

// Returns the number of slots of all phases together. slots_of() returns the slot of each transfer
// among them.
[[nodiscard]] std::uint32_t count_slots(const Traffic& traffic);
[[nodiscard]] std::vector<std::uint32_t> slots_of(const Traffic& traffic);

// find_placement() for Switching::kCutThrough.
[[nodiscard]] Placement find_in_slots(const Routes& routes, const Traffic& traffic,
                                      const Search& search);

// Returns the hops until the last rank has its first block of every segment. Phases follow one
// another; within a phase, segments are independent.
[[nodiscard]] std::int64_t latency_of(const Routes& routes, const Traffic& traffic,
                                      const std::vector<std::uint32_t>& node_of);

// Proofs that a narrow mesh has no cut-through placement of a schedule.

// Returns false if no placement on this mesh can exist in which no link occurs twice in a slot.
// `root`: where virtual rank 0 is; nothing: anywhere. Returns true if the cuts leave room, which
// proves nothing, and for every mesh that is not one or two rows or columns of at most 32 ranks.
[[nodiscard]] bool cuts_leave_room(const topology::Shape& mesh, const Traffic& traffic,
                                   std::optional<std::uint32_t> root);

}  // namespace espalier::embed
