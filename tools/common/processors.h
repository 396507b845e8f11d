#pragma once
// The processors of this host. Host only.

#include <cstdint>

namespace espalier::tools {

// Returns the number of processors that this process and its children may use: the online
// processors in the affinity mask. std::thread::hardware_concurrency() does not look at it.
[[nodiscard]] std::uint32_t usable_processors();

}  // namespace espalier::tools
