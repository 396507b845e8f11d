#pragma once
// Machines on programs as a node decodes them: each node checks its own alone.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::mutation {

// Runs the programs of the schedule file on a simulated network, without a check of the schedule's
// form. Each machine must end with a status, and write only into its own buffers. Returns what is
// wrong; empty if nothing is, or if the schedule takes more than some thousand steps.
[[nodiscard]] std::string run_machines(const std::vector<std::uint8_t>& file);

}  // namespace espalier::mutation
