#pragma once
// Every rank-local generator, by name. Freestanding. A generator takes O(log p) time (on fat trees
// O(k h)) and no memory except `out`.

#include <cstdint>
#include <span>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

struct TableExcess;

// The ranks that a schedule is for, and the parameters of its algorithm.
struct CollectiveParameters {
  std::uint32_t ranks = 1;            // p
  std::uint32_t root = 0;             // rooted collectives
  std::uint64_t topology_digest = 0;  // written into every descriptor
  // Steps in flight that the schedule should allow; scratch grows with it.
  std::uint32_t window = 8;
  // Block table; null: default_blocks() of collectives/algorithms/build/blocks.cc.
  const BlockRule* blocks = nullptr;
  std::uint32_t blocks_count = 0;
  // Terms and indices up to the limits of hosts, which boards refuse (table_limits.h).
  bool host_limits = false;
  // Null, or set if a table has too many rows. On hosts only.
  TableExcess* excess = nullptr;

  // The topology, for algorithms made for one family (Algorithm::where); 0 for any other topology.
  // A fat tree has ranks at the leaves and routers above, numbered as in topology/fat_tree.h.
  // Routers of level l (1 above the leaves) have arities[l - 1] children; null: `arity` at every
  // level, arity^height ranks. `arity` is 0 if it differs between levels. Branches of level l have
  // capacities[l - 1] lanes; null: 1 everywhere.
  std::uint32_t arity = 0, height = 0;
  const std::uint32_t* arities = nullptr;
  const std::uint32_t* capacities = nullptr;
  std::uint32_t rows = 0, columns = 0;  // mesh:RxC: rank = row * columns + column
  // A mesh, torus or ring: the ranks in each dimension, of which the last one's digit of a rank's
  // number changes fastest. wraps: the lines along each dimension are rings. mesh:RxC may be given
  // by `rows` and `columns` alone.
  const std::uint32_t* grid = nullptr;
  std::uint32_t dimensions = 0;
  bool wraps = false;
  // Hosts, with the ranks of each: rank = host * host_ranks + number on the host.
  std::uint32_t hosts = 0, host_ranks = 0;

  // Parameters that some algorithms leave to the caller. 0 (for the ticks: 1, 1): the algorithm
  // chooses.
  std::uint32_t run_length = 0;                     // fractional trees: run length r
  std::uint32_t radix = 0;                          // k-nomial trees: radix k, at least 2
  std::uint32_t send_ticks = 1, latency_ticks = 1;  // postal model: S, L; lambda = L/S
  // Trees with a fixed ratio: the share of its ranks that a sender keeps, between 0 and 1.
  std::uint32_t ratio_numerator = 0, ratio_denominator = 0;
};

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
