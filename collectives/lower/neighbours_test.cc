#include "collectives/lower/neighbours.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"

namespace espalier::lower {
namespace {

Programs generate(const topology::Topology& topology, Collective collective, const char* name) {
  const topology::Shape shape = topology.shape();
  return must_generate(collective, name,
                       {.ranks = topology.ranks(),
                        .arity = shape.arity,
                        .height = shape.height,
                        .capacities = shape.capacities.data()});
}

TEST(Neighbours, AChainAlongARowHasNoStranger) {
  const auto topology = or_throw(topology::parse("mesh:1x6"));
  EXPECT_FALSE(find_stranger(*topology, generate(*topology, Collective::kBroadcast, "chain")));
}

TEST(Neighbours, AChainOverTwoRowsJumpsAtTheirEnds) {
  const auto topology = or_throw(topology::parse("mesh:2x3"));
  const auto stranger =
      find_stranger(*topology, generate(*topology, Collective::kBroadcast, "chain"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 2u);
  EXPECT_EQ(stranger->peer, 3u);
}

TEST(Neighbours, PeersByARuleAreNamedToo) {
  const auto topology = or_throw(topology::parse("mesh:2x2"));
  const auto stranger =
      find_stranger(*topology, generate(*topology, Collective::kAllToAll, "pairwise"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 0u);
  EXPECT_EQ(stranger->peer, 3u);
  const auto complete = or_throw(topology::parse("complete:4"));
  EXPECT_FALSE(find_stranger(*complete, generate(*complete, Collective::kAllToAll, "pairwise")));
}

TEST(Neighbours, LinksOfOneDirectionCarryNothingBack) {
  const auto ring = or_throw(topology::parse(
      "custom:name: \"ring\" ranks: 3 link { from: 0 to: 1 one_way: true } link { from: 1 to: 2 "
      "one_way: true } link { from: 2 to: 0 one_way: true }"));
  EXPECT_FALSE(find_stranger(*ring, generate(*ring, Collective::kAllgather, "ring")));
  // Rank 0 sends to rank 2, from which a link leads to it.
  const auto stranger = find_stranger(*ring, generate(*ring, Collective::kAllToAll, "pairwise"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 0u);
  EXPECT_EQ(stranger->peer, 2u);
}

TEST(Neighbours, LeafCommunicationsKeepToTheirTree) {
  const auto topology = or_throw(topology::parse("fattree:k=4,h=2,c=k"));
  const Programs programs = generate(*topology, Collective::kAllgather, "leaf");
  EXPECT_EQ(programs.size(), 21u);
  EXPECT_FALSE(find_stranger(*topology, programs));
}

TEST(Neighbours, NodesThatAreNotThereAreStrangers) {
  const auto small = or_throw(topology::parse("mesh:1x3"));
  const auto large = or_throw(topology::parse("mesh:1x6"));
  const auto stranger = find_stranger(*small, generate(*large, Collective::kBroadcast, "chain"));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->node, 2u);
  EXPECT_EQ(stranger->peer, 3u);
}

}  // namespace
}  // namespace espalier::lower
