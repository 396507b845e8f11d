#pragma once
// A schedule's machines on the simulated network. Host only.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/machine/event_log.h"
#include "hal/sim/sim.h"
#include "tools/cost_model.h"
#include "tools/loaded.h"
#include "tools/node_log.h"
#include "tools/reference.h"
#include "tools/run_files.h"

namespace espalier::tools {

struct Outcome {
  sim::RunResult run;
  std::string wrong;                    // what is wrong with the results, one line; empty: nothing
  std::vector<sim::LinkTraffic> links;  // that blocks may cross
  sim::Contention contention;           // lock step only
  sim::Residence residence;
};

// A network with all nodes started, but `absent`. What it is given outlives it.
class Simulation {
 public:
  // Throws Failure (the verdict is negative) if a node cannot start. logs: null, or room for what
  // each node's machine does.
  Simulation(const LoadedSchedule& loaded, const reference::Case& run, const Layout& layout,
             const sim::Model& model, std::vector<NodeLog>* logs = nullptr,
             std::uint32_t absent = ~0u);

  // Runs to the end and compares every result.
  [[nodiscard]] Outcome finish(const reference::Case& run, bool lock_step);
  [[nodiscard]] RankMemory memory(std::uint32_t rank) const {
    return {nodes_[rank].input.data(), nodes_[rank].output.data()};
  }
  // The first node that ends well within `until_ns`; -1: none.
  [[nodiscard]] std::int64_t first_to_end(std::uint64_t until_ns);

 private:
  // Memory and machine of one node.
  struct Node {
    std::vector<std::uint8_t> input, output;
    std::unique_ptr<std::max_align_t[]> scratch;
    std::unique_ptr<Machine> machine;
  };
  void start(const LoadedSchedule& loaded, std::uint32_t number, const reference::Case& run,
             const Layout& layout, EventLog* log);

  std::vector<const Program*> programs_;
  std::int64_t blocks_;
  double tick_;  // s, of the postal model: the S-th part of a block's time; 0 elsewhere
  sim::Network network_;
  std::vector<Node> nodes_;
  std::vector<Machine*> machines_;
};

// A barrier has no bytes to look at: it is right if nobody ends it while any one rank is absent.
// Else what happened.
[[nodiscard]] std::string check_barrier(const LoadedSchedule& loaded, const reference::Case& run,
                                        const Layout& layout, const sim::Model& model);

// Bytes that a simulation of the whole schedule holds.
[[nodiscard]] std::uint64_t memory_needed(const LoadedSchedule& loaded, const reference::Case& run,
                                          const Layout& layout);

// The network that the schedule's ports and, in the postal model, its ticks ask for, for blocks of
// this layout, over the real links of its topology, which is to outlive it.
[[nodiscard]] sim::Model model_of(const LoadedSchedule& loaded, const Layout& layout,
                                  const CostModel::Line& line);

}  // namespace espalier::tools
