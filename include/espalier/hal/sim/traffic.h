#pragma once
// What a simulated network carried over its real links, who asked for one at the same time, and
// how long blocks stayed in nodes. Host only.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::sim {

// A real link, in one direction.
struct LinkTraffic {
  std::uint32_t from = 0, to = 0;  // neighbours
  std::uint32_t lanes = 1;
  std::uint64_t blocks = 0;  // that crossed it, or are crossing it
  double busy = 0;           // s that blocks held it, its lanes together
  std::uint64_t waits = 0;   // how often a block had to wait for it
  double waited = 0;         // s, all blocks together
};

// The number-th block (0 the first) that one node sends to another.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint64_t number = 0;
};

// Lock step: links that were asked for more blocks in a step than they have lanes.
struct Contention {
  std::uint64_t conflicts = 0;  // such a link in such a step, each counted once
  // The most that any link was asked for in a step, for its lanes.
  std::uint32_t most_asked = 0, most_lanes = 1;
  // The first conflict: two of the transfers, the later one last.
  std::int64_t step = -1;          // 0 is the first step that the network ran
  std::uint32_t from = 0, to = 0;  // the link
  std::uint32_t lanes = 1;
  Transfer one, other;
};

// Blocks by how many steps they stayed in the node that sent them, beyond the step in which the
// schedule moves them on. Lock step: blocks that the busiest link of the way has to carry first,
// for each of its lanes. Free running: how many steps further than the block's own the node had got
// when the block left, by what it had begun to send or had received of later steps; but those that
// it had got when the block was posted do not count, as the block was late then, and did not stay.
// Below W, by rule 2 (docs/architecture.md).
struct Residence {
  std::vector<std::uint64_t> blocks;  // [k]: that stayed k steps
  std::uint32_t from = 0, to = 0;     // of the first of those that stayed longest

  // 0 if there are none.
  [[nodiscard]] std::uint32_t longest() const {
    return blocks.empty() ? 0 : static_cast<std::uint32_t>(blocks.size() - 1);
  }
};

}  // namespace espalier::sim
