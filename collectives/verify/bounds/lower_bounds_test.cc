// Lower bounds. On fat trees whose routers have programs they are the optima of [DD96], corrected
// where replays show other numbers. On other topologies they are the bounds by ports, messages and
// cuts.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/results.h"
#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/properties/program_facts.h"
#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {
namespace {

std::int64_t best(const std::string& spec, Collective collective, PortModel model, bool neighbours,
                  std::int64_t blocks = 1, std::int64_t segment_count = 1) {
  const auto topology = or_throw(topology::parse(spec));
  Program common{};
  common.collective = collective;
  common.ranks = topology->ranks();
  common.nodes = neighbours ? topology->nodes() : 0;
  common.segments = counts_per_rank(collective) ? common.ranks : 1;
  common.port_model = model;
  std::int64_t steps = 0;
  const BoundFacts facts{true, neighbours, false, segment_count};
  for (const LowerBound& lower_bound : all_bounds(*topology, common, facts).all) {
    steps = std::max(steps, lower_bound.steps(blocks));
  }
  return steps;
}

// k, h, n = k^h.
struct TreeSize {
  std::int64_t k, h, n;
  [[nodiscard]] std::string spec() const {
    return "fattree:k=" + std::to_string(k) + ",h=" + std::to_string(h) + ",c=1";
  }
};

class FatTreeBounds : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  [[nodiscard]] static TreeSize tree() {
    TreeSize tree{GetParam().first, GetParam().second, 1};
    for (std::int64_t level = 0; level < tree.h; ++level) tree.n *= tree.k;
    return tree;
  }
  [[nodiscard]] std::int64_t single(Collective collective, std::int64_t blocks = 1) const {
    return best(tree().spec(), collective, PortModel::kSingleSend, true, blocks);
  }
  [[nodiscard]] std::int64_t multi(Collective collective, std::int64_t blocks = 1) const {
    return best(tree().spec(), collective, PortModel::kMultiport, true, blocks);
  }
};

TEST_P(FatTreeBounds, Broadcast) {
  const auto [k, h, n] = tree();
  EXPECT_EQ(single(Collective::kBroadcast), (k + 1) * h - 1);
  for (const std::int64_t packets : {1, 2, 7, 100}) {
    EXPECT_EQ(multi(Collective::kBroadcast, packets), 2 * h + packets - 1);
    EXPECT_LE(single(Collective::kBroadcast, packets), (k + 1) * h - 1 + k * (packets - 1));
  }
  // The slope of the pipelined broadcast of [DD96].
  if (h > 1) {
    EXPECT_EQ(single(Collective::kBroadcast, 200) - single(Collective::kBroadcast, 100), 100 * k);
  }
}

TEST_P(FatTreeBounds, ScatterAndGather) {
  const auto [k, h, n] = tree();
  const std::int64_t optimum = k == 2 && n > 2 ? n + 1 : n;
  EXPECT_EQ(single(Collective::kScatter), optimum);
  EXPECT_EQ(multi(Collective::kScatter), optimum);
  EXPECT_EQ(multi(Collective::kGather), optimum);
  EXPECT_EQ(best(tree().spec(), Collective::kGather, PortModel::kOnePortDuplex, true), optimum);
}

TEST_P(FatTreeBounds, Allgather) {
  const auto [k, h, n] = tree();
  EXPECT_EQ(multi(Collective::kAllgather), k == 2 && n > 2 ? n + 1 : n);
  EXPECT_EQ(single(Collective::kAllgather), h == 1 ? k * k - k + 1 : k * n + (k + 1) * (h - 2) + 1);
}

TEST_P(FatTreeBounds, AllToAll) {
  const auto [k, h, n] = tree();
  const std::int64_t at_root = n * n / k * (k - 1) + 2 * h - 1;
  const std::int64_t below = n * n * (2 * k + 1) * (k - 1) / (k * k * k) + 2 * h - 3;
  EXPECT_EQ(single(Collective::kAllToAll), h == 1 ? at_root : std::max(at_root, below));
  std::int64_t loads = 0, share = 1;
  for (std::int64_t level = 1; level <= h; ++level, share *= k) {
    loads = std::max(loads, share * (n - share) + 2 * level - 1);
  }
  EXPECT_EQ(multi(Collective::kAllToAll), loads);
}

TEST_P(FatTreeBounds, WhatRoutersCombine) {
  const auto [k, h, n] = tree();
  for (const std::int64_t packets : {1, 2, 50}) {
    EXPECT_EQ(multi(Collective::kReduce, packets), 2 * h + packets - 1);
    EXPECT_EQ(multi(Collective::kAllreduce, packets), 2 * h + packets - 1);
  }
  EXPECT_EQ(multi(Collective::kBarrier), 2 * h);
  EXPECT_EQ(multi(Collective::kReduceScatter), k == 2 && n > 2 ? n + 1 : n);
}

INSTANTIATE_TEST_SUITE_P(DD96, FatTreeBounds,
                         ::testing::Values(std::pair(2, 1), std::pair(2, 2), std::pair(2, 3),
                                           std::pair(2, 4), std::pair(2, 6), std::pair(3, 1),
                                           std::pair(3, 2), std::pair(3, 4), std::pair(4, 2),
                                           std::pair(4, 3), std::pair(5, 2), std::pair(5, 3)));

TEST(Bounds, Ports) {
  const auto of = [](Collective collective, std::int64_t blocks, std::int64_t segment_count = 1) {
    return best("complete:13", collective, PortModel::kOnePortDuplex, false, blocks, segment_count);
  };
  EXPECT_EQ(of(Collective::kBroadcast, 5), 4 + 4);
  EXPECT_EQ(of(Collective::kScan, 5), 4 + 4);
  EXPECT_EQ(of(Collective::kExscan, 1), 4);
  EXPECT_EQ(of(Collective::kScatter, 1), 12);
  EXPECT_EQ(of(Collective::kScatter, 1, 5), 4);  // log p
  EXPECT_EQ(of(Collective::kGather, 1, 2), 6);   // two parts a message
  EXPECT_EQ(of(Collective::kAllgather, 3), 36);
  EXPECT_EQ(of(Collective::kReduceScatter, 3), 36);
  EXPECT_EQ(of(Collective::kAllToAll, 2), 24);
  EXPECT_EQ(of(Collective::kBarrier, 1), 4);
}

TEST(Bounds, Messages) {
  const auto of = [](const char* spec, Collective collective, std::int64_t blocks) {
    return best(spec, collective, PortModel::kSimplex, false, blocks);
  };
  EXPECT_EQ(of("complete:8", Collective::kAllgather, 1), 8 * 7 / 4);
  EXPECT_EQ(of("complete:5", Collective::kAllToAll, 3), 5 * 4 * 3 / 2);
  EXPECT_EQ(of("complete:5", Collective::kBroadcast, 10), 4 * 10 / 2);
}

// The links between two halves of a mesh.
TEST(Bounds, CutsOfMeshes) {
  const auto of = [](const char* spec, Collective collective) {
    return best(spec, collective, PortModel::kOnePortDuplex, false);
  };
  EXPECT_EQ(of("mesh:8x8", Collective::kAllToAll), 128);
  EXPECT_EQ(of("mesh:4x6", Collective::kAllToAll), 36);
  EXPECT_EQ(of("mesh:6x4", Collective::kAllToAll), 36);
  EXPECT_EQ(of("mesh:4x4", Collective::kAllToAll), 16);
  EXPECT_EQ(of("mesh:4x4", Collective::kAllgather), 15);
  EXPECT_EQ(best("mesh:4x4", Collective::kAllgather, PortModel::kMultiport, false), 8);
  EXPECT_EQ(best("mesh:4x4", Collective::kBroadcast, PortModel::kMultiport, false, 10), 6);
}

// Every message goes one hop, so the distance of its target counts too, on any route.
TEST(Bounds, HopsOnMeshes) {
  const auto of = [](const char* spec, Collective collective, std::int64_t blocks) {
    return best(spec, collective, PortModel::kMultiport, true, blocks);
  };
  // From the corner: two links, the last block still has all the way to the other corner.
  EXPECT_EQ(of("mesh:4x4", Collective::kBroadcast, 1), 6);
  EXPECT_EQ(of("mesh:4x4", Collective::kBroadcast, 10), 5 + 5);
  EXPECT_EQ(of("mesh:8x8", Collective::kReduce, 100), 50 + 13);
  EXPECT_EQ(of("mesh:3x5", Collective::kAllreduce, 1), 6);
  EXPECT_EQ(of("mesh:3x5", Collective::kBarrier, 1), 6);
  // A corner's two links.
  EXPECT_EQ(of("mesh:4x4", Collective::kAllgather, 4), 30);
  EXPECT_EQ(of("mesh:4x4", Collective::kReduceScatter, 4), 30);
  EXPECT_EQ(of("mesh:4x4", Collective::kScatter, 4), 30);
  EXPECT_EQ(of("mesh:4x4", Collective::kGather, 1), 8);
  // Half to half; who is furthest from the middle counts once more where that says more.
  EXPECT_EQ(of("mesh:4x4", Collective::kAllToAll, 1), 16);
  EXPECT_EQ(of("mesh:8x8", Collective::kAllToAll, 10), 1280);
  // A row is a tree.
  EXPECT_EQ(of("mesh:1x7", Collective::kBroadcast, 10), 9 + 6);
  EXPECT_EQ(of("mesh:1x7", Collective::kAllToAll, 1), 12);
  // One send a step: a corner's links take turns.
  EXPECT_EQ(best("mesh:4x4", Collective::kBroadcast, PortModel::kSingleSend, true, 10), 10 + 5);
}

// The bound that a schedule may claim never exceeds the proven bounds, and usually equals them.
TEST(Bounds, ThoseToClaim) {
  for (const char* spec : {"mesh:4x4", "mesh:3x5", "mesh:1x6", "fattree:k=2,h=3,c=1",
                           "fattree:k=4,h=2,c=k", "complete:9"}) {
    const auto topology = or_throw(topology::parse(spec));
    for (int number = 1; number <= _espalier_Collective_MAX; ++number) {
      for (const PortModel model : {PortModel::kMultiport, PortModel::kSingleSend}) {
        const auto collective = static_cast<Collective>(number);
        Program common{};
        common.collective = collective;
        common.ranks = topology->ranks();
        common.nodes = topology->nodes();
        common.segments = counts_per_rank(collective) ? common.ranks : 1;
        common.port_model = model;
        const Count claim = provable_bound(*topology, common, 1, true);
        for (const std::int64_t blocks : {1, 2, 3, 4, 7, 100, 101, 4096}) {
          EXPECT_LE(count_value(claim, blocks), best(spec, collective, model, true, blocks))
              << spec << ' ' << number << ", N = " << blocks;
        }
        const std::int64_t known = best(spec, collective, model, true, 100'000);
        EXPECT_GE(count_value(claim, 100'000) + 8, known - known / 50) << spec << ' ' << number;
      }
    }
  }
}

// The loads of routes bind only schedules in which no rank passes data on: SHORTEST leads all pairs
// of opposite corners over the same links, and a rank on the other side could help.
TEST(Bounds, LoadsOfRoutes) {
  const auto topology = or_throw(topology::parse(
      "custom: name: \"square\" ranks: 4 link { from: 0 to: 1 } link { from: 1 to: 2 "
      "} link { from: 2 to: 3 } link { from: 3 to: 0 }"));
  Program common{};
  common.collective = Collective::kAllToAll;
  common.ranks = common.segments = 4;
  common.port_model = PortModel::kMultiport;
  for (const bool links : {false, true}) {
    for (const bool neighbours : {false, true}) {
      for (const bool direct : {false, true}) {
        bool found = false;
        for (const LowerBound& bound :
             all_bounds(*topology, common, {links, neighbours, direct, 1}).all) {
          found = found || bound.witness.kind == Witness::Kind::kRoutes;
        }
        EXPECT_EQ(found, links && direct && !neighbours);
      }
    }
  }
}

// The facts are those of all actions: a send from anywhere except INPUT passes data on.
TEST(Bounds, FactsOfPrograms) {
  const auto topology = or_throw(topology::parse("complete:2"));
  for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput, Buffer::kScratch}) {
    ProgramBuilder builder(*topology, Collective::kAllToAll, 0, 1);
    builder.act(ActionKind::kSend, 0).a = builder.operand(Buffer::kInput);
    Action& second = builder.act(ActionKind::kSend, 1);
    second.a = builder.operand(buffer);
    second.a.segment_count = 3;
    BoundFacts facts;
    add_facts(*topology, builder.program, facts);
    EXPECT_EQ(facts.direct, buffer == Buffer::kInput);
    EXPECT_EQ(facts.segment_count, 3);
  }
}

// Where the fabric routes, a fat tree's links are cuts too.
TEST(Bounds, CutsOfTrees) {
  EXPECT_EQ(best("fattree:k=4,h=2,c=1", Collective::kAllToAll, PortModel::kOnePortDuplex, false),
            4 * 12);
  EXPECT_EQ(best("fattree:k=4,h=2,c=k", Collective::kAllToAll, PortModel::kOnePortDuplex, false),
            15);
  EXPECT_EQ(best("fattree:k=4,h=2,c=1", Collective::kAllreduce, PortModel::kMultiport, false, 9),
            8 + 4);  // a leaf has one link; log p
}

}  // namespace
}  // namespace espalier::verify
