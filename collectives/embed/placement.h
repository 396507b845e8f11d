#pragma once
// Places the ranks of a routed schedule by simulated annealing. Host only.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collectives/embed/loads.h"
#include "collectives/embed/traffic.h"
#include "espalier/internal/base/switching.h"
#include "espalier/topology/topology.h"

namespace espalier::embed {

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
