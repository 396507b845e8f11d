#include <mbedtls/sha256.h>

#include <cstring>

#include "firmware/image/sha256.h"

namespace espalier {

void sha256(const std::uint8_t* first, std::size_t first_size, const std::uint8_t* second,
            std::size_t second_size, std::uint8_t digest[kSha256Bytes]) {
  mbedtls_sha256_context state;
  mbedtls_sha256_init(&state);
  // These fail only with hardware implementations.
  (void)mbedtls_sha256_starts_ret(&state, 0);
  (void)mbedtls_sha256_update_ret(&state, first, first_size);
  (void)mbedtls_sha256_update_ret(&state, second, second_size);
  (void)mbedtls_sha256_finish_ret(&state, digest);
}

}  // namespace espalier

// Required by mbedtls_config.h. Images are not secret, so copies on the stack may remain.
extern "C" void mbedtls_platform_zeroize(void* bytes, std::size_t size) {
  std::memset(bytes, 0, size);
}
