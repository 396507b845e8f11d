#pragma once
// What memory is left on this machine. Host only.

#include <cstdint>

namespace espalier::tools {

// Bytes that processes can have without swapping; UINT64_MAX where the system does not say.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace espalier::tools
