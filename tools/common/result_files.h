#pragma once
// The files that `espalier run` and `espalier simulate` both leave behind: the same names and,
// where both did the same, the same bytes, so that cmp compares them. Host only.

#include <cstdint>
#include <functional>
#include <string>

#include "espalier/internal/collectives/machine/event_log.h"
#include "planner/workload/reference.h"

namespace espalier::tools {

// Makes the directory if there is none. Throws Failure (bad input) if it is not writable.
void make_directory(const std::string& path);

// A rank's input and output; null where it has none.
struct RankMemory {
  const std::uint8_t* input = nullptr;
  const std::uint8_t* output = nullptr;
};

// rank-R.bin of every rank that has a result; for a broadcast, the root's file has the sent data.
// `memory` returns a rank's memory. Throws Failure.
void write_results(const std::string& directory, const reference::ReferenceInput& what,
                   const std::function<RankMemory(std::uint32_t rank)>& memory);

// node-V.events: event_bytes() of every record that has retired, one after the other. Throws
// Failure.
void write_events(const std::string& directory, std::uint32_t node, const EventLog& log);

}  // namespace espalier::tools
