#include "espalier/base/digest.h"

#include <gtest/gtest.h>

#include "espalier/base/crc32.h"

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

}  // namespace
}  // namespace espalier
