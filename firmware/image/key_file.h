#pragma once
// Ed25519 keys in files: PEM as RFC 8410 has it (what `openssl genpkey -algorithm ed25519` and
// `openssl pkey -pubout` write), or the 32 bytes alone. Host only.

#include <array>
#include <cstdint>
#include <string>

namespace espalier {

using Key = std::array<std::uint8_t, 32>;  // a public key, or the seed of a private one

// False and one line in `error` (what was wrong, what would be right).
[[nodiscard]] bool read_public_key(const std::string& path, Key& key, std::string& error);
// Also refuses a file that anybody but its owner may read or write.
[[nodiscard]] bool read_private_key(const std::string& path, Key& seed, std::string& error);

[[nodiscard]] Key public_key_of(const Key& seed);
// The signature of `size` bytes: 64 bytes.
[[nodiscard]] std::array<std::uint8_t, 64> sign(const Key& seed, const std::uint8_t* bytes,
                                                std::size_t size);
[[nodiscard]] std::string public_pem(const Key& key);
[[nodiscard]] std::string private_pem(const Key& seed);

}  // namespace espalier
