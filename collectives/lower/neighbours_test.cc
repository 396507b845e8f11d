#include "collectives/lower/neighbours.h"

#include <gtest/gtest.h>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier::lower {
namespace {

Programs generate(const topology::Topology& topology, Collective collective, const char* name) {
  const Algorithm* algorithm = find_algorithm(collective, name);
  EXPECT_NE(algorithm, nullptr);
  const topology::Shape shape = topology.shape();
  Group group;
  group.ranks = topology.ranks();
  group.arity = shape.arity;
  group.height = shape.height;
  group.capacities = shape.capacities.data();
  Programs programs(algorithm_nodes(*algorithm, group));
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    EXPECT_EQ(algorithm->generate(group, node, programs[node]), Status::kOk);
  }
  return programs;
}

TEST(Neighbours, AChainAlongARowHasNoStranger) {
  const auto topology = topology::parse("mesh:1x6").value();
  EXPECT_FALSE(find_stranger(*topology, generate(*topology, Collective::kBroadcast, "chain")));
}

TEST(Neighbours, AChainOverTwoRowsJumpsAtTheirEnds) {
  const auto topology = topology::parse("mesh:2x3").value();
  const auto stranger =
      find_stranger(*topology, generate(*topology, Collective::kBroadcast, "chain"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 2u);
  EXPECT_EQ(stranger->peer, 3u);
}

TEST(Neighbours, PeersByARuleAreNamedToo) {
  const auto topology = topology::parse("mesh:2x2").value();
  const auto stranger =
      find_stranger(*topology, generate(*topology, Collective::kAllToAll, "pairwise"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 0u);
  EXPECT_EQ(stranger->peer, 3u);
  const auto complete = topology::parse("complete:4").value();
  EXPECT_FALSE(find_stranger(*complete, generate(*complete, Collective::kAllToAll, "pairwise")));
}

TEST(Neighbours, LeafCommunicationsKeepToTheirTree) {
  const auto topology = topology::parse("fattree:k=4,h=2,c=k").value();
  const Programs programs = generate(*topology, Collective::kAllgather, "leaf");
  EXPECT_EQ(programs.size(), 21u);
  EXPECT_FALSE(find_stranger(*topology, programs));
}

TEST(Neighbours, NodesThatAreNotThereAreStrangers) {
  const auto small = topology::parse("mesh:1x3").value();
  const auto large = topology::parse("mesh:1x6").value();
  const auto stranger = find_stranger(*small, generate(*large, Collective::kBroadcast, "chain"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 2u);
  EXPECT_EQ(stranger->peer, 3u);
}

}  // namespace
}  // namespace espalier::lower
