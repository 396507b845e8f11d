// Ten schedules broken by hand: each is refused, for the expected property and with the expected
// words.

#include "collectives/verify/testing/broken.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace espalier::verify {
namespace {

TEST(BrokenSchedules, TheSoundOnesAreValid) {
  for (const Broken& one : broken_schedules()) {
    const Verdict verdict = verdict_of(*one.topology, one.sound);
    EXPECT_TRUE(verdict.valid) << one.name << ": " << verdict.counterexample.message;
  }
}

TEST(BrokenSchedules, EachIsRefusedByNameOfWhatIsWrong) {
  const std::vector<Broken> all = broken_schedules();
  ASSERT_EQ(all.size(), 10u);
  for (const Broken& one : all) {
    const Verdict verdict = verdict_of(*one.topology, one.broken);
    ASSERT_FALSE(verdict.valid) << one.name;
    const std::string& line = verdict.counterexample.message;
    std::printf("%s: %s\n", one.name.c_str(), line.c_str());
    EXPECT_STREQ(property_name(verdict.counterexample.property), property_name(one.property))
        << one.name;
    for (const std::string& word : one.words) {
      EXPECT_NE(line.find(word), std::string::npos)
          << one.name << ": no '" << word << "' in: " << line;
    }
    EXPECT_EQ(line.find('\n'), std::string::npos) << one.name;
  }
}

// The schedule that is wrong for N = 8 is correct for every smaller N.
TEST(BrokenSchedules, TheEighthBlockIsTheFirstToFail) {
  const std::vector<Broken> all = broken_schedules();
  const Verdict verdict = verdict_of(*all.back().topology, all.back().broken, {.max_blocks = 7});
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
}

}  // namespace
}  // namespace espalier::verify
