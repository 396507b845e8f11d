#pragma once
// The steps of an MSCCL algorithm, which its file does not have.

#include <cstdint>
#include <vector>

#include "collectives/lower/timed.h"
#include "tools/formats/msccl_file.h"
#include "tools/formats/msccl_values.h"

namespace espalier::tools::formats {

// Returns the window of the programs.
[[nodiscard]] std::uint32_t msccl_window(const MscclFile& file);

// Gives every value a step, and adds the instances that make it to `timed`. Returns the digest of
// the values and their steps.
[[nodiscard]] std::uint64_t add_msccl_steps(const MscclFile& file,
                                            const std::vector<MscclValue>& values,
                                            lower::TimedSchedule& timed);

}  // namespace espalier::tools::formats
