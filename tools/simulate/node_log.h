#pragma once
// A log with its memory. Host only.

#include <cstdint>
#include <vector>

#include "espalier/internal/collectives/machine/event_log.h"

namespace espalier::tools {

struct NodeLog {
  explicit NodeLog(std::size_t room)
      : events(room),
        times(room),
        log(events.data(), times.data(), static_cast<std::uint32_t>(room)) {}
  NodeLog(NodeLog&&) = default;  // vectors keep their memory

  std::vector<Event> events;
  std::vector<EventTimes> times;
  EventLog log;
};

}  // namespace espalier::tools
