#include "base/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace espalier {
namespace {

TEST(Counted, HasTheNounOfItsNumber) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "rank"), "2 ranks");
  EXPECT_EQ(counted(1, "process"), "1 process");
  EXPECT_EQ(counted(3, "process"), "3 processes");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "capacity"), "2 capacities");
  EXPECT_EQ(counted(-1, "step"), "-1 steps");
  EXPECT_EQ(counted("2N+1", "step"), "2N+1 steps");
  EXPECT_EQ(counted("1", "step"), "1 step");
  EXPECT_EQ(counted(UINT64_MAX, "more open file"), "18446744073709551615 more open files");
}

TEST(Counted, HasTheArticleOfItsNoun) {
  for (const char* name : {"all-to-all", "allgather", "allreduce", "exscan"}) {
    EXPECT_EQ(with_article(name), std::string("an ") + name);
  }
  for (const char* name : {"barrier", "broadcast", "gather", "reduce", "reduce-scatter", "scan"}) {
    EXPECT_EQ(with_article(name), std::string("a ") + name);
  }
}

}  // namespace
}  // namespace espalier
