// `espalier compile` writes no schedule that is invalid or too large to verify.

#include "planner/files/prove.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "planner/files/testing/changed_sum.h"
#include "tools/common/failure.h"
#include "tools/common/schedules.h"

namespace espalier::tools {
namespace {

Failure failure_of(const std::function<void(Program&)>& change) {
  try {
    std::vector<std::uint8_t> bytes = planner::changed_sum(change);
    (void)prove_compiled("s.esp", bytes, false);
  } catch (const Failure& failure) {
    return failure;
  }
  return {0, ""};
}

TEST(ProveCompiled, SaysForWhichN) {
  std::vector<std::uint8_t> bytes = planner::changed_sum([](Program&) {});
  const std::vector<std::uint8_t> before = bytes;
  EXPECT_EQ(prove_compiled("s.esp", bytes, false), "every N");
  EXPECT_EQ(bytes, before);
  bytes = planner::changed_sum([](Program& program) {
    program.blocks_count = 1;
    program.blocks[0].block_bytes = 0;
  });
  EXPECT_EQ(prove_compiled("s.esp", bytes, false), "N = 1, the only one its block table gives");
}

TEST(ProveCompiled, RefusesAWrongSchedule) {
  const Failure wrong = failure_of([](Program& program) {
    Count& bound = program.counts[program.counts_count];  // steps may share the old one
    bound = program.counts[program.bound_ref];
    ++bound.a;
    program.bound_ref = static_cast<std::uint8_t>(program.counts_count++);
  });
  EXPECT_EQ(wrong.exit_status, kNegative);
  EXPECT_EQ(wrong.line.find("'s.esp' is not written: it is not valid: steps: N = "), 0u)
      << wrong.line;
  EXPECT_NE(wrong.line.find("a lower bound of "), std::string::npos) << wrong.line;
}

TEST(ProveCompiled, RefusesATooLargeSchedule) {
  const Failure large = failure_of([](Program& program) { program.segments = 1 << 30; });
  EXPECT_EQ(large.exit_status, kBadInput);
  EXPECT_EQ(large.line.find("'s.esp' is not written: it is too large to verify: "), 0u)
      << large.line;
  EXPECT_NE(large.line.find("--no-verify writes it unverified"), std::string::npos) << large.line;
}

}  // namespace
}  // namespace espalier::tools
