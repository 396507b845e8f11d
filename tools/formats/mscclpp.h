#pragma once
// MSCCL++ execution plans: JSON for microsoft/mscclpp. docs/formats.md. Host only.

#include <cstdint>
#include <string>

#include "tools/formats/operations.h"

namespace espalier::tools::formats {

// Limits of MSCCL++'s executor.
inline constexpr std::size_t kMscclppOperations = 64;  // per thread block
inline constexpr std::size_t kMscclppChannels = 16;    // per thread block
inline constexpr std::size_t kMscclppFlushes = 8;      // channels per operation
inline constexpr std::size_t kMscclppSemaphores = 16;  // per GPU

// Writes the schedule for N = `blocks`. Throws Failure (bad input) if MSCCL++ cannot express it.
[[nodiscard]] std::string write_mscclpp(const planner::LoadedSchedule& loaded, std::int64_t blocks);

}  // namespace espalier::tools::formats
