#pragma once
// `espalier run`, which `espalier trace` uses too. Host only.

#include "tools/run/run.h"

namespace espalier::tools {

// Compiles or loads, verifies, runs and reports: all of `espalier run`. Throws Failure.
void run_collective(run_command::RunOptions options);

}  // namespace espalier::tools
