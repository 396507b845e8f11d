// Blocks over real links: cut-through and store and forward, lanes, waiting, lock step.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/results.h"
#include "hal/sim/watcher.h"

namespace espalier::sim {
namespace {

using Nodes = std::vector<std::uint32_t>;

// Nodes in a line; each has a real link to each neighbour.
Nodes along_line(std::uint32_t from, std::uint32_t to) {
  Nodes nodes = {from};
  while (nodes.back() != to) nodes.push_back(from < to ? nodes.back() + 1 : nodes.back() - 1);
  return nodes;
}

Model line(Switching switching) {
  Model model = slow();
  model.eager_bytes = 10'000;
  model.one_port = false;
  model.route = along_line;
  model.switching = switching;
  return model;
}

// Every node of the line has a peer link to every other.
struct Line : Watched {
  Line(std::uint32_t nodes, const Model& model) : Watched(model, nodes) {}
  // Transfers a block of `bytes` bytes. Node v's link to u is u if u < v, otherwise u-1.
  void transfer(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    watchers[to].receive(from < to ? from : from - 1, bytes);
    watchers[from].send(to < from ? to : to - 1, bytes);
  }
  [[nodiscard]] LinkTraffic traffic(std::uint32_t from, std::uint32_t to) const {
    for (const LinkTraffic& link : network.traffic()) {
      if (link.from == from && link.to == to) return link;
    }
    ADD_FAILURE() << "no link " << from << " -> " << to;
    return {};
  }
};

TEST(PhysicalLinks, CutThroughHoldsTheWholeRouteForOneTransfer) {
  Line chain(4, line(Switching::kCutThrough));
  chain.transfer(0, 3, 1000);  // 2 ms on three links
  chain.transfer(1, 2, 500);   // must wait for the middle link
  chain.transfer(3, 0, 1000);  // the reverse direction uses other links
  chain.settle();
  EXPECT_EQ(chain.watchers[3].received, Times{2000});
  EXPECT_EQ(chain.watchers[2].received, Times{3500});
  EXPECT_EQ(chain.watchers[0].received, Times{2000});
  const LinkTraffic middle = chain.traffic(1, 2);
  EXPECT_EQ(middle.blocks, 2u);
  EXPECT_DOUBLE_EQ(middle.busy, 3.5e-3);
  EXPECT_EQ(middle.waits, 1u);
  EXPECT_DOUBLE_EQ(middle.waited, 2e-3);
  EXPECT_EQ(chain.traffic(0, 1).waits, 0u);
  EXPECT_EQ(chain.traffic(2, 3).blocks, 1u);
}

TEST(PhysicalLinks, StoreAndForwardHoldsOneLinkAfterTheOther) {
  Line chain(4, line(Switching::kStoreAndForward));
  chain.transfer(0, 3, 1000);  // on the middle link from 2 ms to 4 ms
  chain.transfer(0, 3, 1000);  // and from 4 ms to 6 ms
  chain.transfer(1, 2, 1000);  // before them
  chain.transfer(2, 3, 3000);  // the last link until 4 ms
  chain.settle();
  EXPECT_EQ(chain.watchers[2].received, Times{2000});
  EXPECT_EQ(chain.watchers[3].received, (Times{4000, 6000, 8000}));
  EXPECT_EQ(chain.watchers[0].sent, (Times{2000, 4000})) << "they have left the first link";
  for (const auto& [from, to] : {std::pair{0u, 1u}, {1u, 2u}, {2u, 3u}}) {
    EXPECT_EQ(chain.traffic(from, to).waits, 0u);
  }
  EXPECT_EQ(chain.traffic(2, 3).blocks, 3u);
  EXPECT_DOUBLE_EQ(chain.traffic(2, 3).busy, 8e-3);
}

TEST(PhysicalLinks, FirstComeIsFirstServed) {
  for (const Switching switching : {Switching::kCutThrough, Switching::kStoreAndForward}) {
    Line chain(4, line(switching));
    chain.transfer(2, 3, 1000);
    chain.transfer(2, 3, 1000);
    chain.network.advance(1'000'000);  // 1 ms
    chain.transfer(1, 3, 1000);
    chain.transfer(2, 3, 1000);
    chain.settle();
    EXPECT_EQ(chain.watchers[3].received, (Times{2000, 4000, 6000, 8000}));
    // Node 2's second block reaches its port and the link at 2 ms. The block of node 1 reaches the
    // link at 1 ms, or after its first link at 3 ms.
    const bool through = switching == Switching::kCutThrough;
    EXPECT_EQ(chain.watchers[1].sent, through ? Times{4000} : Times{3000}) << "left its first link";
    EXPECT_EQ(chain.watchers[2].sent,
              through ? (Times{2000, 6000, 8000}) : (Times{2000, 4000, 8000}));
    EXPECT_EQ(chain.traffic(2, 3).blocks, 4u);
  }
}

TEST(PhysicalLinks, LanesCarrySeveralAndBlocksStayInOrder) {
  for (const Switching switching : {Switching::kCutThrough, Switching::kStoreAndForward}) {
    Model model = line(switching);
    model.lanes = [](std::uint32_t from, std::uint32_t to) {
      return from == 0 && to == 2 ? 0u : 2u;  // 0: no real link
    };
    Line chain(3, model);
    chain.transfer(1, 2, 3000);
    chain.transfer(0, 2, 1000);
    chain.transfer(1, 2, 1000);  // shorter than the one before
    chain.settle();
    // Cut-through: both lanes are taken until 2 ms. Otherwise: until the block from node 0 reaches
    // them.
    const std::uint64_t first = switching == Switching::kCutThrough ? 2000 : 4000;
    EXPECT_EQ(chain.watchers[2].received, (Times{first, 4000, 4000}));
    EXPECT_EQ(chain.watchers[1].sent, (Times{4000, 4000}));
  }
}

TEST(PhysicalLinks, APortIsKeptWhileItsBlockWaits) {
  Model model = line(Switching::kCutThrough);
  model.one_port = true;
  Line chain(4, model);
  chain.transfer(2, 0, 1000);
  chain.transfer(3, 0, 1000);  // waits for the link 2 -> 1 until 2 ms
  chain.transfer(3, 2, 1000);  // could leave, but node 3's port is taken until 4 ms
  chain.settle();
  EXPECT_EQ(chain.watchers[0].received, (Times{2000, 4000}));
  EXPECT_EQ(chain.watchers[2].received, Times{6000});
}

TEST(PhysicalLinks, ManyBlocksOverManyLinksArriveInOrderWithAnyJitter) {
  for (const Switching switching : {Switching::kCutThrough, Switching::kStoreAndForward}) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      Model model = line(switching);
      model.jitter = 3;
      model.link_jitter = 2;
      model.seed = seed;
      model.lanes = [](std::uint32_t from, std::uint32_t) { return 1 + from % 3; };
      Line chain(6, model);
      for (std::uint32_t block = 0; block < 8; ++block) {
        for (std::uint32_t from = 0; from < 6; ++from) {
          for (std::uint32_t to = 0; to < 6; ++to) {
            if (from != to) chain.transfer(from, to, 100 * block);
          }
        }
      }
      chain.settle();
      EXPECT_EQ(chain.network.outstanding(), "");
      std::uint64_t crossings = 0, waits = 0;
      for (const LinkTraffic& link : chain.network.traffic()) {
        crossings += link.blocks;
        EXPECT_LE(link.busy, link.lanes * chain.network.now());
        waits += link.waits;
      }
      EXPECT_GT(waits, 100u);
      EXPECT_EQ(crossings, std::uint64_t{8} * 70) << "70 hops between all pairs of six in a line";
      for (const Watcher& watcher : chain.watchers) {
        EXPECT_EQ(watcher.received.size(), 5u * 8u);
        EXPECT_TRUE(std::is_sorted(watcher.received.begin(), watcher.received.end()));
      }
    }
  }
}

TEST(PhysicalLinks, EachLinkHasAPaceOfItsOwnFromTheSeed) {
  const auto finish = [](std::uint64_t seed) {
    Model model = line(Switching::kStoreAndForward);
    model.link_jitter = 0.5;
    model.seed = seed;
    Line chain(3, model);
    chain.transfer(0, 2, 1000);
    chain.transfer(0, 2, 1000);
    chain.settle();
    return chain.watchers[2].received;
  };
  const Times one = finish(1);
  EXPECT_EQ(one, finish(1));
  EXPECT_NE(one, finish(2));
  EXPECT_GT(one[0], 4000u);
  EXPECT_LT(one[0], 6000u);
  const std::uint64_t slowest = one[1] - one[0];
  EXPECT_TRUE(slowest > 2000 && slowest < 3000) << "the slower of the two links, every time";
}

TEST(PhysicalLinks, LockStepNamesTheLinkTheStepAndTheTransfers) {
  Line chain(5, line(Switching::kCutThrough));
  chain.network.begin_step();
  chain.transfer(0, 2, 1000);
  chain.transfer(2, 4, 1000);
  chain.settle();
  chain.network.begin_step();
  EXPECT_EQ(chain.network.contention().conflicts, 0u);
  EXPECT_EQ(chain.network.residence().longest(), 0u);
  chain.transfer(0, 2, 1000);
  chain.transfer(1, 4, 1000);  // over 1 -> 2 as well
  chain.transfer(2, 4, 1000);  // and over both of 2 -> 3 -> 4
  chain.transfer(4, 0, 1000);
  chain.settle();
  const Contention& found = chain.network.contention();
  EXPECT_EQ(found.conflicts, 3u);
  EXPECT_EQ(found.max_asked, 2u);
  EXPECT_EQ(found.max_lanes, 1u);
  EXPECT_EQ(found.step, 1);
  EXPECT_EQ(found.from, 1u);
  EXPECT_EQ(found.to, 2u);
  EXPECT_EQ(found.one.from, 0u);
  EXPECT_EQ(found.one.to, 2u);
  EXPECT_EQ(found.one.number, 1u);
  EXPECT_EQ(found.other.from, 1u);
  EXPECT_EQ(found.other.to, 4u);
  EXPECT_EQ(found.other.number, 0u);
  EXPECT_EQ(chain.network.residence().blocks, (std::vector<std::uint64_t>{4, 2}));
  EXPECT_EQ(chain.network.residence().from, 1u);
}

// Store and forward: first-hop crossings of a link do not conflict with second-hop crossings.
TEST(PhysicalLinks, LockStepCountsHopByHop) {
  Line chain(4, line(Switching::kStoreAndForward));
  chain.network.begin_step();
  chain.transfer(0, 2, 1000);
  chain.transfer(1, 3, 1000);
  chain.settle();
  EXPECT_EQ(chain.network.contention().conflicts, 0u);
  EXPECT_EQ(chain.traffic(1, 2).waits, 0u);
  chain.network.begin_step();
  chain.transfer(0, 3, 1000);
  chain.transfer(1, 3, 1000);
  chain.transfer(1, 2, 1000);  // conflicts with the second one on its first hop
  chain.settle();
  EXPECT_EQ(chain.network.contention().conflicts, 1u);
  EXPECT_EQ(chain.network.contention().from, 1u);
}

TEST(PhysicalLinks, LockStepCountsLanesAndTicks) {
  Model model = line(Switching::kCutThrough);
  model.lanes = [](std::uint32_t, std::uint32_t) { return 2; };
  model.send_ticks = 2;
  Line chain(4, model);
  chain.network.begin_step();
  chain.transfer(0, 2, 10);
  chain.network.begin_step();
  chain.transfer(1, 2, 10);  // the link 1 -> 2 is held by both
  EXPECT_EQ(chain.network.contention().conflicts, 0u);
  chain.network.begin_step();
  chain.transfer(0, 3, 10);
  EXPECT_EQ(chain.network.contention().conflicts, 0u) << "the first no longer holds it";
  chain.transfer(0, 1, 10);
  chain.transfer(0, 2, 10);  // a third on both of its links
  EXPECT_EQ(chain.network.contention().conflicts, 2u);
  EXPECT_EQ(chain.network.contention().max_asked, 3u);
  EXPECT_EQ(chain.network.contention().max_lanes, 2u);
  EXPECT_EQ(chain.network.contention().step, 2);
}

TEST(PhysicalLinks, RefusesRoutesThatAreNone) {
  for (const Nodes& nodes : {Nodes{}, Nodes{0}, Nodes{0, 1}, Nodes{1, 2}}) {
    Model model;
    model.route = [&](std::uint32_t, std::uint32_t) { return nodes; };
    EXPECT_FALSE(Network::create(model, {{2}, {}, {0}}));
  }
  Model model{.route = along_line};
  EXPECT_EQ(message_of(Network::create(model, {{2}, {}, {0}})), "");
  model.lanes = [](std::uint32_t, std::uint32_t) { return 0; };
  EXPECT_FALSE(Network::create(model, {{2}, {}, {0}})) << "0 -> 1 must be a link";
}

}  // namespace
}  // namespace espalier::sim
