// A topology is a tree if its links go both ways and form no cycle, regardless of their number.

#include "collectives/verify/bounds/tree.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"

namespace espalier::verify {
namespace {

std::optional<Tree> tree_of(const std::string& spec) {
  const auto topology = or_throw(topology::parse(spec));
  Program common{};
  common.ranks = topology->ranks();
  return Tree::read(*topology, common);
}

TEST(Tree, OfAnyShape) {
  EXPECT_TRUE(tree_of("fattree:k=2,h=2,c=1"));
  EXPECT_TRUE(tree_of("mesh:1x5"));
  const auto uneven = tree_of(
      "custom:name:\"t\" ranks:3 routers:2 link{from:0 to:3} link{from:1 to:3} link{from:3 to:4} "
      "link{from:2 to:4}");
  ASSERT_TRUE(uneven);
  EXPECT_EQ(uneven->edges().size(), 8u);
  for (const Tree::Edge& edge : uneven->edges()) {
    if (edge.from != 4 || edge.to != 3) continue;
    EXPECT_EQ(edge.beyond.side.ranks, 2);
    EXPECT_EQ(edge.beyond.depth, 1);
  }
}

TEST(Tree, CyclesAreNone) {
  EXPECT_FALSE(tree_of("mesh:2x2"));
  EXPECT_FALSE(tree_of("complete:3"));
  // Six links between four nodes, as a tree has, but two pairs that one-way links join to a ring.
  EXPECT_FALSE(
      tree_of("custom:name:\"r\" ranks:4 link{from:0 to:3} link{from:1 to:2} link{from:3 to:2 "
              "one_way:true} "
              "link{from:2 to:0 one_way:true}"));
}

}  // namespace
}  // namespace espalier::verify
