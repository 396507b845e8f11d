#include "collectives/schedule/expand.h"

#include <gtest/gtest.h>

#include <vector>

#include "collectives/schedule/testing/sample_program.h"

namespace espalier {
namespace {

std::vector<std::pair<std::int64_t, std::int64_t>> steps_and_blocks(const Program& program,
                                                                    std::int64_t blocks,
                                                                    std::uint32_t action) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const Instance& instance : expand(program, blocks)) {
    if (instance.action != action) continue;
    const bool send = instance.kind == ActionKind::kSend;
    found.emplace_back(instance.step, send ? instance.a.block : instance.into.block);
  }
  return found;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Receive and combine: step N+i on block i. Phase 0 has only N+1 steps, so only i = 0 exists.
TEST(Expand, StopsAtThePhasesLastStep) {
  EXPECT_EQ(steps_and_blocks(sample_program(), 3, 0), (Pairs{{3, 0}}));
}

TEST(Expand, StopsAtTheInstancesAndSkipsBlocksThatAreNone) {
  OwnedProgram program = sample_program();
  program.counts[0] = {2, 0, 0, 0, 0};  // t0 = instances = 2
  EXPECT_EQ(steps_and_blocks(program, 4, 0), (Pairs{{2, 0}, {3, 1}}));
  program.indices[2].base = -1;  // block i-1
  EXPECT_EQ(steps_and_blocks(program, 4, 0), (Pairs{{3, 0}}));
}

TEST(Expand, ClampsToTheLastBlock) {
  OwnedProgram program = sample_program();
  program.actions[2].t0_ref = 3;  // -1: instance 0 does not exist
  program.counts[0] = {9, 0, 0, 0, 0};
  EXPECT_EQ(steps_and_blocks(program, 3, 2), (Pairs{{0, 1}, {1, 2}, {2, 2}, {3, 2}}));
  program.actions[2].clamp = false;
  EXPECT_EQ(steps_and_blocks(program, 3, 2), (Pairs{{0, 1}, {1, 2}}));
}

// Phase 1 begins after the N+1 steps of phase 0. It has ceil((N+1)/2) steps and period 2.
TEST(Expand, CountsStepsThroughThePhases) {
  OwnedProgram program = sample_program();
  program.actions[3].t0_ref = 2;  // ceil((N+1)/2) = 2 for N = 3: no step left
  EXPECT_EQ(steps_and_blocks(program, 3, 3), Pairs{});
  program.counts[3] = {1, 0, 0, 0, 0};
  program.actions[3].t0_ref = 3;
  EXPECT_EQ(steps_and_blocks(program, 3, 3), (Pairs{{5, 0}}));
  EXPECT_EQ(steps_and_blocks(program, 6, 3), (Pairs{{8, 0}, {10, 1}}));
}

TEST(Expand, OrdersByStepThenAction) {
  OwnedProgram program = sample_program();
  program.counts[0] = {1, 0, 0, 0, 0};
  program.counts[4] = {9, 0, 0, 0, 0};
  program.actions[2].t0_ref = 0;
  const std::vector<Instance> all = expand(program, 5);
  ASSERT_GE(all.size(), 3u);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_TRUE(all[i - 1].step < all[i].step ||
                (all[i - 1].step == all[i].step && all[i - 1].action < all[i].action));
  }
}

// Pace floor(i/2): two instances per step.
TEST(Expand, StepsByThePace) {
  OwnedProgram program = sample_program();
  program.counts[0] = {5, 0, 0, 0, 0};  // instances
  program.counts[3] = {1, 0, 0, 0, 0};  // t0
  program.indices_count = 7;
  program.indices[6] = {0, 1, 0, 2, 0, 0, 0};
  program.actions[2].t0_ref = 3;
  program.actions[2].pace_ref = 6;
  ASSERT_EQ(check_program(program), Status::kOk);
  EXPECT_EQ(steps_and_blocks(program, 9, 2), (Pairs{{1, 0}, {1, 1}, {2, 2}, {2, 3}, {3, 4}}));
}

// Pace 2i + 1, by a table: a copy that skips steps.
TEST(Expand, CopiesStepByThePace) {
  static constexpr std::uint8_t kEntries[] = {1, 0, 3, 0, 5, 0};
  OwnedProgram program = sample_program_with_table();
  program.table = {kEntries, sizeof kEntries};
  program.counts[0] = {3, 0, 0, 0, 0};  // instances
  program.counts[2] = {9, 0, 0, 0, 0};  // steps of phase 1
  program.counts[3] = {1, 0, 0, 0, 0};  // t0
  program.indices_count = 7;
  program.indices[6].terms = 1;
  program.terms[0] = {1, 1, 0, 0, 3, 0, 0, 1};
  program.actions[3].into.slot_ref = 3;
  program.actions[3].pace_ref = 6;
  ASSERT_EQ(check_program(program), Status::kOk);
  // After the N + 1 steps of phase 0: 1 + 2 * pace, while below 9.
  EXPECT_EQ(steps_and_blocks(program, 9, 3), (Pairs{{13, 0}, {17, 1}}));
}

TEST(Expand, FillsLinksAndPlaces) {
  const std::vector<Instance> all = expand(sample_program(), 3);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].kind, ActionKind::kReceive);
  EXPECT_EQ(all[0].peer, 0);
  EXPECT_EQ(all[0].into.buffer, Buffer::kScratch);
  EXPECT_EQ(all[0].a.buffer, Buffer::kNone);
  EXPECT_EQ(all[0].into.segment_count, 1u);
}

TEST(Expand, KeepsRuns) {
  OwnedProgram program = sample_program();
  program.actions[0].into.segment_count = 3;
  const std::vector<Instance> all = expand(program, 1);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].into.segment_count, 3u);
}

}  // namespace
}  // namespace espalier
