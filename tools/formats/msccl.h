#pragma once
// MSCCL XML: the algorithm files of microsoft/msccl and of msccl-tools. docs/formats.md. Host only.

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/formats/operations.h"

namespace espalier::tools::formats {

// Limits of MSCCL's readers.
inline constexpr std::size_t kMscclThreadBlocks = 216;  // per GPU
inline constexpr std::size_t kMscclSteps = 256;         // per thread block
inline constexpr std::int64_t kMscclCount = 71;         // chunks per step
inline constexpr std::uint32_t kMscclPeers = 32;        // per channel and direction
inline constexpr std::uint32_t kMscclChannels = 32;

// The name that MSCCL has for a collective; empty: none.
[[nodiscard]] std::string_view msccl_name(Collective collective);

// Writes the schedule for N = `blocks`. Throws Failure (bad input) if MSCCL cannot express it.
[[nodiscard]] std::string write_msccl(const LoadedSchedule& loaded, std::int64_t blocks);

}  // namespace espalier::tools::formats
