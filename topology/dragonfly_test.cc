// Routes of dragonflies.

#include <map>
#include <utility>

#include "topology/testing/must_parse.h"

namespace espalier::topology {
namespace {

// 5 groups of 2 routers of 2 ranks: the group 1 or 2 after a group at its router 0, the group 3 or
// 4 after it at its router 1.
TEST(Dragonfly, RoutesTakeOneGlobalLink) {
  const auto dragonfly = must_parse("dragonfly:5x2x2");
  EXPECT_EQ(dragonfly->ranks(), 20u);
  expect_paths(
      *dragonfly,
      {{0, 20, 1}, {0, 20, 21, 3}, {0, 20, 23, 7}, {2, 21, 20, 23, 22, 5}, {0, 20, 21, 28, 17}});
  EXPECT_EQ(dragonfly->node_name(7), "rank 7 (group 1, router 1)");
  EXPECT_EQ(dragonfly->node_name(28), "router 28 (group 4, router 0)");
  for (const char* spec : {"dragonfly:5x2x2", "dragonfly:6x4x1", "dragonfly:2x3x2"}) {
    const auto topology = must_parse(spec);
    const std::uint32_t ranks = topology->ranks();
    const auto group_of = [&](std::uint32_t node) {
      const std::string name = topology->node_name(node);
      return name.substr(name.find("group"), name.find(',') - name.find("group"));
    };
    std::map<std::pair<std::string, std::string>, int> between;
    for (const Link& link : topology->links()) {
      if (group_of(link.from) != group_of(link.to)) {
        ++between[{group_of(link.from), group_of(link.to)}];
      }
    }
    for (const auto& [groups, links] : between) EXPECT_EQ(links, 1) << spec;
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint32_t to = 0; to < ranks; ++to) {
        EXPECT_LE(topology->route(from, to).size(), 6u) << spec;
      }
    }
  }
}

}  // namespace
}  // namespace espalier::topology
