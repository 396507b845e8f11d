#pragma once
// Ed25519 keys in files: PEM by RFC 8410 (the output of `openssl genpkey -algorithm ed25519` and
// `openssl pkey -pubout`), or the 32 bytes alone. Host only.

#include <array>
#include <cstdint>
#include <string>

namespace espalier {

using Key = std::array<std::uint8_t, 32>;  // a public key, or the seed of a private key

// Reads a key. False and one line in `error` (what is wrong, what is expected). Every public key is
// a point of the curve's main subgroup; other bytes are refused. 32 random bytes, such as a private
// key, are such a point with probability 1/16, and are then taken.
[[nodiscard]] bool read_public_key(const std::string& path, Key& key, std::string& error);
// As above. Also refuses a file that users other than its owner may read, write or execute.
[[nodiscard]] bool read_private_key(const std::string& path, Key& seed, std::string& error);

[[nodiscard]] Key public_key_of(const Key& seed);
// Returns the signature of `size` bytes.
[[nodiscard]] std::array<std::uint8_t, 64> sign(const Key& seed, const std::uint8_t* bytes,
                                                std::size_t size);
[[nodiscard]] std::string public_pem(const Key& key);
[[nodiscard]] std::string private_pem(const Key& seed);

}  // namespace espalier
