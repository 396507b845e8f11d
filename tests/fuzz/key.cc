// Fuzz target: any bytes are refused as a key, or are one that stays the same after writing. The
// first byte tells whether the rest is a public key or the seed of a private one, and whether it is
// a file or the 32 bytes that a correct file has around its key.

#include <sodium/crypto_core_ed25519.h>

#include <algorithm>

#include "firmware/image/key_file.h"
#include "tests/fuzz/memory_file.h"

namespace espalier::fuzz {
namespace {

Result<Key> read(bool is_public, const std::string& text) {
  const MemoryFile file(text.data(), text.size());
  return is_public ? read_public_key(file.path()) : read_private_key(file.path());
}

}  // namespace

void run(Input& input) {
  const unsigned form = input.below(4);
  const bool is_public = form % 2 == 0;
  std::string text = input.text();
  if (form / 2 == 1) {
    Key key{};
    std::copy_n(input.rest(), std::min(input.left(), key.size()), key.begin());
    text = is_public ? public_pem(key) : private_pem(key);
  }
  const auto key = read(is_public, text);
  if (!key) {
    expect(key.error().message.find("expected ") != std::string::npos,
           "an error says what is expected");
    return;
  }
  const auto again = read(is_public, is_public ? public_pem(*key) : private_pem(*key));
  expect(again && *again == *key, "what is written is the same key");
  expect(!is_public || crypto_core_ed25519_is_valid_point(key->data()) == 1,
         "a public key is a point of the curve");
}

}  // namespace espalier::fuzz
