#pragma once
// Traces in the Trace Event Format (JSON), which Perfetto and chrome://tracing open. A node is a
// process. It has one track for each link and direction, one for combines and copies and one for
// steps. A message has a slice at each of its two ends, and an arrow from its send to its receive.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/collectives/machine/event_log.h"
#include "planner/files/loaded_schedule.h"

namespace espalier::tools {

struct Trace {
  std::string json;
  std::uint64_t nodes = 0, tracks = 0, slices = 0, arrows = 0;
  std::uint64_t lost = 0;        // records that the logs had no room for
  std::uint64_t unfinished = 0;  // that had begun and never ended: not drawn
};

// Room for all that the programs (by node) do with N = blocks. Throws Failure (bad input) where
// that is more than a trace can show.
[[nodiscard]] std::vector<std::uint32_t> log_room(const Programs& programs, std::int64_t blocks);

// logs: by node (with times), of one run whose endpoints had one clock. Times are from the first
// step's beginning, in us. A link's messages complete in order: a slice begins when its message was
// posted or the one before it on the link was complete, whichever is later. A send ends when its
// completion was polled, or when its receive was complete, whichever is earlier.
[[nodiscard]] Trace make_trace(const planner::LoadedSchedule& loaded,
                               const std::vector<EventLog>& logs, std::uint64_t bytes,
                               std::int64_t blocks, const std::string& clock);

// Writes the trace; with `say`, prints its size on stdout.
void write_trace(const std::string& path, const Trace& trace, bool say);

}  // namespace espalier::tools
