#include "firmware/image/key_file.h"

#include <sodium/crypto_core_ed25519.h>
#include <sodium/crypto_sign_ed25519.h>
#include <sodium/utils.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/read_file.h"

namespace espalier {
namespace {

// The DER form of an Ed25519 key: this prefix, then the key's 32 bytes.
struct Kind {
  const char* label;
  std::string_view prefix;
};
constexpr Kind kPublic{"PUBLIC KEY", {"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12}};
constexpr Kind kPrivate{"PRIVATE KEY",
                        {"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20", 16}};

std::string begin_line(const Kind& kind) {
  return "-----BEGIN " + std::string(kind.label) + "-----\n";
}
std::string end_line(const Kind& kind) { return "-----END " + std::string(kind.label) + "-----\n"; }

std::string to_pem(const Kind& kind, const Key& key) {
  std::string der(kind.prefix);
  der.append(key.begin(), key.end());
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(der.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(der.data()),
                    der.size(), kVariant);
  text.pop_back();  // its terminator
  return begin_line(kind) + text + "\n" + end_line(kind);
}

bool from_pem(const Kind& kind, const std::string& text, Key& key) {
  const std::string begin = begin_line(kind), end = end_line(kind);
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end.substr(0, end.size() - 1));
  if (from == std::string::npos || to == std::string::npos || to < from + begin.size()) {
    return false;
  }
  std::array<unsigned char, 64> der;
  std::size_t size = 0;
  const std::size_t start = from + begin.size();
  if (sodium_base642bin(der.data(), der.size(), text.data() + start, to - start, "\r\n ", &size,
                        nullptr, sodium_base64_VARIANT_ORIGINAL) != 0) {
    return false;
  }
  const std::size_t prefix = kind.prefix.size();
  if (size != prefix + key.size() || std::memcmp(der.data(), kind.prefix.data(), prefix) != 0) {
    return false;
  }
  std::copy_n(der.begin() + static_cast<std::ptrdiff_t>(prefix), key.size(), key.begin());
  return true;
}

Result<Key> read_key(const std::string& path, const Kind& kind) {
  const Result<std::string> text = read_file(path, FileKind::kKey);
  if (!text) return fail("the key: " + text.error().message);
  Key key{};
  if (text->size() == key.size()) {
    std::copy(text->begin(), text->end(), key.begin());
    return key;
  }
  if (from_pem(kind, *text, key)) return key;
  return fail(path + " is not an Ed25519 " + (&kind == &kPublic ? "public" : "private") +
              " key: expected PEM (\"BEGIN " + kind.label +
              "\") as 'espalier image keygen' writes it, or its 32 bytes");
}

}  // namespace

Result<Key> read_public_key(const std::string& path) {
  auto key = read_key(path, kPublic);
  if (!key || crypto_core_ed25519_is_valid_point(key->data()) == 1) return key;
  return fail(path +
              " is not an Ed25519 public key: no private key belongs to it; expected the public "
              "key of a pair, as 'espalier image keygen' writes it");
}

Result<Key> read_private_key(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail("the key " + path +
                " is accessible to users other than its owner; expected mode 0600");
  }
  return read_key(path, kPrivate);
}

Key public_key_of(const Key& seed) {
  Key key;
  std::array<unsigned char, crypto_sign_ed25519_SECRETKEYBYTES> secret;
  (void)crypto_sign_ed25519_seed_keypair(key.data(), secret.data(), seed.data());
  sodium_memzero(secret.data(), secret.size());
  return key;
}

std::array<std::uint8_t, 64> sign(const Key& seed, const std::uint8_t* bytes, std::size_t size) {
  Key key;
  std::array<unsigned char, crypto_sign_ed25519_SECRETKEYBYTES> secret;
  (void)crypto_sign_ed25519_seed_keypair(key.data(), secret.data(), seed.data());
  std::array<std::uint8_t, 64> signature;
  (void)crypto_sign_ed25519_detached(signature.data(), nullptr, bytes, size, secret.data());
  sodium_memzero(secret.data(), secret.size());
  return signature;
}

std::string public_pem(const Key& key) { return to_pem(kPublic, key); }

std::string private_pem(const Key& seed) { return to_pem(kPrivate, seed); }

}  // namespace espalier
