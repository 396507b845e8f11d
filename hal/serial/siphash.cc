#include "hal/serial/siphash.h"

#include <bit>

#include "espalier/internal/base/little_endian.h"

namespace espalier::serial {

SipHash::SipHash(const std::uint8_t* key) {
  const std::uint64_t low = load_u64(key), high = load_u64(key + 8);
  v0_ = low ^ 0x736f6d6570736575;
  v1_ = high ^ 0x646f72616e646f6d;
  v2_ = low ^ 0x6c7967656e657261;
  v3_ = high ^ 0x7465646279746573;
}

void SipHash::round() {
  v0_ += v1_;
  v2_ += v3_;
  v1_ = std::rotl(v1_, 13) ^ v0_;
  v3_ = std::rotl(v3_, 16) ^ v2_;
  v0_ = std::rotl(v0_, 32) + v3_;
  v2_ += v1_;
  v3_ = std::rotl(v3_, 21) ^ v0_;
  v1_ = std::rotl(v1_, 17) ^ v2_;
  v2_ = std::rotl(v2_, 32);
}

void SipHash::add(std::uint64_t word) {
  v3_ ^= word;
  round();
  round();
  v0_ ^= word;
  size_ += 8;
}

std::uint64_t SipHash::finish(const std::uint8_t* bytes, std::uint32_t size) {
  for (; size >= 8; size -= 8, bytes += 8) add(load_u64(bytes));
  std::uint64_t last = std::uint64_t{size_ + size} << 56;
  for (std::uint32_t k = 0; k < size; ++k) last |= std::uint64_t{bytes[k]} << 8 * k;
  add(last);
  v2_ ^= 0xff;
  for (int k = 0; k < 4; ++k) round();
  return v0_ ^ v1_ ^ v2_ ^ v3_;
}

}  // namespace espalier::serial
