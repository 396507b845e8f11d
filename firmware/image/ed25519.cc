// Ed25519 (RFC 8032) by libsodium, of which only the verifying part is linked: no heap, no
// randomness. It refuses keys and signatures of small order, and those that are not in canonical
// form.

#include <sodium/crypto_sign_ed25519.h>

#include "firmware/image/image.h"

namespace espalier {
namespace {

static_assert(kSignatureBytes == crypto_sign_ed25519_BYTES);
static_assert(kPublicKeyBytes == crypto_sign_ed25519_PUBLICKEYBYTES);

bool verify(const std::uint8_t* signature, const std::uint8_t* bytes, std::size_t size,
            const std::uint8_t* key) {
  return crypto_sign_ed25519_verify_detached(signature, bytes, size, key) == 0;
}

}  // namespace

Authority ed25519_authority(const std::uint8_t* public_key) { return {verify, public_key}; }

}  // namespace espalier
