#pragma once
// What this host has for the processes of a command. Host only.

#include <cstdint>

namespace espalier::tools {

// Returns the number of processors that this process and its children may use: the online
// processors in the affinity mask. std::thread::hardware_concurrency() does not look at it.
[[nodiscard]] std::uint32_t usable_processors();

// Bytes that processes can have without swapping; UINT64_MAX if the system does not report them.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace espalier::tools
