#pragma once
// The load of a simulated network's real links, their contention, and how long blocks stayed in
// nodes. Host only.

#include <cstdint>
#include <vector>

namespace espalier::sim {

// One direction of a real link.
struct LinkTraffic {
  std::uint32_t from = 0, to = 0;  // neighbours
  std::uint32_t lanes = 1;
  std::uint64_t blocks = 0;  // that crossed it, or are crossing it now
  double busy = 0;           // s for which blocks held it, summed over its lanes
  std::uint64_t waits = 0;   // how often a block had to wait for it
  double waited = 0;         // s, summed over all blocks
};

// Block `number` (0 is the first) that one node sends to another.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint64_t number = 0;
};

// Lock step: links on which a step demanded more blocks than they have lanes.
struct Contention {
  std::uint64_t conflicts = 0;  // (link, step) pairs with too many blocks, each counted once
  // The largest demand per lane on any link in one step: the blocks, and the lanes of that link.
  std::uint32_t max_asked = 0, max_lanes = 1;
  // The first conflict: the step, the link, and two of the transfers, the later one last.
  std::int64_t step = -1;          // 0 is the first step that the network ran
  std::uint32_t from = 0, to = 0;  // the link
  std::uint32_t lanes = 1;
  Transfer one, other;
};

// Counts blocks by the number of steps for which they stayed in the node that sent them, beyond the
// step in which the schedule moves them on.
//
// Lock step: the number of blocks that the busiest link of the route must carry first, divided by
// its lanes. Asynchronous: the number of steps by which the node was ahead of the block's own step
// when the block left. The node's progress is the latest step of which it had begun to send or had
// received something. Progress that the node had already made when the block was posted does not
// count, because that block was late and did not stay. The count is below W, by rule 2
// (docs/architecture.md).
struct Residence {
  std::vector<std::uint64_t> blocks;  // [k]: blocks that stayed k steps
  std::uint32_t from = 0, to = 0;     // the channel of the first block that stayed longest

  // The longest stay in steps; 0 if there are none.
  [[nodiscard]] std::uint32_t longest() const {
    return blocks.empty() ? 0 : static_cast<std::uint32_t>(blocks.size() - 1);
  }
};

}  // namespace espalier::sim
