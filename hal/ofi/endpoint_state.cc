#include "hal/ofi/endpoint_state.h"

#include <time.h>

namespace espalier::ofi {

std::uint64_t monotonic_ns() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace espalier::ofi
