#pragma once
// A schedule file read, checked and decoded whole. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/result.h"
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

// Programs as the verifier takes them; `loaded` must outlive them.
[[nodiscard]] verify::Programs programs_of(const LoadedSchedule& loaded);

// Opens the bytes of a schedule file, called `name` in messages, without decoding its programs: for
// schedules too large to hold them all. Errors: as load_schedule().
[[nodiscard]] Result<LoadedSchedule> open_schedule(std::string name,
                                                   std::vector<std::uint8_t> bytes,
                                                   const std::string& topology);
// Decodes node's program. Error: its descriptor is corrupt.
[[nodiscard]] Result<void> decode(const LoadedSchedule& loaded, std::uint32_t node,
                                  OwnedProgram& program);
// The same; loaded.bytes keep its table.
[[nodiscard]] Result<void> decode(const LoadedSchedule& loaded, std::uint32_t node,
                                  DecodedProgram& program);

// Checks that the programs are those of one schedule for the file's topology (verify::form_error):
// every peer exists, and all programs agree.
[[nodiscard]] Result<void> check_form(const LoadedSchedule& loaded,
                                      const verify::Programs& programs);

// Checks that the schedule can be expanded for N = `blocks` (verify::form_error). Call before
// expand().
[[nodiscard]] Result<void> check_form(const LoadedSchedule& loaded,
                                      const verify::Programs& programs, std::int64_t blocks);
// The same for a schedule that load_schedule() returned.
[[nodiscard]] Result<void> check_form(const LoadedSchedule& loaded, std::int64_t blocks);

// Opens and decodes all, and checks their form. `topology`: if not empty, the specification that it
// must be for. Errors: truncated, corrupt, malformed, of another topology, ...
[[nodiscard]] Result<LoadedSchedule> load_schedule(std::string name,
                                                   std::vector<std::uint8_t> bytes,
                                                   const std::string& topology,
                                                   const ShowProgress& progress);

}  // namespace espalier::planner
