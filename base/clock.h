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

// The same clock without the time in which this process was stopped, or did not run: a silence of
// its peers is measured by it. A gap of more than a second between two looks does not count.
class AwakeClock {
 public:
  [[nodiscard]] std::uint64_t now() {
    constexpr std::uint64_t kMaxGap = 1'000'000'000;  // ns
    const std::uint64_t now = monotonic_ns();
    if (now - last_ns_ > kMaxGap) lost_ns_ += now - last_ns_;
    last_ns_ = now;
    return now - lost_ns_;
  }
  // The time on this clock for a time of CLOCK_MONOTONIC after the newest look.
  [[nodiscard]] std::uint64_t of(std::uint64_t monotonic) const { return monotonic - lost_ns_; }

 private:
  std::uint64_t last_ns_ = monotonic_ns();
  std::uint64_t lost_ns_ = 0;
};

}  // namespace espalier
