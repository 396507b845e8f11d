#pragma once
// The processors of this host. Host only.

#include <cstdint>

namespace espalier::tools {

// The number of processors that this process, and those that it starts, may use: what the affinity
// mask leaves of those that are online. std::thread::hardware_concurrency() does not look at it.
[[nodiscard]] std::uint32_t usable_processors();

}  // namespace espalier::tools
