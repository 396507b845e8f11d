#pragma once
// The options of `espalier simulate`. Host only.

#include <string>

#include "espalier/hal/sim/network.h"
#include "planner/workload/workload.h"
#include "tools/common/output.h"
#include "tools/options/workload_options.h"

namespace espalier::tools {

struct SimulateOptions {
  std::string file, bytes, counts, seed, topology, model;
  OperatorOptions combining;
  std::string trace;   // file to write a trace of the free run into; empty: none
  std::string output;  // directory for the free run's results
  std::string events;  // directory for what its nodes did
  Switching switching = Switching::kCutThrough;
  bool no_data = false;  // no byte is moved
  double alpha = 1e-6, beta = 1e-9, jitter = 0, link_jitter = 0, node_jitter = 0;
  Format format = Format::kText;
};

// Simulates, prints the report, throws Failure where something is wrong.
void run_simulate(const SimulateOptions& options);

}  // namespace espalier::tools
