#pragma once
// Removes the files of "shm" endpoints of processes that ended. Needs no libfabric.

#include <cstdint>

namespace espalier::ofi {

// Removes the files in /dev/shm that a killed process left of its "shm" endpoints. Call after the
// process has ended.
void sweep_shared_memory(std::int64_t process);

}  // namespace espalier::ofi
