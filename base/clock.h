#pragma once
// The clock of a Linux host. Host only: a board has its own
// (include/espalier/hal/serial/carrier.h).

#include <time.h>

#include <cstdint>

namespace espalier {

// Nanoseconds of CLOCK_MONOTONIC, which all processes of one host share.
[[nodiscard]] inline std::uint64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace espalier
