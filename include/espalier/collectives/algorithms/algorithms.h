#pragma once
// Every rank-local generator, by name. Freestanding. A generator takes O(log p) time (on fat trees
// O(k h)) and no memory except `out`.

#include <cstdint>
#include <span>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/collectives/build/parameters.h"

namespace espalier {

// The networks that an algorithm is for.
enum class Where : std::uint8_t {
  kAnywhere,  // any rank may send to any other: all nodes are ranks, and the fabric routes
  kFatTree,   // ranks and routers of a fat tree have programs, with links only to their neighbours
  kHosts,     // hosts:HxR: hosts of several ranks, which share a link to the network
  kMesh,      // mesh:RxC with XY routing: all nodes are ranks
  kGrid,      // meshes, tori and rings with dimension-order routing: all nodes are ranks
  kTorus,     // tori and rings
};

// Writes the program of node `me`: a rank or, if the algorithm has programs for routers, a router.
// The collective is one of those for which the generator has a row.
// kUnsupported: the algorithm cannot serve these parameters (reasons: documentation of each
// algorithm); kBadArgument: root or me is not a rank.
using Generator = Status(const CollectiveParameters& parameters, std::uint32_t me,
                         Collective collective, Program& out);

// A rank-local generator, with the limits and parameters that a caller must know to choose it.
struct Algorithm {
  const char* name;  // "two-tree"
  Collective collective;
  Generator* generator;
  bool needs_commutative;  // for some roots at least; each program states whether it does
  const char* summary;     // one line with the step count
  Where where = Where::kAnywhere;
  std::uint32_t max_run_length = 0;  // maximum of `run_length`; 0: it has no run length
  bool takes_lambda = false;         // the caller may set `send_ticks` and `latency_ticks`
  bool needs_odd_ranks = false;      // kUnsupported for an even number of ranks
  // Messages pass only between consecutive ranks, or between the last and the first.
  bool is_chain = false;
  bool takes_radix = false;     // the caller may set `radix`
  std::uint32_t max_ranks = 0;  // a rank has a link to every other; 0: no such limit
  bool takes_ratio = false;     // the caller may set `ratio_numerator` and `ratio_denominator`

  // Writes the program of node `me` (Generator).
  [[nodiscard]] Status generate(const CollectiveParameters& parameters, std::uint32_t me,
                                Program& out) const {
    return generator(parameters, me, collective, out);
  }
};
// Whether `parameters` name a topology of the family that the algorithm is for.
[[nodiscard]] bool runs_on(const Algorithm& algorithm, const CollectiveParameters& parameters);
// Number of nodes that have a program under `algorithm`: the ranks, and routers if any.
[[nodiscard]] std::uint32_t algorithm_nodes(const Algorithm& algorithm,
                                            const CollectiveParameters& parameters);

// The table of all algorithms.
[[nodiscard]] std::span<const Algorithm> algorithms();
// Returns null if there is no such algorithm.
[[nodiscard]] const Algorithm* find_algorithm(Collective collective, const char* name);

// Finds the collective with this collective_name(). False if there is none.
[[nodiscard]] bool parse_collective(const char* name, Collective& collective);

}  // namespace espalier
