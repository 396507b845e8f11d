#pragma once
// Ed25519 keys in files: PEM by RFC 8410 (the output of `openssl genpkey -algorithm ed25519` and
// `openssl pkey -pubout`), or the 32 bytes alone. Host only.

#include <array>
#include <cstdint>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

using Key = std::array<std::uint8_t, 32>;  // a public key, or the seed of a private key

// Reads a key. Errors: the file cannot be read, or is not such a key. Every public key is a point
// of the curve's main subgroup; other bytes are not such a key. 32 random bytes, such as a private
// key, are such a point with probability 1/16, and are then taken.
[[nodiscard]] Result<Key> read_public_key(const std::string& path);
// Returns the key's seed. Errors: the file cannot be read, is not such a key, or users other than
// its owner may read, write or execute it.
[[nodiscard]] Result<Key> read_private_key(const std::string& path);

[[nodiscard]] Key public_key_of(const Key& seed);
// Returns the signature of `size` bytes.
[[nodiscard]] std::array<std::uint8_t, 64> sign(const Key& seed, const std::uint8_t* bytes,
                                                std::size_t size);
[[nodiscard]] std::string public_pem(const Key& key);
[[nodiscard]] std::string private_pem(const Key& seed);

}  // namespace espalier
