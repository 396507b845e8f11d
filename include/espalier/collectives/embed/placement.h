#pragma once
// Where each rank of a direct schedule should stand, found by simulated annealing. Host only.

#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/collectives/embed/loads.h"
#include "espalier/collectives/embed/traffic.h"
#include "espalier/topology/embedding.h"

namespace espalier::embed {

using topology::Hops;

struct Search {
  Hops hops = Hops::kCutThrough;
  bool root_moves = false;  // virtual rank 0 may stand on any node; else on `root`
  std::uint32_t root = 0;
  std::uint32_t period = 0;  // store-and-forward: blocks that a link may carry of a lane each so
                             // many steps; 0: whole_period()
  std::uint64_t seed = 1;
  std::uint64_t moves = 0;                    // to try at most
  std::function<void(double)> progress = {};  // 0 .. 1
};

struct Placement {
  std::vector<std::uint32_t> node_of;  // virtual rank -> node, a permutation
  std::int64_t over = 0;     // cut-through: transfers too many on a link in a slot, all together;
                             // store-and-forward: beyond what links carry in a period
  std::int64_t latency = 0;  // hops until the last rank has its first block of every segment
};

// The steps in which each phase hands on a block of each segment, all phases together.
[[nodiscard]] std::uint32_t whole_period(const Traffic& traffic);

// Cut-through: ends with the first placement that has no link twice in a slot. Store-and-forward:
// of those without an overloaded link one of little latency. Where `over` is not 0 the moves did
// not suffice.
[[nodiscard]] Placement find_placement(const Routes& routes, const Traffic& traffic,
                                       const Search& search);

}  // namespace espalier::embed
