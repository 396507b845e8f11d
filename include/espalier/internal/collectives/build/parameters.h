#pragma once
// What every schedule is made from: ranks, root, topology, and parameters of its algorithm.
// Freestanding.

#include <cstdint>

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
  // Block table; null: default_blocks() of collectives/build/blocks.cc.
  const BlockRule* blocks = nullptr;
  std::uint32_t blocks_count = 0;
  // Terms and indices up to the limits of hosts, which boards refuse (table_limits.h).
  bool host_limits = false;
  // Null, or set if a table has too many rows. On hosts only.
  TableExcess* excess = nullptr;

  // The topology, for algorithms made for one family (Algorithm::where); 0 for any other topology.
  // A fat tree has ranks at the leaves and routers above, numbered as in topology/families.h.
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

}  // namespace espalier
