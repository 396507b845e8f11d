#include "espalier/hal/sim/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/testing/results.h"
#include "hal/sim/watcher.h"

namespace espalier::sim {
namespace {

using Links = std::vector<std::vector<std::uint32_t>>;

TEST(Network, ABlockTakesAlphaAndBetaTimesItsBytes) {
  Watched net(slow(), 2);
  net.watchers[1].receive(0, 4000);
  net.watchers[1].receive(0, 0);
  net.watchers[0].send(0, 4000);
  net.watchers[0].send(0, 0);
  net.settle();
  EXPECT_EQ(net.watchers[1].received, (Times{5000, 6000}));
  EXPECT_EQ(net.watchers[0].sent, (Times{5000, 6000}));
  EXPECT_DOUBLE_EQ(net.network.now(), 6e-3);
}

TEST(Network, BothDirectionsShareNothing) {
  Watched net(slow(), 2);
  for (Watcher& watcher : net.watchers) {
    watcher.receive(0, 1000);
    watcher.send(0, 1000);
  }
  net.settle();
  EXPECT_EQ(net.watchers[0].received, Times{2000});
  EXPECT_EQ(net.watchers[1].received, Times{2000});
}

TEST(Network, OnePortTakesTheLongestWaitingFirst) {
  for (const bool one_port : {true, false}) {
    Model model = slow();
    model.one_port = one_port;
    // 0 sends to 1, 2, 3; and 3 sends to 1.
    Watched net(model, 4);
    net.watchers[0].send(0, 100);  // to 1
    net.watchers[0].send(2, 100);  // to 3
    net.watchers[0].send(1, 100);  // to 2
    net.watchers[3].send(1, 100);  // to 1, whose in-port is busy
    for (std::uint32_t v = 1; v < 4; ++v) net.watchers[v].receive(0, 100);
    net.watchers[1].receive(2, 100);
    net.settle();
    if (one_port) {
      EXPECT_EQ(net.watchers[1].received, (Times{1100, 2200}));
      EXPECT_EQ(net.watchers[3].received, Times{2200});
      EXPECT_EQ(net.watchers[2].received, Times{3300});
    } else {
      EXPECT_EQ(net.watchers[1].received, (Times{1100, 1100}));
      EXPECT_EQ(net.watchers[3].received, Times{1100});
      EXPECT_EQ(net.watchers[2].received, Times{1100});
    }
    EXPECT_EQ(net.network.sent(0), 3u);
    EXPECT_EQ(net.network.received(1), 2u);
  }
}

// Receives that are posted at one time do not decide by their order which block goes first.
TEST(Network, OnePortTakesTheFirstPostOfThoseReadyAtOnce) {
  for (const std::uint32_t first : {1u, 2u}) {
    Watched net(slow(), 3);
    net.watchers[0].send(1, 1000);  // to node 2
    net.watchers[0].send(0, 1000);
    for (const std::uint32_t node : {first, 3 - first}) net.watchers[node].receive(0, 1000);
    net.settle();
    EXPECT_EQ(net.watchers[2].received, Times{2000});
    EXPECT_EQ(net.watchers[1].received, Times{4000});
  }
}

// lambda = 3: the port is free while a block is still in flight.
TEST(Network, LatencyHoldsNoPort) {
  Model model = slow();
  model.latency = 4e-3;
  Watched net(model, 2);
  for (int i = 0; i < 2; ++i) {
    net.watchers[1].receive(0, 1000);
    net.watchers[0].send(0, 1000);
  }
  ASSERT_EQ(net.watchers[0].endpoint.post_control(0, Control()), Status::kOk);
  net.settle();
  EXPECT_EQ(net.watchers[1].received, (Times{6000, 8000}));
  EXPECT_EQ(net.watchers[0].sent, (Times{2000, 4000}))
      << "a send completes when its block has left";
  EXPECT_EQ(net.watchers[1].control, Times{5000});
}

TEST(Network, ASendCompletesWhenItsBlockHasLeft) {
  for (const std::uint64_t size : {100u, 1000u}) {  // a short one and a long one
    Watched net(slow(), 3);
    for (const std::uint32_t link : {0u, 1u}) net.watchers[1].receive(link, size);
    net.watchers[0].send(0, size);
    net.watchers[2].send(1, size);  // queued at node 1's in-port
    net.settle();
    const std::uint64_t takes = 1000 + size;
    EXPECT_EQ(net.watchers[1].received, (Times{takes, 2 * takes}));
    EXPECT_EQ(net.watchers[0].sent, Times{takes});
    EXPECT_EQ(net.watchers[2].sent, Times{takes});
  }
}

// A block in flight has its own bytes: the sender may overwrite its memory, and the receiver gets
// the original bytes, whenever its receive is posted.
TEST(Network, ABlockOnItsWayIsNotItsSendersMemory) {
  for (const bool copies : {true, false}) {
    for (const std::uint64_t size : {8u, 1000u}) {
      for (const bool late : {false, true}) {
        Model model = slow();
        model.latency = 4e-3;
        model.eager_copies = copies;
        Network network(model, {{1}, {0}});
        std::vector<std::uint8_t> from(size, 7), to(size, 1);
        const Region given{from.data(), size}, taken{to.data(), size};
        ASSERT_EQ(network.endpoint(0).prepare(&given, 1), Status::kOk);
        ASSERT_EQ(network.endpoint(1).prepare(&taken, 1), Status::kOk);
        const auto receive = [&] {
          ASSERT_EQ(network.endpoint(1).post_receive(0, {.bytes = to.data(), .size = size}),
                    Status::kOk);
        };
        if (!late) receive();
        ASSERT_EQ(network.endpoint(0).post_send(0, {.bytes = from.data(), .size = size}),
                  Status::kOk);
        Completion completion;
        bool sent = false;
        const auto take_sent = [&] {
          if (!network.endpoint(0).poll(completion)) return;
          EXPECT_EQ(completion.kind, Completion::Kind::kSent);
          EXPECT_EQ(completion.status, Status::kOk);
          std::fill(from.begin(), from.end(), 9);
          sent = true;
        };
        while (network.advance(UINT64_MAX)) take_sent();
        EXPECT_EQ(sent, !late || (copies && size == 8));
        if (late) receive();
        while (network.advance(UINT64_MAX)) take_sent();
        take_sent();
        EXPECT_TRUE(sent);
        EXPECT_EQ(to, std::vector<std::uint8_t>(size, 7)) << size << copies << late;
      }
    }
  }
}

TEST(Network, ALinkCarriesAsManyBlocksAsItHasLanes) {
  Model model = slow();
  model.one_port = false;
  model.lanes = [](std::uint32_t from, std::uint32_t) { return from == 0 ? 2 : 1; };
  Watched net(model, 2);
  for (const std::uint64_t size : {3000u, 1000u, 2000u}) {
    for (Watcher& watcher : net.watchers) {
      watcher.receive(0, size);
      watcher.send(0, size);
    }
  }
  net.settle();
  EXPECT_EQ(net.watchers[1].received, (Times{4000, 4000, 5000}))
      << "in order, though the second is short";
  EXPECT_EQ(net.watchers[0].received, (Times{4000, 6000, 9000}));
  EXPECT_EQ(net.watchers[0].sent, (Times{4000, 4000, 5000})) << "in order too";
}

TEST(Network, ShortBlocksTravelEarlyLongOnesWait) {
  for (const bool copies : {true, false}) {
    Model model = slow();
    model.eager_copies = copies;
    Watched net(model, 2);
    net.watchers[0].send(0, 100);
    net.watchers[0].send(0, 1000);
    net.settle();
    EXPECT_DOUBLE_EQ(net.network.now(), 2.1e-3);
    EXPECT_EQ(net.watchers[0].sent, copies ? Times{1100} : Times{});
    EXPECT_EQ(net.watchers[1].early, (Times{1100, 2100})) << "the long one is announced";
    EXPECT_FALSE(net.network.advance(10'000'000));
    EXPECT_DOUBLE_EQ(net.network.now(), 10e-3);
    net.watchers[1].receive(0, 100);
    net.settle();
    EXPECT_EQ(net.watchers[1].received, Times{10000});
    EXPECT_EQ(net.watchers[0].sent, copies ? Times{1100} : Times{10000});
    EXPECT_EQ(net.network.outstanding(), "node 0's send 1 to node 1 (1000 bytes)");
    net.watchers[1].receive(0, 1000);
    net.settle();
    EXPECT_EQ(net.watchers[1].received, (Times{10000, 12000}));
    EXPECT_EQ(net.network.outstanding(), "");
    net.watchers[1].receive(0, 7);
    EXPECT_EQ(net.network.outstanding(), "node 1's receive 2 from node 0 (7 bytes)");
  }
}

TEST(Network, ControlsTakeAlphaRegardlessOfPorts) {
  Watched net(slow(), 2);
  net.watchers[1].receive(0, 50'000);
  net.watchers[0].send(0, 50'000);
  ASSERT_EQ(net.watchers[0].endpoint.post_control(0, Control()), Status::kOk);
  net.settle();
  EXPECT_EQ(net.watchers[1].control, Times{1000});
  EXPECT_EQ(net.watchers[1].received, Times{51000});
}

TEST(Network, ADeadNodeTakesAndGivesNothing) {
  Watched net(slow(), 3);
  net.network.kill(1, 1'500'000);
  net.watchers[1].receive(0, 1000);
  net.watchers[0].send(0, 1000);  // would take 2 ms
  net.watchers[0].send(1, 1000);
  net.watchers[2].receive(0, 1000);
  net.watchers[2].send(1, 50);  // to 1: arrives before
  ASSERT_EQ(net.watchers[1].endpoint.post_control(0, Control()), Status::kOk);
  net.settle();
  EXPECT_FALSE(net.network.alive(1));
  EXPECT_EQ(net.watchers[1].received, Times{});
  EXPECT_EQ(net.watchers[1].early, Times{}) << "its in-port was busy";
  EXPECT_EQ(net.watchers[0].control, Times{1000});
  EXPECT_EQ(net.watchers[0].sent, Times{4000})
      << "only the send to node 2, after the port was free";
  EXPECT_EQ(net.watchers[2].received, Times{4000});
  ASSERT_EQ(net.watchers[0].endpoint.post_control(0, Control()), Status::kOk);
  ASSERT_EQ(net.watchers[1].endpoint.post_control(0, Control()), Status::kOk);
  net.settle();
  EXPECT_EQ(net.watchers[1].control, Times{});
  EXPECT_EQ(net.watchers[0].control, Times{1000});
}

TEST(Network, JitterIsBoundedAndComesFromTheSeed) {
  const auto finish = [](std::uint64_t seed) {
    Model model = slow();
    model.jitter = 0.5;
    model.seed = seed;
    Watched net(model, 2);
    for (int i = 0; i < 16; ++i) {
      net.watchers[1].receive(0, 1000);
      net.watchers[0].send(0, 1000);
    }
    net.settle();
    return net.network.now();
  };
  EXPECT_EQ(finish(1), finish(1));
  EXPECT_NE(finish(1), finish(2));
  EXPECT_GT(finish(1), 32e-3);
  EXPECT_LT(finish(1), 48e-3);
}

TEST(Network, PoisonFillsPostedReceives) {
  Model model{.poison = true};
  Watched net(model, 2);
  net.watchers[1].bytes[0] = 7;
  net.watchers[1].receive(0, 1);
  EXPECT_NE(net.watchers[1].bytes[0], 7);
  net.watchers[0].bytes[0] = 9;
  net.watchers[0].send(0, 1);
  net.settle();
  EXPECT_EQ(net.watchers[1].bytes[0], 9);
}

TEST(Network, RefusesLinksThatAreNotMutual) {
  const auto error_of = [](const Links& links, const Model& model = {}) {
    return message_of(Network::create(model, links));
  };
  EXPECT_EQ(error_of({{1, 1}, {0, 0}}), "");
  EXPECT_EQ(error_of({{1}, {}}), "sim: the links of nodes 0 and 1 are not mutual");
  EXPECT_EQ(error_of({{1, 1}, {0}}), "sim: the links of nodes 0 and 1 are not mutual");
  EXPECT_EQ(error_of({{0}}), "sim: node 0 has a link to node 0, which is not another node");
  EXPECT_EQ(error_of({{5}}), "sim: node 0 has a link to node 5, which is not another node");
  EXPECT_NE(error_of(complete_links(kMaxLinks + 2)), "");
  Model model{.alpha = -1};
  EXPECT_EQ(error_of({{1}, {0}}, model),
            "sim: alpha, beta, latency, pace or jitter is negative or too large");
}

#ifdef ESPALIER_ASSERTIONS
TEST(NetworkDeathTest, IsNotConstructedFromLinksThatAreNotMutual) {
  EXPECT_DEATH(Network(Model(), {{1}, {}}), "programming error: expected valid");
}
#endif

TEST(Network, SeveralLinksBetweenTwoNodesPairInOrder) {
  Watched net(slow(), {{1, 1}, {0, 0}});
  net.watchers[0].send(1, 10);
  net.watchers[1].receive(1, 10);
  net.settle();
  EXPECT_EQ(net.watchers[1].received.size(), 1u);
}

TEST(Network, HoldsMachinesToTheEndpointsContract) {
  Network network(slow(), {{1}, {0}});
  Watcher watcher(network, 0);
  std::uint8_t other[200];
  EXPECT_EQ(watcher.endpoint.post_receive(0, {other, 200, 0, 0}), Status::kBadArgument);
  EXPECT_EQ(watcher.endpoint.post_receive(1, {other, 8, 0, 0}), Status::kBadArgument);
  EXPECT_EQ(watcher.endpoint.post_receive(0, {other, 8, 0, 0}), Status::kOk);
  EXPECT_EQ(watcher.endpoint.prepare(nullptr, 0), Status::kBadArgument);
  watcher.endpoint.release();
  EXPECT_EQ(watcher.endpoint.post_send(0, {other, 8, 0, 0, 0}), Status::kBadArgument);
}

}  // namespace
}  // namespace espalier::sim
