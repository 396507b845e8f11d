#pragma once
// One collective as all nodes run it, and what it gives: a plain reference for tests.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::testing {

struct Job {
  Collective collective = espalier_Collective_BROADCAST;
  const char* algorithm = "chain";
  // programs[v] is node v's, ranks and then routers; null: `algorithm` makes them, as the next
  // lines say. They outlive the cluster.
  const Programs* programs = nullptr;
  std::uint32_t window = 8;                         // of the schedule
  std::uint32_t block_bytes = 64;                   // 0: one block
  std::uint32_t run = 0;                            // fractional trees
  std::uint32_t send_ticks = 1, latency_ticks = 1;  // the postal model
  std::uint32_t root = 0;
  std::uint64_t count = 0;  // as Machine::start takes it; a barrier's is 0
  Operator op;
  // Input and output share memory (machine.h, Buffers) where the node has both.
  bool in_place = false;
  unsigned seed = 1;
};
[[nodiscard]] std::string describe(const Job& job, std::uint32_t ranks);

using Bytes = std::vector<std::uint8_t>;

// What a rank brings and should get; empty where it has no such buffer. Inputs are values with
// which the operator is exact in any order; of two ranks, seeds or places they differ.
[[nodiscard]] Bytes input_of(const Job& job, std::uint32_t ranks, std::uint32_t rank);
[[nodiscard]] Bytes output_of(const Job& job, std::uint32_t ranks, std::uint32_t rank);

}  // namespace espalier::testing
