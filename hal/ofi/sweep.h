#pragma once
// What a process that is gone left of its "shm" endpoints. Needs no libfabric.

#include <cstdint>

namespace espalier::ofi {

// Removes what a process that was killed left of "shm" endpoints. Call when it has ended.
void sweep_shared_memory(std::int64_t process);

}  // namespace espalier::ofi
