// Nodes that hold several schedules run them in turn, over one set of links.

#include <gtest/gtest.h>

#include <cstring>

#include "base/testing/results.h"
#include "planner/workload/reference.h"
#include "tests/run/programs/scheduled_nodes.h"
#include "tools/cluster/link_tables.h"

namespace espalier::cluster {
namespace {

constexpr std::uint32_t kRanks = 5;
constexpr std::uint64_t kMaxBytes = 300'000;

class ClusterTest : public testing::TestWithParam<const char*>, protected ScheduledNodes {
 protected:
  void SetUp() override { prepare(kRanks, GetParam()); }

  void run(std::uint32_t program, const reference::ReferenceInput& what, std::uint32_t repetition) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const SharedMemory& memory = cluster_.members()[rank].memory;
      if (reference::has_input(what, rank)) {
        reference::fill_input(what, rank, repetition, memory.input());
      }
      std::memset(memory.output(), 0x5a, kMaxBytes);
    }
    control::RunRequest order{.program = program,
                              .op = what.op.op,
                              .type = what.op.type,
                              .count = reference::count(what)};
    ASSERT_TRUE(or_throw(cluster_.run(order))) << cluster_.describe(0);
    reference::Results results(what, repetition);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (!reference::has_result(what, rank)) continue;
      const std::uint8_t* output = cluster_.members()[rank].memory.output();
      EXPECT_EQ(std::memcmp(output, results.of(rank).data(), what.bytes), 0) << "rank " << rank;
      for (std::uint64_t i = what.bytes; i < kMaxBytes; ++i) {
        ASSERT_EQ(output[i], 0x5a) << "rank " << rank << " wrote past its message, byte " << i;
      }
    }
  }
};

TEST_P(ClusterTest, RunsSeveralSchedulesInTurn) {
  add_schedule(Collective::kBroadcast, "two-tree", 1);
  add_schedule(Collective::kAllreduce, "chain", 0);
  add_schedule(Collective::kReduce, "two-tree", 4);
  or_throw(cluster_.start(options_));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    or_throw(cluster_.give_memory(rank, kMaxBytes, kMaxBytes));
  }
  or_throw(cluster_.await_memory());
  reference::ReferenceInput cases[3];
  cases[0] = {Collective::kBroadcast, kRanks, 1, {}, 0};
  Operator sum{.op = Op::kSum, .type = Type::kF32};
  Operator most{.op = Op::kMax, .type = Type::kI64};
  cases[1] = {Collective::kAllreduce, kRanks, 0, sum, 0};
  cases[2] = {Collective::kReduce, kRanks, 4, most, 0};
  std::uint32_t repetition = 0;
  for (const std::uint64_t bytes : {8ull, 0ull, 4096ull, 200'000ull, 4104ull}) {
    for (std::uint32_t program = 0; program < 3; ++program) {
      cases[program].bytes = bytes;
      SCOPED_TRACE(std::to_string(bytes) + " bytes by program " + std::to_string(program));
      run(program, cases[program], repetition++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ClusterTest, ARunThatCannotBeIsRefusedEverywhere) {
  add_schedule(Collective::kAllreduce, "two-tree", 0);
  or_throw(cluster_.start(options_));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    or_throw(cluster_.give_memory(rank, 4096, 4096));
  }
  or_throw(cluster_.await_memory());
  control::RunRequest order{.op = Op::kSum, .type = Type::kF32};
  const auto refused = [&](Status status) {
    EXPECT_FALSE(or_throw(cluster_.run(order)));
    for (std::uint32_t node = 0; node < kRanks; ++node) {
      EXPECT_EQ(cluster_.members()[node].report.status, status) << cluster_.describe(node);
    }
  };
  order.count = 1025;  // does not fit the memory
  refused(Status::kBadArgument);
  order.count = 8;
  order.program = 1;
  refused(Status::kBadArgument);
  order.program = 0;
  order.op = Op::kAnd;
  refused(Status::kBadOperator);
  order.op = Op::kSum;
  EXPECT_TRUE(or_throw(cluster_.run(order))) << "nothing of it was started";
}

// The chain's ranks 1 and 2 are at opposite ends of a mesh of 2 x 2. `espalier run` refuses that
// before it starts anything; a node that gets such a program has no link to that peer.
TEST_P(ClusterTest, AHopByHopNodeHasNoEndpointForAStranger) {
  options_.topology = "mesh:2x2";
  options_.nodes = 4;
  options_.deadline_ms = 500;
  for (const auto& table : tools::link_tables(*or_throw(topology::parse("mesh:2x2")), 4)) {
    options_.links.push_back(tools::to_text(table));
  }
  EXPECT_EQ(options_.links[1], "0:1:1,3:1:1");
  add_schedule(Collective::kBroadcast, "chain", 0);
  or_throw(cluster_.start(options_));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const control::Hello& hello = cluster_.members()[rank].hello;
    EXPECT_EQ(hello.lanes, 2u);
    EXPECT_NE(hello.peers[0], 3 - rank);
    EXPECT_NE(hello.peers[1], 3 - rank);
    or_throw(cluster_.give_memory(rank, 4096, 4096));
  }
  or_throw(cluster_.await_memory());
  control::RunRequest order{.count = 8};
  EXPECT_FALSE(or_throw(cluster_.run(order)));
  EXPECT_EQ(cluster_.members()[0].report.status, Status::kOk) << cluster_.describe(0);
  EXPECT_EQ(cluster_.members()[1].report.status, Status::kNoSuchPeer) << cluster_.describe(1);
  EXPECT_EQ(cluster_.members()[2].report.status, Status::kNoSuchPeer) << cluster_.describe(2);
  EXPECT_EQ(cluster_.members()[3].report.status, Status::kStalled) << cluster_.describe(3);
  const auto back = cluster_.come_back(3);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message, "node 3 has not failed");
}

INSTANTIATE_TEST_SUITE_P(Providers, ClusterTest, testing::Values("tcp", "mem"),
                         [](const auto& about) { return std::string(about.param); });

}  // namespace
}  // namespace espalier::cluster
