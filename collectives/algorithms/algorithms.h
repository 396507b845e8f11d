#pragma once
// Every rank-local generator, by name. Freestanding: O(log p) time, no memory but `out`.

#include <cstdint>

#include "collectives/schedule/program.h"

namespace espalier {

// Whom a schedule is for.
struct Group {
  std::uint32_t ranks = 1;            // p
  std::uint32_t root = 0;             // rooted collectives
  std::uint64_t topology_digest = 0;  // stands in every descriptor
  std::uint32_t window =
      8;  // steps in flight that the schedule should allow (scratch grows with it)
  // Block table; null: the default of algorithms/blocks.cc.
  const BlockRule* blocks = nullptr;
  std::uint32_t blocks_count = 0;
};

// Writes `me`'s program. kUnsupported: the algorithm cannot do this group (why: docs of each);
// kBadArgument: root or me outside the group.
using Generator = Status (*)(const Group& group, std::uint32_t me, Program& out);

struct Algorithm {
  const char* name;  // "two-tree"
  Collective collective;
  Generator generate;
  bool needs_commutative;  // for some roots at least; the program says it for its own
  const char* summary;     // one line with the step count
};

// The table of all algorithms; `count` is its length.
[[nodiscard]] const Algorithm* algorithms(std::uint32_t& count);
// Null if there is none.
[[nodiscard]] const Algorithm* find_algorithm(Collective collective, const char* name);

[[nodiscard]] const char* collective_name(Collective collective);  // "broadcast"
[[nodiscard]] bool parse_collective(const char* name, Collective& collective);

}  // namespace espalier
