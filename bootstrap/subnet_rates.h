#pragma once
// How fast subnets are, measured by short transfers between hosts. Host only.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/network/address.h"

namespace espalier::bootstrap {

// A transfer over each subnet has at most this many bytes and this time after the first byte.
inline constexpr std::size_t kTransferBytes = std::size_t{1} << 20;
inline constexpr std::chrono::milliseconds kTransferTime(50);
// The whole measurement ends by then, also if a peer does not read or send.
inline constexpr std::chrono::milliseconds kMeasureTime(500);

// One subnet: the own address in it, and where the next host listens.
struct Transfer {
  network::Address from, to;
};

// What a process needs to measure. The hosts form a ring: each sends to the next host, over all
// subnets side by side, and receives from the host before it.
struct RateTest {
  int listener = -1;             // does not block; reached by the host before this one
  std::uint64_t own_token = 0;   // the host before this one sends it first
  std::uint64_t peer_token = 0;  // the next host expects it
  std::vector<Transfer> subnets = {};
};

// Returns at which rate each subnet brought what the host before this one sent, in kbit/s, at least
// 1. All 0: nothing came within kMeasureTime.
[[nodiscard]] std::vector<std::uint32_t> measured_rates(const RateTest& test);

// Returns the number of the first subnet than which none is faster by a clear margin: more than 1.5
// times, and a transfer takes 5 ms less. `kbits`: rates in kbit/s in the order of preference; 0:
// unknown, and then the first one is returned.
[[nodiscard]] std::size_t preferred_by_rate(const std::vector<std::uint32_t>& kbits);

}  // namespace espalier::bootstrap
