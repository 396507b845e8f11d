#pragma once
// SHA-256 (FIPS 180-4) by the library that suits the target: libsodium's on Linux
// (sha256_sodium.cc), Mbed TLS' on bare metal (sha256_mbedtls.cc), which takes a third of the flash
// where it is told to be small. Freestanding.

#include <cstddef>
#include <cstdint>

namespace espalier {

inline constexpr std::size_t kSha256Bytes = 32;

// The digest of `first_size` bytes at `first`, followed by `second_size` bytes at `second`.
void sha256(const std::uint8_t* first, std::size_t first_size, const std::uint8_t* second,
            std::size_t second_size, std::uint8_t digest[kSha256Bytes]);

}  // namespace espalier
