#include "collectives/simulation/deadlines.h"

#include <gtest/gtest.h>

#include <random>

#include "hal/sim/containers.h"

namespace espalier::sim {
namespace {

TEST(Deadlines, LeastIsTheFirstOfTheLeast) {
  std::mt19937 random(1);
  for (const std::size_t nodes : {1u, 2u, 63u, 64u, 65u, 4096u, 4097u}) {
    Deadlines deadlines(nodes);
    std::vector<std::uint64_t> plain(nodes, Deadlines::kNone);
    EXPECT_EQ(deadlines.least().value, Deadlines::kNone);
    for (int round = 0; round < 300; ++round) {
      for (int some = 0; some < 5; ++some) {
        const std::size_t node = random() % nodes;
        plain[node] = random() % 8 == 0 ? Deadlines::kNone : random() % 50;
        deadlines.set(node, plain[node]);
      }
      const auto least = std::min_element(plain.begin(), plain.end());
      EXPECT_LE(deadlines.bound(), *least);
      EXPECT_EQ(deadlines.least().value, *least);
      EXPECT_EQ(deadlines.least().node, least - plain.begin());
      EXPECT_EQ(deadlines.bound(), *least);
    }
  }
}

TEST(Deadlines, OfNoNodes) { EXPECT_EQ(Deadlines(0).least().value, Deadlines::kNone); }

TEST(NodeOrder, SortsShortAndLongLists) {
  std::mt19937 random(1);
  NodeOrder order;
  for (const std::uint32_t nodes : {1u, 64u, 1000u}) {
    for (std::size_t length = 0; length < 3 * nodes; length += 1 + length / 4) {
      std::vector<std::uint32_t> list(length);
      for (std::uint32_t& node : list) node = static_cast<std::uint32_t>(random() % nodes);
      std::vector<std::uint32_t> expected = list;
      std::sort(expected.begin(), expected.end());
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      order.sort(list, nodes);
      EXPECT_EQ(list, expected);
    }
  }
}

}  // namespace
}  // namespace espalier::sim
