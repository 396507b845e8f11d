#include "collectives/verify/report/wait_cycle.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {
namespace {

std::vector<std::string> cycle_of(const topology::Topology& topology,
                                  const std::vector<OwnedProgram>& programs, std::int64_t blocks) {
  return wait_cycle(
      topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, blocks);
}

TEST(Waits, SoundSchedulesHaveNoCycle) {
  const auto topology = or_throw(topology::parse("complete:4"));
  EXPECT_TRUE(cycle_of(*topology, chain_broadcast(*topology), 9).empty());
  EXPECT_TRUE(cycle_of(*topology, chain_reduce(*topology, 4, 5), 9).empty());
}

TEST(Waits, AMessageThatNeverComesIsNoCycle) {
  const auto topology = or_throw(topology::parse("complete:4"));
  std::vector<OwnedProgram> programs = chain_broadcast(*topology);
  programs[1].actions[1].kind = ActionKind::kCopy;  // rank 1 sends nothing
  programs[1].actions[1].has_into = true;
  programs[1].actions[1].into = programs[1].actions[0].into;
  EXPECT_TRUE(cycle_of(*topology, programs, 3).empty());
  programs = chain_broadcast(*topology);
  programs[2].actions_count = programs[2].phases[0].actions = 0;  // rank 2 awaits nothing
  EXPECT_TRUE(cycle_of(*topology, programs, 3).empty());
}

// Each rank of a ring sends to the next in step 0 and awaits the one before in step `later`.
std::vector<OwnedProgram> ring(const topology::Topology& topology, std::int32_t later,
                               std::uint32_t window, std::uint16_t after) {
  const std::uint32_t p = topology.ranks();
  return by_rank(topology, Collective::kAllreduce, window, {1, later, 1, 0},
                 [&](auto& builder, auto me) {
                   builder.receive(later, (me + p - 1) % p, builder.output());
                   builder.send(0, (me + 1) % p, builder.input(), after);
                 });
}

TEST(Waits, ARingOfSendsBeforeReceives) {
  const auto topology = or_throw(topology::parse("complete:3"));
  EXPECT_TRUE(cycle_of(*topology, ring(*topology, 1, 2, 0), 1).empty());
  const std::vector<std::string> cycle = cycle_of(*topology, ring(*topology, 1, 1, 0), 1);
  ASSERT_EQ(cycle.size(), 3u);
  for (const std::string& line : cycle) {
    EXPECT_NE(line.find(" waits in step 0 for rank "), std::string::npos) << line;
    EXPECT_NE(line.find("to receive block 0 of segment 0, which rank "), std::string::npos) << line;
    EXPECT_NE(line.find("does in step 1, once its step 0 is over (window 1)"), std::string::npos)
        << line;
  }
}

TEST(Waits, TwoRanksThatEachSendWhatTheOtherWillHaveSent) {
  // Each sends in step 1 the block that it awaits in step 0, which the other sends in step 1.
  const auto topology = or_throw(topology::parse("complete:2"));
  const std::vector<OwnedProgram> programs =
      by_rank(*topology, Collective::kAllreduce, 4, {1, 1, 1, 0}, [&](auto& builder, auto me) {
        builder.receive(0, 1 - me, builder.output());
        builder.send(1, 1 - me, builder.output(), 1);
      });
  const std::vector<std::string> cycle = cycle_of(*topology, programs, 1);
  ASSERT_EQ(cycle.size(), 2u);
  EXPECT_NE(cycle[0].find("waits in step 1 for rank "), std::string::npos) << cycle[0];
  EXPECT_NE(cycle[0].find("to send block 0 of segment 0"), std::string::npos) << cycle[0];
}

TEST(Waits, TwoRanksThatEachCombineFirst) {
  const auto topology = or_throw(topology::parse("complete:2"));
  const std::vector<OwnedProgram> programs =
      by_rank(*topology, Collective::kAllreduce, 4, {1, 2, 1, 0}, [&](auto& builder, auto me) {
        builder.program.scratch_blocks = 8;
        const Operand slot = builder.slot(0, 8);
        builder.receive(0, 1 - me, slot);
        builder.combine(1, builder.output(), builder.input(), slot).after = 1;
        builder.send(2, 1 - me, builder.output(), 1);
      });
  const std::vector<std::string> cycle = cycle_of(*topology, programs, 1);
  ASSERT_EQ(cycle.size(), 2u);
  EXPECT_NE(cycle[0].find("once it has computed block 0 of segment 0 in step 1"), std::string::npos)
      << cycle[0];
}

}  // namespace
}  // namespace espalier::verify
