#include <gtest/gtest.h>

#include "firmware/image/testing/sha256_vectors.h"

namespace espalier {
namespace {

// tests/bare/sha256.cc runs the same test on boards.
TEST(Sha256, GivesTheStandardsExamples) { EXPECT_TRUE(sha256_is_good()); }

}  // namespace
}  // namespace espalier
