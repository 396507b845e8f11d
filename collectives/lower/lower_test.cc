#include "espalier/collectives/lower/lower.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/algorithms/testing/parameters.h"

namespace espalier::lower {
namespace {

CollectiveParameters parameters_for(const topology::Topology& topology) {
  return topology_parameters(topology);
}

TEST(Lower, ASmallScheduleHasNoTables) {
  const auto mesh = or_throw(topology::parse("mesh:4x4"));
  const CollectiveParameters parameters = parameters_for(*mesh);
  Report report;
  const Programs lowered =
      or_throw(lower(*mesh, parameters, PortModel::kMultiport,
                     must_generate(Collective::kBroadcast, "two-tree", parameters), report));
  ASSERT_EQ(lowered.size(), 16u);
  for (const Program& program : lowered) {
    EXPECT_STREQ(program.algorithm, "two-tree, lowered");
    EXPECT_EQ(program.table.size, 0u);
    EXPECT_EQ(program.terms_count, 0u);
    EXPECT_EQ(program.phases_count, 1u);
    EXPECT_EQ(program.phases[0].period, 3u);
    EXPECT_EQ(program.schedule_digest, lowered[0].schedule_digest);
  }
  EXPECT_EQ(describe(*mesh, report),
            "30 messages over 49 hops a block; period 3 (routed: 2), as rank 2 (row 0, column 2) "
            "-> rank 1 (row 0, column 1) carries 3\n"
            "steps 10 + 3 N (hops placed by longest way first)\n");
}

TEST(Lower, AHopByHopScheduleStaysAsItIs) {
  const auto line = or_throw(topology::parse("mesh:1x5"));
  const CollectiveParameters parameters = parameters_for(*line);
  const Programs chain = must_generate(Collective::kBroadcast, "chain", parameters);
  ASSERT_TRUE(is_hop_by_hop(*line, chain));
  Report report;
  const Programs lowered = or_throw(lower(*line, parameters, PortModel::kMultiport, chain, report));
  EXPECT_FALSE(report.changed);
  ASSERT_EQ(lowered.size(), chain.size());
  EXPECT_EQ(lowered[2].schedule_digest, chain[2].schedule_digest);
  EXPECT_EQ(describe(*line, report), "hop by hop already: every peer is a neighbour\n");
  // On a tree the routers have no programs yet, although a rank's only neighbour is a router.
  const auto tree = or_throw(topology::parse("fattree:k=5,h=1,c=1"));
  EXPECT_FALSE(
      is_hop_by_hop(*tree, must_generate(Collective::kBroadcast, "chain", parameters_for(*tree))));
}

// Looked-up tables are kept too, even when the original programs are gone.
TEST(Lower, AHopByHopScheduleKeepsItsTables) {
  const auto tree = or_throw(topology::parse("fattree:k=3,h=2,c=1"));
  const CollectiveParameters parameters = parameters_for(*tree);
  Programs lowered;
  Report report;
  std::vector<std::vector<std::uint8_t>> tables;
  {
    const Programs exchange = must_generate(Collective::kAllToAll, "pairwise", parameters);
    const Programs once =
        or_throw(lower(*tree, parameters, PortModel::kSingleSend, exchange, report));
    lowered = or_throw(lower(*tree, parameters, PortModel::kSingleSend, once, report));
    for (const Program& program : once) {
      tables.emplace_back(program.table.bytes, program.table.bytes + program.table.size);
    }
  }
  EXPECT_FALSE(report.changed);
  ASSERT_EQ(lowered.size(), tables.size());
  std::size_t entries = 0;
  for (std::size_t node = 0; node < lowered.size(); ++node) {
    const auto& table = lowered[node].table;
    EXPECT_EQ(std::vector<std::uint8_t>(table.bytes, table.bytes + table.size), tables[node]);
    entries += table.size / 2;
  }
  EXPECT_GT(entries, 0u);
}

TEST(Lower, AHopByHopScheduleOfOtherPortsIsRefused) {
  const auto tree = or_throw(topology::parse("fattree:k=3,h=1,c=1"));
  CollectiveParameters parameters = parameters_for(*tree);
  parameters.arity = 3;
  parameters.height = 1;
  const Programs programs = must_generate(Collective::kBroadcast, "leaf-multiport", parameters);
  Report report;
  const auto refused = lower(*tree, parameters, PortModel::kSingleSend, programs, report);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "'leaf-multiport' on fattree:k=3,h=1,c=1 cannot be lowered: every peer is a neighbour "
            "already, and its nodes send over several links in a step; expected ports multiport, "
            "not single-send");
  const auto lowered = or_throw(lower(*tree, parameters, PortModel::kMultiport, programs, report));
  EXPECT_EQ(lowered.size(), programs.size());
}

TEST(Lower, OtherPortsAndWindowsAreOtherSchedules) {
  const auto mesh = or_throw(topology::parse("mesh:3x3"));
  CollectiveParameters parameters = parameters_for(*mesh);
  const Programs ring = must_generate(Collective::kAllgather, "ring", parameters);
  Report report;
  const Programs wide = or_throw(lower(*mesh, parameters, PortModel::kMultiport, ring, report));
  const Programs single = or_throw(lower(*mesh, parameters, PortModel::kSingleSend, ring, report));
  EXPECT_EQ(report.from, report.to) << "a node is the reason";
  parameters.window = 2;
  const Programs narrow = or_throw(lower(*mesh, parameters, PortModel::kMultiport, ring, report));
  EXPECT_EQ(narrow[0].window, 2u);
  EXPECT_NE(wide[0].schedule_digest, narrow[0].schedule_digest);
  EXPECT_NE(wide[0].schedule_digest, single[0].schedule_digest);
}

TEST(Lower, ALongNameIsCut) {
  const auto mesh = or_throw(topology::parse("mesh:3x3"));
  const CollectiveParameters parameters = parameters_for(*mesh);
  Report report;
  const Programs lowered = or_throw(
      lower(*mesh, parameters, PortModel::kMultiport,
            must_generate(Collective::kBroadcast, "two-tree-simplex", parameters), report));
  EXPECT_STREQ(lowered[0].algorithm, "two-tree-simpl, lowered");
}

TEST(Lower, RefusesInOneLine) {
  const auto mesh = or_throw(topology::parse("mesh:3x3"));
  const CollectiveParameters parameters = parameters_for(*mesh);
  Programs chain = must_generate(Collective::kBroadcast, "chain", parameters);
  chain[3].actions_count = 0;
  chain[3].phases[0].actions = 0;
  Report report;
  const auto refused = lower(*mesh, parameters, PortModel::kMultiport, chain, report);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "'chain' on mesh:3x3 cannot be lowered: rank 4, step 3: nothing like it is sent; verify "
      "the routed schedule first");
}

}  // namespace
}  // namespace espalier::lower
