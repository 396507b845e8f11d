#include <sodium/crypto_hash_sha256.h>

#include "firmware/image/sha256.h"

namespace espalier {

static_assert(kSha256Bytes == crypto_hash_sha256_BYTES);

void sha256(const std::uint8_t* first, std::size_t first_size, const std::uint8_t* second,
            std::size_t second_size, std::uint8_t digest[kSha256Bytes]) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  crypto_hash_sha256_update(&state, first, first_size);
  crypto_hash_sha256_update(&state, second, second_size);
  crypto_hash_sha256_final(&state, digest);
}

}  // namespace espalier
