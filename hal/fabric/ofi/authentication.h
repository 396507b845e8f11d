#pragma once
// Authenticates the words that peers write: SipHash-2-4 with a key per lane and direction, over the
// word and its number. Without a job secret, words carry no authentication.

#include <array>
#include <cstddef>
#include <cstdint>

#include "hal/fabric/address.h"
#include "hal/fabric/ofi/wire.h"

namespace espalier::ofi {

// The keys of one lane and direction.
struct DirectionKey {
  std::array<std::uint8_t, 16> words = {};
  std::array<std::uint8_t, 16> data = {};
};

// One end of a lane.
struct LaneEnd {
  std::uint32_t node = 0;
  std::uint32_t lane = 0;  // AddressHead::kAny: the nodes have one lane
  AddressHead::Nonce nonce = {};
};

class Authentication {
 public:
  using Secret = std::array<std::uint8_t, 32>;

  Authentication();
  ~Authentication();
  Authentication(const Authentication&) = delete;
  Authentication& operator=(const Authentication&) = delete;

  void set_secret(const Secret& secret);
  [[nodiscard]] bool has_secret() const { return has_secret_; }
  // Returns this endpoint's nonce, which makes its keys unlike those of all other endpoints.
  [[nodiscard]] const AddressHead::Nonce& nonce() const { return nonce_; }
  // Derives the key of the words that `sender` writes to `receiver`.
  [[nodiscard]] DirectionKey derive(const LaneEnd& sender, const LaneEnd& receiver) const;

  // Returns the code that immediate data carries for the word (opcode, number, bytes), size <= 64;
  // 0 without a secret.
  [[nodiscard]] std::uint64_t word_code(const DirectionKey& key, Opcode opcode,
                                        std::uint64_t number, const void* bytes = nullptr,
                                        std::size_t size = 0) const {
    return has_secret_ ? code(key, opcode, number, bytes, size) & kImmediateCodeMask : 0;
  }
  // Returns the code that an entry carries; without a secret a digest, which shows a half-written
  // entry.
  [[nodiscard]] std::uint64_t entry_code(const DirectionKey& key, Opcode opcode, const void* bytes,
                                         std::size_t size) const;
  // Returns the code of a message's payload. 32 bits are enough: a payload that is not authentic
  // ends the collective, so there is one attempt.
  [[nodiscard]] std::uint32_t payload_code(const DirectionKey& key, const void* bytes,
                                           std::uint64_t size) const;

 private:
  [[nodiscard]] static std::uint64_t code(const DirectionKey& key, Opcode opcode,
                                          std::uint64_t number, const void* bytes,
                                          std::size_t size);

  Secret secret_ = {};
  AddressHead::Nonce nonce_ = {};
  bool has_secret_ = false;
};

}  // namespace espalier::ofi
