#include "base/digest.h"

namespace espalier {

std::uint64_t digest_bytes(std::uint64_t seed, const void* bytes, std::size_t size) {
  constexpr std::uint64_t kPrime = 0x100000001b3ull;
  const auto* next = static_cast<const std::uint8_t*>(bytes);
  for (std::size_t i = 0; i < size; ++i) seed = (seed ^ next[i]) * kPrime;
  return seed;
}

std::uint64_t digest_u64(std::uint64_t seed, std::uint64_t value) {
  std::uint8_t bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return digest_bytes(seed, bytes, sizeof bytes);
}

}  // namespace espalier
