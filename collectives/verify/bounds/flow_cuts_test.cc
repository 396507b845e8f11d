// The cuts that flows find, against all cuts of small graphs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "base/testing/results.h"
#include "collectives/verify/bounds/all_bounds.h"

namespace espalier::verify {
namespace {

// Blocks and lanes of a cut; compared by blocks per lane.
struct Rate {
  std::int64_t blocks = 0, lanes = 1;
  [[nodiscard]] bool operator<(const Rate& other) const {
    return blocks * other.lanes < other.blocks * lanes;
  }
};

// The rate of the cut from the nodes `inside` to the others. `by_senders`: each node from which
// links cross counts for one lane.
Rate rate_of(const topology::Topology& topology, const Program& common,
             const std::vector<bool>& inside, bool by_senders) {
  Side from, to;
  for (std::uint32_t node = 0; node < common.ranks; ++node) {
    (inside[node] ? from : to).add(common, node);
  }
  std::int64_t lanes = 0;
  std::vector<bool> counted(topology.nodes(), false);
  for (const topology::Link& link : topology.links()) {
    if (!inside[link.from] || inside[link.to] || (by_senders && counted[link.from])) continue;
    counted[link.from] = true;
    lanes += by_senders ? 1 : link.capacity;
  }
  return {lanes == 0 ? 0 : crossing(common, from, to), std::max<std::int64_t>(1, lanes)};
}

std::string random_graph(std::mt19937& dice) {
  const std::uint32_t ranks = 3 + dice() % 3, routers = dice() % 3, nodes = ranks + routers;
  std::string spec = "custom: name: \"random\" ranks: " + std::to_string(ranks) +
                     " routers: " + std::to_string(routers);
  for (std::uint32_t from = 0; from < nodes; ++from) {
    for (std::uint32_t to = 0; to < nodes; ++to) {
      const bool on_ring = to == (from + 1) % nodes;  // so that all nodes reach each other
      if (from == to || (!on_ring && dice() % 3 != 0)) continue;
      spec += " link { from: " + std::to_string(from) + " to: " + std::to_string(to) +
              " capacity: " + std::to_string(1 + dice() % 3) + " one_way: true }";
    }
  }
  return spec;
}

TEST(FlowCuts, HaveTheGreatestRate) {
  std::mt19937 dice(7);
  for (int graph = 0; graph < 100; ++graph) {
    const auto topology = or_throw(topology::parse(random_graph(dice)));
    SCOPED_TRACE(topology->spec());
    for (int number = 1; number <= _espalier_Collective_MAX; ++number) {
      const auto collective = static_cast<Collective>(number);
      if (collective == Collective::kAllToAll) continue;  // its cuts are not the greatest
      Program common{};
      common.collective = collective;
      common.ranks = topology->ranks();
      common.segments = counts_per_rank(collective) ? common.ranks : 1;
      common.root = has_root(collective) ? dice() % common.ranks : 0;
      const bool by_senders = dice() % 2 == 0;
      Rate greatest, found;
      for (std::uint32_t set = 0; set < 1u << topology->nodes(); ++set) {
        std::vector<bool> inside(topology->nodes());
        for (std::uint32_t node = 0; node < inside.size(); ++node) {
          inside[node] = (set >> node & 1) != 0;
        }
        greatest = std::max(greatest, rate_of(*topology, common, inside, by_senders));
      }
      const FlowCuts flows = flow_cuts(*topology, common, by_senders);
      EXPECT_TRUE(flows.complete);
      for (const std::vector<bool>& inside : flows.insides) {
        found = std::max(found, rate_of(*topology, common, inside, by_senders));
      }
      EXPECT_FALSE(found < greatest)
          << "collective " << number << (by_senders ? ", by senders: " : ": ") << found.blocks
          << '/' << found.lanes << " found, " << greatest.blocks << '/' << greatest.lanes;
    }
  }
}

TEST(FlowCuts, EndWithinTheirWork) {
  const auto topology = or_throw(topology::parse("mesh:8x8"));
  Program common{};
  common.collective = Collective::kAllgather;
  common.ranks = common.segments = 64;
  EXPECT_TRUE(flow_cuts(*topology, common, false).complete);
  const FlowCuts few = flow_cuts(*topology, common, false, 1000);
  EXPECT_FALSE(few.complete);
  EXPECT_LE(few.insides.size(), 2u);
}

}  // namespace
}  // namespace espalier::verify
