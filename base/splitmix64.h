#pragma once
// Pseudorandom numbers for tests and simulations. Freestanding.

#include <cstdint>

namespace espalier {

// A bijection of 64 bits: the next output of splitmix64 in state x (Steele, Lea, Flood: Fast
// splittable pseudorandom number generators, 2014). It depends only on x, so draws need no order.
inline constexpr std::uint64_t kSplitmix64Step = 0x9e3779b97f4a7c15ull;  // from state to state
[[nodiscard]] constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += kSplitmix64Step;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace espalier
