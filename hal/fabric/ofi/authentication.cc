#include "hal/fabric/ofi/authentication.h"

#include <sodium.h>

#include <cstring>

#include "base/digest.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"
#include "hal/fabric/random.h"

namespace espalier::ofi {
namespace {

constexpr std::size_t kMaxWordBytes = 64;

struct DerivedFrom {
  char purpose[16] = "espalier lane 1";
  Little<std::uint32_t> sender_node = 0, sender_lane = 0, receiver_node = 0, receiver_lane = 0;
  AddressHead::Nonce sender_nonce = {}, receiver_nonce = {};
};
static_assert(sizeof(DerivedFrom) == 64);
static_assert(sizeof(DirectionKey) == 2 * crypto_shorthash_KEYBYTES);
static_assert(sizeof(Authentication::Secret) == crypto_generichash_KEYBYTES);

}  // namespace

Authentication::Authentication() { fill_randomly(nonce_.data(), nonce_.size()); }

Authentication::~Authentication() { sodium_memzero(secret_.data(), secret_.size()); }

void Authentication::set_secret(const Secret& secret) {
  secret_ = secret;
  has_secret_ = true;
}

DirectionKey Authentication::derive(const LaneEnd& sender, const LaneEnd& receiver) const {
  DirectionKey key;
  DerivedFrom from{.sender_node = sender.node,
                   .sender_lane = sender.lane,
                   .receiver_node = receiver.node,
                   .receiver_lane = receiver.lane,
                   .sender_nonce = sender.nonce,
                   .receiver_nonce = receiver.nonce};
  std::uint8_t bytes[sizeof(key)];
  (void)crypto_generichash(bytes, sizeof(bytes), reinterpret_cast<const std::uint8_t*>(&from),
                           sizeof(from), has_secret_ ? secret_.data() : nullptr,
                           has_secret_ ? secret_.size() : 0);
  std::memcpy(key.words.data(), bytes, key.words.size());
  std::memcpy(key.data.data(), bytes + key.words.size(), key.data.size());
  sodium_memzero(bytes, sizeof(bytes));
  return key;
}

std::uint64_t Authentication::code(const DirectionKey& key, Opcode opcode, std::uint64_t number,
                                   const void* bytes, std::size_t size) {
  ESPALIER_ASSERT(size <= kMaxWordBytes);
  std::uint8_t text[8 + kMaxWordBytes];
  const Little<std::uint64_t> head = number << 8 | static_cast<std::uint8_t>(opcode);
  std::memcpy(text, &head, sizeof(head));
  if (size != 0) std::memcpy(text + sizeof(head), bytes, size);
  Little<std::uint64_t> result = 0;
  (void)crypto_shorthash(reinterpret_cast<std::uint8_t*>(&result), text, sizeof(head) + size,
                         key.words.data());
  return result;
}

std::uint64_t Authentication::entry_code(const DirectionKey& key, Opcode opcode, const void* bytes,
                                         std::size_t size) const {
  if (has_secret_) return code(key, opcode, 0, bytes, size);
  // Greetings of an endpoint that has ended may still come.
  Little<std::uint64_t> lane = 0;
  std::memcpy(&lane, key.words.data(), sizeof(lane));
  std::uint64_t sum = digest_u64(kDigestSeed, lane);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    Little<std::uint64_t> word = 0;
    std::memcpy(&word, static_cast<const std::uint8_t*>(bytes) + i, sizeof(word));
    sum = digest_u64(sum, word);
  }
  return sum;
}

std::uint32_t Authentication::payload_code(const DirectionKey& key, const void* bytes,
                                           std::uint64_t size) const {
  Little<std::uint64_t> result = 0;
  (void)crypto_shorthash(reinterpret_cast<std::uint8_t*>(&result),
                         static_cast<const std::uint8_t*>(bytes), size, key.data.data());
  return static_cast<std::uint32_t>(result);
}

}  // namespace espalier::ofi
