#pragma once
// Runs the single faults of single_faults.h, and prints docs/results/faults.md.

#include <cstdint>

namespace espalier::storm {

// Runs every point of every cluster, or a sample (tests/whole.h): one in `of`. Prints the
// page, or for a sample the numbers of points. Returns the exit status: 1 if a promise was broken,
// and the command that repeats it is printed first.
[[nodiscard]] int run_single_faults(std::uint64_t of);

// Prints the arguments of `storm --plan` for every point, one a line.
[[nodiscard]] int list_single_faults();

}  // namespace espalier::storm
