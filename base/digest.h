#pragma once
// 64-bit FNV-1a: the digest of topologies and schedules, by which nodes and files recognize them.
// Not cryptographic. Freestanding.

#include <cstddef>
#include <cstdint>

namespace espalier {

// The digest of no bytes: the first `seed`.
inline constexpr std::uint64_t kDigestSeed = 0xcbf29ce484222325ull;

// Returns the digest of everything that `seed` is the digest of, followed by `size` bytes.
[[nodiscard]] std::uint64_t digest_bytes(std::uint64_t seed, const void* bytes, std::size_t size);

// The same, followed by the 8 bytes of `value`, lowest first.
[[nodiscard]] std::uint64_t digest_u64(std::uint64_t seed, std::uint64_t value);

}  // namespace espalier
