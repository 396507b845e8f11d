#pragma once
// A schedule's machines on the simulated network. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/predict/model.h"
#include "collectives/simulation/cluster.h"
#include "espalier/hal/sim/network.h"
#include "espalier/internal/collectives/machine/event_log.h"
#include "tools/simulate/simulated_memory.h"
#include "tools/simulate/stored_schedule.h"

namespace espalier::tools {

// A log with its memory.
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

struct Outcome {
  sim::RunResult run;
  // the first error in the results, one line; empty if there is none
  std::string wrong;
  std::uint64_t blocks = 0;             // that nodes sent
  std::uint64_t events = 0;             // of the network
  std::vector<sim::LinkTraffic> links;  // free running only: that blocks may cross
  sim::Contention contention;           // lock step only
  sim::Residence residence;
};

// A schedule's cluster with all nodes started, except `absent`. Its arguments outlive it.
class Simulation {
 public:
  // Throws Failure (the verdict is negative) if a node cannot start. logs: null, or room for what
  // each node's machine does.
  Simulation(const StoredSchedule& schedule, SimulatedMemory& memory, const Layout& layout,
             const sim::Model& model, std::vector<NodeLog>* logs = nullptr,
             std::uint32_t absent = ~0u);

  // Called now and then with the part that is done, 0 .. 1.
  using Report = std::function<void(double done)>;
  // Runs to the end and compares every result. Free running, `blocks` are those that will be sent.
  [[nodiscard]] Outcome lock_step(std::int64_t steps, const Report& report);
  [[nodiscard]] Outcome run_freely(std::uint64_t blocks, const Report& report);
  // The first node that ends well within `until_ns`; -1: none.
  [[nodiscard]] std::int64_t first_to_end(std::uint64_t until_ns) {
    return cluster_.first_to_end(until_ns);
  }

 private:
  void start(std::uint32_t node);
  [[nodiscard]] Outcome outcome(sim::RunResult result);

  const StoredSchedule& schedule_;
  SimulatedMemory& memory_;
  double tick_;  // s; 0 outside the postal model
  sim::Cluster cluster_;
};

// A barrier has no bytes to look at: it is right if no node ends it while any one rank is absent.
// Otherwise what happened.
[[nodiscard]] std::string check_barrier(const StoredSchedule& schedule, SimulatedMemory& memory,
                                        const Layout& layout, const sim::Model& model,
                                        const Simulation::Report& report);

// The network that the schedule's ports ask for, over the real links of its topology, which must
// outlive it.
// In the postal model the latency is the one that the schedule claims, if it is longer than the
// links'.
[[nodiscard]] sim::Model model_of(const StoredSchedule& schedule, const Layout& layout,
                                  const predict::LinkCost& cost);

// ps and fs in s.
[[nodiscard]] inline double seconds_of(predict::Picoseconds time) {
  return static_cast<double>(time) * 1e-12;
}
[[nodiscard]] inline double seconds_per_byte(std::uint64_t fs_per_byte) {
  return static_cast<double>(fs_per_byte) * 1e-15;
}

}  // namespace espalier::tools
