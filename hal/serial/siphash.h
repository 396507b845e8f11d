#pragma once
// SipHash-2-4 (Aumasson, Bernstein: SipHash: a fast short-input PRF, 2012): a code of 64 bits under
// a key of 128 bits. Freestanding: boards have no libsodium.

#include <cstdint>

namespace espalier::serial {

class SipHash {
 public:
  // key: 16 bytes.
  explicit SipHash(const std::uint8_t* key);
  // Adds 8 bytes, as a little-endian number.
  void add(std::uint64_t word);
  // Adds the last bytes; returns the code of everything added.
  [[nodiscard]] std::uint64_t finish(const std::uint8_t* bytes, std::uint32_t size);

 private:
  void round();

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint32_t size_ = 0;
};

}  // namespace espalier::serial
