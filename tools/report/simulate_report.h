#pragma once
// The output of `espalier simulate`.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/output.h"
#include "tools/simulate/simulation.h"

namespace espalier::tools {

struct SimulateReport {
  std::string chosen;  // why this schedule of a selection; empty: there is no selection
  bool data = true;    // otherwise no result was checked
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> counts;  // of --counts; empty: all parts are of `bytes`
  std::string counts_option;          // as typed
  Layout layout;
  std::int64_t predicted_steps = 0, bound_steps = 0;
  double predicted_seconds = 0;
  double alpha = 0, beta = 0;  // s, s/B: of the time that the simulated network takes for a block
  Switching switching = Switching::kCutThrough;
  Outcome lock_step, free_running;
  std::vector<NodeLog> logs;  // of the free run, where wanted
};

// On stdout.
void print_report(const StoredSchedule& schedule, const SimulateReport& report, Format format);

}  // namespace espalier::tools
