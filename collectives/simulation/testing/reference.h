#pragma once
// One collective as all nodes execute it, and its results: a plain reference for tests.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::testing {

struct Job {
  Collective collective = Collective::kBroadcast;
  const char* algorithm = "chain";
  // programs[v] is for node v: ranks, then routers. They must outlive the cluster. Null:
  // `algorithm` makes them, with the parameters in the next lines.
  const Programs* programs = nullptr;
  std::uint32_t window = 8;                         // the schedule's window
  std::uint32_t block_bytes = 64;                   // 0: one block
  std::uint32_t run_length = 0;                     // r of fractional trees
  std::uint32_t send_ticks = 1, latency_ticks = 1;  // the postal model
  std::uint32_t root = 0;
  std::uint64_t count = 0;  // in the form of Machine::start; 0 for a barrier
  // A count for each rank (element_counts.h); empty: `count`.
  std::vector<std::uint64_t> counts = {};
  Operator op = {};
  // Input and output share memory (machine.h, Buffers) if the node has both.
  bool in_place = false;
  unsigned seed = 1;
};
[[nodiscard]] std::string describe(const Job& job, std::uint32_t ranks);

using Bytes = std::vector<std::uint8_t>;

// Return a rank's input and its expected output; empty if it has no such buffer. The operator is
// exact on the inputs in any order. Inputs differ between ranks, seeds and positions.
[[nodiscard]] Bytes input_of(const Job& job, std::uint32_t ranks, std::uint32_t rank);
[[nodiscard]] Bytes output_of(const Job& job, std::uint32_t ranks, std::uint32_t rank);
// Returns the expected outputs of all ranks, in a time that grows with their bytes.
[[nodiscard]] std::vector<Bytes> outputs_of(const Job& job, std::uint32_t ranks);

}  // namespace espalier::testing
