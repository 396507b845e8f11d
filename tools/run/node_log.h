#pragma once
// The event log that a node reports. Host only.

#include <vector>

#include "espalier/base/result.h"
#include "espalier/internal/collectives/machine/event_log.h"

namespace espalier::run_command {

// A checked copy of a log whose memory a node can write at any time.
class NodeLog {
 public:
  NodeLog() = default;
  // Copies `shared`, which has times, and checks the copy: each link is one of the program's, each
  // kind is one of an action, and the flags are 0 or 1. Error: the first record that is not so.
  [[nodiscard]] static Result<NodeLog> copy(const EventLog& shared, const Program& program);
  // Returns the log. It must not outlive this object.
  [[nodiscard]] EventLog log() { return {events_.data(), times_.data(), counts_}; }

 private:
  std::vector<Event> events_;
  std::vector<EventTimes> times_;
  EventLog::Counts counts_;
};

}  // namespace espalier::run_command
