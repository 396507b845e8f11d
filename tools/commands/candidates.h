#pragma once
// `espalier measure --candidates`: runs the candidates that a model predicts to be near the best,
// and adds their times to the model, so that `auto` takes what was fastest. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/run/run.h"

namespace espalier::tools {

struct CandidateOptions {
  std::string topology, output;
  std::vector<std::string> collectives;  // empty: all
  std::vector<std::string> sizes;        // as typed
  std::vector<std::uint64_t> bytes;      // of `sizes`
  std::uint32_t rounds = 15;
  Format format = Format::kText;
  run_command::RunOptions run;
};

// Runs them, writes the model, and prints what `auto` took and what was fastest. Throws Failure.
void measure_candidates(CandidateOptions options);

}  // namespace espalier::tools
