#pragma once
// SHA-256 (FIPS 180-4). Freestanding. On Linux by libsodium (sha256_sodium.cc), on bare metal by
// Mbed TLS (sha256_mbedtls.cc), whose small variant takes a third of libsodium's flash.

#include <cstddef>
#include <cstdint>

namespace espalier {

inline constexpr std::size_t kSha256Bytes = 32;

// Computes the digest of `first_size` bytes at `first` followed by `second_size` bytes at `second`.
void sha256(const std::uint8_t* first, std::size_t first_size, const std::uint8_t* second,
            std::size_t second_size, std::uint8_t digest[kSha256Bytes]);

}  // namespace espalier
