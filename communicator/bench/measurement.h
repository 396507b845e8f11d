#pragma once
// Collectives of a joined job, timed and checked. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/communicator.h"
#include "planner/workload/reference.h"

namespace espalier::bench {

// How the repetitions of a row start.
enum class Start : std::uint8_t {
  kWarm,  // directly after a barrier
  kCold,  // after a barrier and a pause in which every rank sleeps
};

struct Row {
  reference::ReferenceInput what;
  std::string algorithm;
  // Seconds of each repetition: the slowest rank, from its own start of the call to its end.
  std::vector<double> warm, cold;
  std::uint64_t wrong = 0;  // results that were not right, over all ranks and repetitions
};

struct Repetitions {
  std::uint32_t warm_up = 3;
  std::uint32_t timed = 31;
  bool persistent = false;  // the call is planned once, and each repetition starts the plan
  bool checked = true;      // compares every result, and gives each repetition its own input
  bool shared = false;      // buffers of allocate(), which ranks of the same host read in place
};

// Runs the collective; all ranks call it with the same arguments and get the same row. Errors: no
// memory, no schedule that serves it, the failure.
[[nodiscard]] Result<Row> measure(Communicator& world, const reference::ReferenceInput& what,
                                  const std::vector<Start>& starts, const Repetitions& repetitions);

// The bytes that the row's bandwidths count: of the whole message, or of all ranks' parts.
[[nodiscard]] std::uint64_t moved_bytes(const reference::ReferenceInput& what);
// The part of these bytes that each rank's link carries at least; busbw = algbw * this, as
// nccl-tests define it.
[[nodiscard]] double bus_share(Collective collective, std::uint32_t ranks);

}  // namespace espalier::bench
