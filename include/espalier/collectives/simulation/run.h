#pragma once
// Runs machines on the virtual-time network: asynchronously or in lock step. Host only.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "espalier/collectives/machine/machine.h"
#include "espalier/hal/sim/network.h"
#include "espalier/internal/collectives/simulation/machines.h"

namespace espalier::sim {

// The links that the programs name, made mutual, in ascending order. programs[v] is node v's
// program; null: none.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> links_of(
    const std::vector<const Program*>& programs);

// Collects the same links from one program at a time.
class LinkCollector {
 public:
  // Adds the links that the program of `node` names.
  void add(std::uint32_t node, const Program& program);
  // Returns the links of nodes 0 .. nodes-1. Links to any other node are left out.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> links(std::uint32_t nodes);

 private:
  std::vector<std::uint64_t> pairs_;  // of nodes, in both directions, unordered
};

// How a run ended.
struct RunResult {
  Status status = Status::kOk;  // of the first machine that failed, otherwise kOk
  double seconds = 0;           // virtual time from the start to the last machine's end
  std::int64_t steps = 0;   // lock step only: 1 + the last step in which a block left or arrived
  std::string message;      // describes the fault if the runner itself set `status`
  std::uint64_t polls = 0;  // of all machines
};

// Called from time to time during a run, in lock step with the current step: for progress bars.
using Tick = std::function<void(std::int64_t step)>;

// Polls the machines asynchronously, at the model's speed, until none is busy. machines[v] is bound
// to endpoint v or to a wrapper of it; null: none. A machine is polled when something happened at
// its endpoint or its next_deadline() is reached. Virtual time passes through deadlines, so
// failures are detected as on a real fabric. Machines of killed nodes are not polled. kStalled with
// a message: machines are busy, but no event can ever follow.
[[nodiscard]] RunResult run(Network& network, const std::vector<Machine*>& machines);
[[nodiscard]] RunResult run(Network& network, Machines& machines, const Tick& tick = nullptr);
// Polls the machines in lock step: step s+1 is issued when step s has finished on every node. Once
// a node is dead or a machine has failed, the rest runs asynchronously. kNotInSchedule with a
// message:
//  * with one_port, a node sends or receives twice in a step;
//  * without one_port, a link has more blocks per step than lanes;
//  * a receive of step s has no matching send of step s-L+1, or the reverse. L = latency_ticks of
//    the program, 1 except in the postal model.
[[nodiscard]] RunResult run_lock_step(Network& network, const std::vector<Machine*>& machines,
                                      std::uint32_t latency_ticks = 1);
[[nodiscard]] RunResult run_lock_step(Network& network, Machines& machines,
                                      std::uint32_t latency_ticks = 1, const Tick& tick = nullptr);
// Runs asynchronously until a machine ends successfully, and returns its node. Returns -1 if no
// event follows by `until_ns`.
[[nodiscard]] std::int64_t first_to_end(Network& network, Machines& machines,
                                        std::uint64_t until_ns);

}  // namespace espalier::sim
