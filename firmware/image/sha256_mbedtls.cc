#include <mbedtls/sha256.h>

#include <cstring>

#include "firmware/image/sha256.h"

namespace espalier {

void sha256(const std::uint8_t* first, std::size_t first_size, const std::uint8_t* second,
            std::size_t second_size, std::uint8_t digest[kSha256Bytes]) {
  mbedtls_sha256_context state;
  mbedtls_sha256_init(&state);
  // They fail only where hardware does it.
  (void)mbedtls_sha256_starts_ret(&state, 0);
  (void)mbedtls_sha256_update_ret(&state, first, first_size);
  (void)mbedtls_sha256_update_ret(&state, second, second_size);
  (void)mbedtls_sha256_finish_ret(&state, digest);
}

}  // namespace espalier

// Asked for by mbedtls_config.h. Images are no secrets: what stays of one on the stack may stay.
extern "C" void mbedtls_platform_zeroize(void* bytes, std::size_t size) {
  std::memset(bytes, 0, size);
}
