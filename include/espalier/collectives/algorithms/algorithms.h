#pragma once
// Every rank-local generator, by name. Freestanding: O(log p) time (on fat trees O(k h)), no memory
// but `out`.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

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

  // The topology, for what is made for one (Algorithm::where); 0: it is another. A fat tree has
  // arity^height ranks at the leaves and routers above, numbered as topology/fat_tree.h does;
  // branches of level l (1 at the leaves) have capacities[l - 1] lanes, null: 1 everywhere.
  std::uint32_t arity = 0, height = 0;
  const std::uint32_t* capacities = nullptr;
  std::uint32_t rows = 0, columns = 0;  // a mesh, rank = row * columns + column

  // What some algorithms let the caller choose; 0 (and 1, 1): they choose.
  std::uint32_t run = 0;                            // fractional trees: r
  std::uint32_t send_ticks = 1, latency_ticks = 1;  // postal model: S, L; lambda = L/S
};

// Whom an algorithm is for.
enum class Where : std::uint8_t {
  kAnywhere,  // any rank may send to any other: ranks are nodes, the fabric routes
  kFatTree,   // ranks and routers of a fat tree have programs, and links to their neighbours only
};

// Writes the program of node `me`: a rank, or where the algorithm has programs for them, a router.
// kUnsupported: the algorithm cannot do this group (why: docs of each); kBadArgument: root or me
// outside the group.
using Generator = Status (*)(const Group& group, std::uint32_t me, Program& out);

struct Algorithm {
  const char* name;  // "two-tree"
  Collective collective;
  Generator generate;
  bool needs_commutative;  // for some roots at least; the program says it for its own
  const char* summary;     // one line with the step count
  Where where = Where::kAnywhere;
  std::uint32_t max_run = 0;     // of Group::run; 0: there are no runs
  bool takes_lambda = false;     // the caller may set Group::send_ticks and latency_ticks
  bool needs_odd_ranks = false;  // kUnsupported for an even number of ranks
};
// Nodes that have a program under `algorithm`: the group's ranks, and its routers.
[[nodiscard]] std::uint32_t algorithm_nodes(const Algorithm& algorithm, const Group& group);

// The table of all algorithms; `count` is its length.
[[nodiscard]] const Algorithm* algorithms(std::uint32_t& count);
// Null if there is none.
[[nodiscard]] const Algorithm* find_algorithm(Collective collective, const char* name);

// The collective of that collective_name(); false if there is none.
[[nodiscard]] bool parse_collective(const char* name, Collective& collective);

}  // namespace espalier
