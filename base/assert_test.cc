#include "espalier/internal/base/assert.h"

#include <gtest/gtest.h>

#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/link_set.h"

namespace espalier {
namespace {

#ifdef ESPALIER_ASSERTIONS

TEST(AssertDeathTest, NamesTheConditionAndItsPlace) {
  const int steps = 3;
  ESPALIER_ASSERT(steps == 3);
  EXPECT_DEATH(ESPALIER_ASSERT(steps > 3),
               "assert_test.cc:.*programming error: expected steps > 3");
}

TEST(AssertDeathTest, DivisorsArePositive) {
  volatile std::int64_t zero = 0;
  EXPECT_DEATH((void)floor_div(7, zero), "expected d > 0");
  EXPECT_DEATH((void)floor_mod(7, -1 + zero), "expected d > 0");
  EXPECT_DEATH((void)ceil_div(7, zero), "expected d > 0");
}

TEST(AssertDeathTest, LinksAreInRange) {
  LinkSet set;
  EXPECT_DEATH(set.insert(kMaxLinks), "expected link < kMaxLinks");
  EXPECT_DEATH((void)set.contains(LinkSet::kNone), "expected link < kMaxLinks");
  EXPECT_DEATH((void)LinkSet::first(kMaxLinks + 1), "expected count <= kMaxLinks");
}

#else

TEST(Assert, IsCompiledOut) {
  int evaluated = 0;
  ESPALIER_ASSERT(++evaluated == 2);
  EXPECT_EQ(evaluated, 0);
}

#endif

}  // namespace
}  // namespace espalier
