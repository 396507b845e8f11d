#pragma once
// MSCCL XML: the algorithm files of microsoft/msccl and of msccl-tools. docs/formats.md. Host only.

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/formats/operations.h"

namespace espalier::tools::formats {

// Limits of all of MSCCL's readers.
inline constexpr std::int64_t kMscclCount = 71;          // chunks per step
inline constexpr std::uint32_t kMscclPeers = 32;         // per channel and direction
inline constexpr std::int64_t kMscclWaitedBlocks = 128;  // a wait has 8 bits, signed, for a block
inline constexpr std::int64_t kMscclMaxOffset = 32767;   // of a chunk in its buffer
inline constexpr std::uint32_t kMscclMaxGpus = 1024;     // children of an element
inline constexpr std::size_t kMscclMaxElements = 4095;   // that a rank keeps of a file

// A program that reads MSCCL XML, and its own limits.
struct MscclReader {
  const char* name;           // of --reader
  const char* title;          // of messages
  std::size_t thread_blocks;  // per GPU
  std::size_t steps;          // per thread block
  std::uint32_t channels;
  const char* reduce_scatter;   // how it spells this collective
  bool has_scatter_and_gather;  // reads these collectives
};
inline constexpr MscclReader kMscclReaders[] = {
    {"rccl", "RCCL", 64, 64, 128, "reducescatter", true},
    {"executor", "Azure's msccl-executor", 1024, 64, 32, "reducescatter", true},
    {"msccl", "microsoft/msccl", 216, 256, 32, "reduce_scatter", false},
};

// The greatest limits of any reader, for the import.
inline constexpr std::size_t kMscclThreadBlocks = 1024;
inline constexpr std::size_t kMscclSteps = 256;
inline constexpr std::uint32_t kMscclChannels = 128;

// The name that MSCCL has for a collective; empty: none.
[[nodiscard]] std::string_view msccl_name(Collective collective);

// Writes the schedule for N = `blocks`, as `reader` takes it. If a thread block has too many steps,
// its messages take turns on several channels. Throws Failure (bad input) if MSCCL cannot express
// the schedule, or the reader's limits are too low.
[[nodiscard]] std::string write_msccl(const planner::LoadedSchedule& loaded, std::int64_t blocks,
                                      const MscclReader& reader);

}  // namespace espalier::tools::formats
