#pragma once
// A schedule file read, checked and decoded whole. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/file.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"
#include "planner/progress.h"

namespace espalier::planner {

struct LoadedSchedule {
  std::string name;  // of the file, for messages
  std::vector<std::uint8_t> bytes;
  ScheduleFile file;
  std::unique_ptr<topology::Topology> topology;  // the file's own
  Programs programs;                             // by node
};

// Opens the bytes of a schedule file, called `name` in messages, without decoding its programs: for
// schedules too large to hold them all.
[[nodiscard]] LoadedSchedule open_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                           const std::string& topology);
// Decodes node's program. Throws Failure.
void decode(const LoadedSchedule& loaded, std::uint32_t node, OwnedProgram& program);
// The same; loaded.bytes keep its table.
void decode(const LoadedSchedule& loaded, std::uint32_t node, DecodedProgram& program);

// Checks that the programs are those of one schedule for the file's topology (verify::form_error):
// every peer exists, and all programs agree. Throws Failure (bad input).
void check_form(const LoadedSchedule& loaded, const verify::Programs& programs);

// Checks that the schedule can be expanded for N = `blocks` (verify::form_error). Call before
// expand(). Throws Failure (bad input).
void check_form(const LoadedSchedule& loaded, const verify::Programs& programs,
                std::int64_t blocks);
// The same for a schedule that load_schedule() returned.
void check_form(const LoadedSchedule& loaded, std::int64_t blocks);

// Opens and decodes all, and checks their form. `topology`: if not empty, the specification that it
// must be for. Throws Failure (bad input): truncated, corrupt, malformed, of another topology, ...
[[nodiscard]] LoadedSchedule load_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                           const std::string& topology,
                                           const ShowProgress& progress);

}  // namespace espalier::planner
