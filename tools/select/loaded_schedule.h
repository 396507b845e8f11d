#pragma once
// A schedule file read, checked and decoded whole.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/file.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::tools {

struct LoadedSchedule {
  std::string name;  // of the file, for messages
  std::vector<std::uint8_t> bytes;
  ScheduleFile file;
  std::unique_ptr<topology::Topology> topology;  // the file's own
  Programs programs;                             // by node
};

// Opens a schedule without decoding its programs: for schedules too large to hold them all. The
// file at `path`, or bytes in memory, called `name` in messages.
[[nodiscard]] LoadedSchedule open_schedule(const std::string& path, const std::string& topology);
[[nodiscard]] LoadedSchedule open_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                           const std::string& topology);
// Decodes node's program. Throws Failure.
void decode(const LoadedSchedule& loaded, std::uint32_t node, OwnedProgram& program);
// The same; loaded.bytes keep its table.
void decode(const LoadedSchedule& loaded, std::uint32_t node, DecodedProgram& program);

// Reads the file at `path`. `topology`: if not empty, the specification that it must be for. Throws
// Failure (bad input): unreadable, truncated, corrupt, malformed, of another topology, ...
[[nodiscard]] LoadedSchedule load_schedule(const std::string& path, const std::string& topology);
// The same of bytes in memory, called `name` in messages.
[[nodiscard]] LoadedSchedule load_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                           const std::string& topology);

}  // namespace espalier::tools
