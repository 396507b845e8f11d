#include "tests/papers/inventory.h"

#include <gtest/gtest.h>

namespace espalier::papers {
namespace {

bool finds(const Chapter& chapter, const std::string& words) {
  for (const std::string& fault : faults(chapter)) {
    if (fault.find(words) != std::string::npos) return true;
  }
  return false;
}

Chapter with(const Item& item) { return {"[DD96]", "", {item}, {}}; }

TEST(Inventory, FindsASubjectWithoutRows) {
  EXPECT_TRUE(finds({"[DD96]", "", {}, {}}, "Theorem 8 has neither a row nor a reason"));
  const Item item{"Theorem 8", "steps", kNothing, "1", "", "1", kClosed};
  EXPECT_FALSE(finds(with(item), "Theorem 8 "));
}

TEST(Inventory, FindsARowOfNoSubject) {
  const Item item{"Theorem 99", "steps", kNothing, "1", "", "1", kClosed};
  EXPECT_TRUE(finds(with(item), "Theorem 99, steps: of no subject"));
}

TEST(Inventory, FindsAMethodThatNoTableCounts) {
  const Item item{"Theorem 8", "steps", kNothing, "1", "", "1", "a guess"};
  EXPECT_TRUE(finds(with(item), "unknown method 'a guess'"));
}

TEST(Inventory, FindsWhatIsNotComparedWithoutAReason) {
  const Item item{"Theorem 8", "steps", kNothing, "1", "", "1", "-"};
  EXPECT_TRUE(finds(with(item), "not compared, without a reason"));
}

TEST(Inventory, CountsRowsByKind) {
  const Item item{"Theorem 8", "steps", kNothing, "1", "", "1", kProven};
  EXPECT_NE(subject_lines(with(item)).find("at least\",,1,0,0,0,0,\n"), std::string::npos);
}

}  // namespace
}  // namespace espalier::papers
