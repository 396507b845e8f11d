#include <gtest/gtest.h>

#include "firmware/image/sha256_vectors.h"

namespace espalier {
namespace {

// tests/instructions does the same with bare metal's library.
TEST(Sha256, GivesTheStandardsExamples) { EXPECT_TRUE(sha256_is_good()); }

}  // namespace
}  // namespace espalier
