#pragma once
// The memory that is free on this machine. Host only.

#include <cstdint>

namespace espalier::tools {

// Bytes that processes can have without swapping; UINT64_MAX if the system does not report them.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace espalier::tools
