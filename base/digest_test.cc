#include "base/digest.h"

#include <gtest/gtest.h>

#include "base/crc32.h"

namespace espalier {
namespace {

// Check values published with the two standards: "123456789", and FNV's own test strings.
TEST(Digests, AreTheStandardOnes) {
  EXPECT_EQ(crc32(0, "123456789", 9), 0xcbf43926u);
  EXPECT_EQ(crc32(crc32(0, "1234", 4), "56789", 5), 0xcbf43926u);
  EXPECT_EQ(crc32(0, "", 0), 0u);
  EXPECT_EQ(digest_bytes(kDigestSeed, "", 0), 0xcbf29ce484222325ull);
  EXPECT_EQ(digest_bytes(kDigestSeed, "a", 1), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(digest_bytes(kDigestSeed, "foobar", 6), 0x85944171f73967e8ull);
  EXPECT_EQ(digest_u64(kDigestSeed, 0x61), digest_bytes(kDigestSeed, "a\0\0\0\0\0\0\0", 8));
}

// Bit by bit, as IEEE 802.3 defines it.
std::uint32_t crc32_by_bits(const std::uint8_t* bytes, std::size_t size) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

// At every offset and of every length around the eight bytes that are taken at once.
TEST(Digests, OfAnyPartAreThoseOfItsBits) {
  std::uint8_t bytes[64];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * i * 37);
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t size = 0; size <= 40; ++size) {
      const std::uint32_t whole = crc32_by_bits(bytes + from, size);
      EXPECT_EQ(crc32(0, bytes + from, size), whole) << from << ' ' << size;
      EXPECT_EQ(crc32(crc32(0, bytes + from, size / 3), bytes + from + size / 3, size - size / 3),
                whole);
    }
  }
}

}  // namespace
}  // namespace espalier
