// Endpoints whose links are added and connected when they are needed.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/testing/results.h"
#include "espalier/internal/base/limits.h"
#include "hal/fabric/provider_list.h"
#include "hal/fabric/testing/collective_rank.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

struct Provider {
  const char* name;
  const char* hosts;  // a letter for each node's host, in turn; empty: that of this process
  // Whether nodes 0 and 1 share memory, without libfabric.
  bool is_memory;
  // Whether each endpoint has a fabric that it could share.
  bool is_shared = false;
  std::uint32_t cables = 0;  // between each two nodes of different hosts; 0: the fabric routes
};

class AddedLinksTest : public testing::TestWithParam<Provider> {
 protected:
  static AddedConfig config(std::uint32_t max_links = 4) {
    AddedConfig config;
    config.provider = GetParam().name;
    config.host = GetParam().hosts;
    config.max_links = max_links;
    config.has_secret = true;
    config.secret.fill(3);
    if (GetParam().is_shared) config.fabric = make_shared_fabric();
    if (GetParam().cables != 0) {
      config.cables = {
          {.number = GetParam().cables, .node = 3, .local_address = "127.4", .lanes = 1}};
    }
    return config;
  }
  // Opens `nodes` endpoints without links, which know each other's addresses; with hosts, at least
  // one for each letter.
  static LocalEndpoints<AddedConfig> open(AddedConfig config, std::size_t nodes) {
    nodes = std::max(nodes, config.host.size());
    if (has_cables()) config.cables.front().node = static_cast<std::uint32_t>(nodes);
    LocalEndpoints endpoints(config, std::vector<std::vector<std::uint32_t>>(nodes));
    EXPECT_EQ(endpoints.error, "");
    return endpoints;
  }
  static bool has_cables() { return GetParam().cables != 0; }
  // Whether nodes a and b share memory.
  static bool are_near(std::size_t a, std::size_t b) {
    const std::string hosts = GetParam().hosts;
    return !hosts.empty() && hosts[a % hosts.size()] == hosts[b % hosts.size()];
  }
  // The links of node v that has added none: if all leave by cables, all are there.
  static std::uint32_t first_links(std::uint32_t v, std::uint32_t nodes) {
    nodes = std::max<std::uint32_t>(nodes, std::string_view(GetParam().hosts).size());
    bool has_near = false;
    for (std::uint32_t w = 0; w < nodes; ++w) has_near = has_near || (w != v && are_near(v, w));
    return has_cables() && !has_near ? nodes - 1 : 0;
  }
  // In memory, a node that adds a link says so to its peer at once, and waits for no reply.
  static bool waits_for_reply() { return !GetParam().is_memory; }
};
INSTANTIATE_TEST_SUITE_P(
    Providers, AddedLinksTest,
    testing::Values(Provider{"tcp", "", false}, Provider{"tcp", "", false, true},
                    Provider{"mem", "", true}, Provider{"mem+tcp", "", true},
                    Provider{"mem+tcp", "aab", true}, Provider{"mem+tcp", "aba", false},
                    Provider{"tcp", "", false, true, 2},
                    Provider{"mem+tcp", "aba", false, false, 1}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '+', '_');
      if (info.param.is_shared) name += "_shared";
      if (info.param.cables != 0) name += "_cables" + std::to_string(info.param.cables);
      return name + (info.param.hosts[0] == '\0' ? "" : "_") + info.param.hosts;
    });

std::uint32_t link_to(AddedLinks& from, std::uint32_t node) {
  return or_throw(from.add_link(node));
}

bool connected(AddedLinks& from, std::uint32_t node) {
  const std::uint32_t link = link_to(from, node);
  return or_throw(from.connect_links({&link, 1}));
}

void poll(AddedLinks& endpoint) {
  Completion completion;
  EXPECT_FALSE(endpoint.endpoint().poll(completion));
}

// Connects `a` and `b`, which both ask at the same time.
void connect(AddedLinks& a, AddedLinks& b) {
  while (true) {
    const bool left = connected(a, b.endpoint().node());
    const bool right = connected(b, a.endpoint().node());
    if (left && right) return;
  }
}

Completion await(LocalEndpoints<AddedConfig>& endpoints, std::uint32_t node,
                 Completion::Kind kind) {
  while (true) {
    Completion completion;
    for (std::uint32_t v = 0; v < endpoints.nodes.size(); ++v) {
      while (endpoints.nodes[v] != nullptr && endpoints[v].poll(completion)) {
        if (v == node && completion.kind == kind) return completion;
      }
    }
  }
}

// Sends a number over the link from a to b.
void expect_message(LocalEndpoints<AddedConfig>& endpoints, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sent = 100 * a + b;
  std::uint32_t got = 0;
  const std::uint32_t there = link_to(*endpoints.nodes[a], b);
  const std::uint32_t back = link_to(*endpoints.nodes[b], a);
  EXPECT_EQ(endpoints[a].peer(there), b);
  ASSERT_EQ(endpoints[b].post_receive(back, {&got, sizeof(got), 1, 0}), Status::kOk);
  ASSERT_EQ(endpoints[a].post_send(there, {&sent, sizeof(sent), 1, 0, 0}), Status::kOk);
  EXPECT_EQ(await(endpoints, b, Completion::Kind::kReceived).link, back);
  EXPECT_EQ(got, sent);
}

TEST_P(AddedLinksTest, ConnectsOneLinkAfterTheOther) {
  LocalEndpoints endpoints = open(config(), 4);
  for (std::uint32_t v = 0; v < 4; ++v) EXPECT_EQ(endpoints[v].links(), first_links(v, 4));
  std::vector<std::uint32_t> links(4);
  const auto expected = [&](std::uint32_t v) {
    return first_links(v, 4) == 0 ? ++links[v] : first_links(v, 4);
  };
  for (const auto& [a, b] : {std::pair{2u, 0u}, {1u, 3u}, {0u, 1u}, {3u, 0u}, {2u, 3u}, {1u, 2u}}) {
    connect(*endpoints.nodes[a], *endpoints.nodes[b]);
    EXPECT_EQ(endpoints[a].links(), expected(a));
    EXPECT_EQ(endpoints[b].links(), expected(b));
    expect_message(endpoints, a, b);
    expect_message(endpoints, b, a);
  }
  for (const auto& node : endpoints.nodes) EXPECT_EQ(node->rejected_words(), 0u);
}

TEST_P(AddedLinksTest, TheHigherNodeAnswersBeforeItAsks) {
  LocalEndpoints endpoints = open(config(), 2);
  while (!connected(*endpoints.nodes[0], 1)) poll(*endpoints.nodes[1]);
  EXPECT_EQ(endpoints[1].links(), std::max(first_links(1, 2), 1u));
  EXPECT_EQ(endpoints[1].peer(0), 0u);
  EXPECT_TRUE(connected(*endpoints.nodes[1], 0));
  expect_message(endpoints, 1, 0);
}

// The lower node never asks, as in another collective.
TEST_P(AddedLinksTest, TheLowerNodeAnswersTheHigher) {
  LocalEndpoints endpoints = open(config(), 2);
  EXPECT_FALSE(connected(*endpoints.nodes[1], 0));
  poll(*endpoints.nodes[0]);
  EXPECT_EQ(endpoints[0].links(),
            waits_for_reply() ? first_links(0, 2) : 1u);  // The higher node waits at first.
  while (!connected(*endpoints.nodes[1], 0)) poll(*endpoints.nodes[0]);
  // Beside memory, a link over cables counts when it is first used.
  const bool is_lazy = has_cables() && first_links(0, 2) == 0 && !are_near(0, 1);
  EXPECT_EQ(endpoints[0].links(), is_lazy ? 0u : 1u);
  EXPECT_TRUE(connected(*endpoints.nodes[0], 1));
  expect_message(endpoints, 0, 1);
  expect_message(endpoints, 1, 0);
}

// Each node's greeting is under way when the other's arrives.
TEST_P(AddedLinksTest, BothNodesMayGreetAtOnce) {
  for (int round = 0; round < 5; ++round) {
    LocalEndpoints endpoints = open(config(), 2);
    Endpoint& one = endpoints[1];
    EXPECT_FALSE(connected(*endpoints.nodes[1], 0));
    // The higher node alone makes progress until it has greeted.
    const std::uint64_t begin = one.now();
    while (one.now() < begin + 120'000'000) poll(*endpoints.nodes[1]);
    connect(*endpoints.nodes[0], *endpoints.nodes[1]);
    for (int message = 0; message < 3; ++message) {
      expect_message(endpoints, 0, 1);
      expect_message(endpoints, 1, 0);
    }
    EXPECT_EQ(endpoints.nodes[0]->rejected_words() + endpoints.nodes[1]->rejected_words(), 0u);
  }
}

// Neither end makes progress while the other does, except after its own call.
TEST_P(AddedLinksTest, ConnectsInThreadsThatBlock) {
  LocalEndpoints endpoints = open(config(), 3);
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> left = 3;
  for (std::uint32_t v = 0; v < 3; ++v) {
    threads.emplace_back([&, v] {
      AddedLinks& own = *endpoints.nodes[v];
      const std::vector<std::uint32_t> links = {link_to(own, (v + 1) % 3),
                                                link_to(own, (v + 2) % 3)};
      while (!or_throw(own.connect_links(links))) {
        own.endpoint().wait(own.endpoint().now() + 1'000'000'000);
      }
      --left;
      while (left != 0) own.endpoint().wait(own.endpoint().now() + 1'000'000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t v = 0; v < 3; ++v) expect_message(endpoints, v, (v + 1) % 3);
}

// The greeting to a node without addresses is lost, and repeated.
TEST_P(AddedLinksTest, ANodeMayJoinLate) {
  std::vector<std::unique_ptr<AddedLinks>> nodes;
  std::vector<std::string> addresses;
  for (std::uint32_t v = 0; v < 3; ++v) {
    nodes.push_back(or_throw(AddedLinks::open(for_node(config(), v))));
    addresses.push_back(nodes.back()->address());
  }
  ASSERT_TRUE(nodes[0]->set_addresses(addresses));
  ASSERT_TRUE(nodes[1]->set_addresses(addresses));
  EXPECT_EQ(message_of(nodes[1]->set_addresses(addresses)), "this endpoint has its addresses");
  connect(*nodes[0], *nodes[1]);
  const std::uint64_t begin = nodes[0]->endpoint().now();
  while (nodes[0]->endpoint().now() < begin + 100'000'000) {
    EXPECT_FALSE(connected(*nodes[0], 2));
    poll(*nodes[2]);
  }
  const bool has_all = has_cables() && GetParam().hosts[0] == '\0';
  EXPECT_EQ(nodes[2]->endpoint().links(), has_all ? 2u : 0u);
  ASSERT_TRUE(nodes[2]->set_addresses(addresses));
  connect(*nodes[0], *nodes[2]);
  connect(*nodes[2], *nodes[1]);
}

TEST_P(AddedLinksTest, NamesThePeerThatNeverAsks) {
  AddedConfig config = this->config();
  config.connect_deadline_ns = 100'000'000;
  for (const auto& [own, other] : {std::pair{1u, 0u}, {0u, 1u}}) {
    LocalEndpoints endpoints = open(config, 2);
    const std::uint32_t link = link_to(*endpoints.nodes[own], other);
    Result<bool> result = false;
    while (result && !*result) result = endpoints.nodes[own]->connect_links({&link, 1});
    const std::string way = endpoints.nodes[own]->way_of_link(link);
    EXPECT_EQ(way.empty(), !has_cables() || GetParam().is_memory) << way;
    EXPECT_EQ(message_of(result), "node " + std::to_string(other) + " did not connect " +
                                      way.substr(0, way.find(" and ")) + (way.empty() ? "" : " ") +
                                      "within 100 ms");
  }
}

// A link to it can be added and used, so that the caller's deadline finds it.
TEST_P(AddedLinksTest, APeerThatHasEndedNeverConnects) {
  LocalEndpoints endpoints = open(config(), 3);
  connect(*endpoints.nodes[0], *endpoints.nodes[2]);
  endpoints.nodes[1].reset();
  const std::uint32_t link = link_to(*endpoints.nodes[0], 1);
  std::uint32_t word = 5;
  ASSERT_EQ(endpoints[0].post_send(link, {&word, sizeof(word), 1, 0, 0}), Status::kOk);
  ASSERT_EQ(endpoints[0].post_receive(link, {&word, sizeof(word), 1, 0}), Status::kOk);
  const std::uint64_t begin = endpoints[0].now();
  while (endpoints[0].now() < begin + 50'000'000) {
    const auto result = endpoints.nodes[0]->connect_links({&link, 1});
    EXPECT_FALSE(result && *result);
    Completion completion;
    while (endpoints[0].poll(completion)) {
      EXPECT_FALSE(completion.kind == Completion::Kind::kReceived && completion.link == link);
    }
  }
  expect_message(endpoints, 0, 2);
}

TEST_P(AddedLinksTest, MessagesMayBePostedBeforeTheConnection) {
  LocalEndpoints endpoints = open(config(), 2);
  const std::uint32_t sent = 5;
  std::uint32_t got = 0;
  const std::uint32_t there = link_to(*endpoints.nodes[1], 0);
  ASSERT_EQ(endpoints[1].post_send(there, {&sent, sizeof(sent), 1, 0, 0}), Status::kOk);
  const std::uint32_t back = link_to(*endpoints.nodes[0], 1);
  ASSERT_EQ(endpoints[0].post_receive(back, {&got, sizeof(got), 1, 0}), Status::kOk);
  // A control on a link that is not connected has no receiver.
  ASSERT_EQ(endpoints[0].post_control(back, {ControlKind::kProbe, 7, {}}), Status::kOk);
  ASSERT_EQ(connected(*endpoints.nodes[0], 1), !waits_for_reply());
  ASSERT_EQ(endpoints[0].post_control(back, {ControlKind::kProbe, 8, {}}), Status::kOk);
  EXPECT_EQ(await(endpoints, 1, Completion::Kind::kControl).control.number, 8u);
  if (got == 0) await(endpoints, 0, Completion::Kind::kReceived);
  EXPECT_EQ(got, sent);
}

TEST_P(AddedLinksTest, RefusesWhatDoesNotFit) {
  if (has_cables()) return;  // CabledLinksTest
  for (const std::uint32_t max_links : {0U, kMaxLinks + 1}) {
    EXPECT_EQ(message_of(AddedLinks::open(config(max_links))),
              "node 0: max_links " + std::to_string(max_links) + " is not in 1..128");
  }
  LocalEndpoints endpoints = open(this->config(1), 3);
  AddedLinks& zero = *endpoints.nodes[0];
  EXPECT_EQ(message_of(zero.add_link(3)), "node 0: no address of node 3");
  EXPECT_EQ(message_of(zero.add_link(0)), "node 0: no address of node 0");
  const std::uint32_t none = 0;
  EXPECT_EQ(message_of(zero.connect_links({&none, 1})), "node 0: cannot connect link 0");
  EXPECT_EQ(link_to(zero, 1), 0u);
  EXPECT_EQ(link_to(zero, 1), 0u);
  EXPECT_EQ(message_of(zero.add_link(2)),
            "node 0 has 1 link, the limit; no room for one to node 2");
  // Node 2 has room, so the greeting of node 0 would be answered; that of node 1 is.
  const auto alone = or_throw(AddedLinks::open(for_node(this->config(), 0)));
  ASSERT_TRUE(alone->set_addresses({"", "short", zero.address()}));
  EXPECT_EQ(message_of(alone->add_link(1)), "address of node 1: too short");
  EXPECT_EQ(message_of(alone->add_link(2)),
            "address of node 2: it belongs to node 0 and is for all nodes");
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

// 64 slots of 16 KiB per lane: an arena and a staging area of 256 MiB for 128 links. Over mem and
// mem+tcp, 16 slots: 32 MiB.
TEST_P(AddedLinksTest, LanesWithoutALinkTakeNoMemory) {
  AddedConfig config = this->config(kMaxLinks);
  const bool has_memory = std::string(GetParam().name).starts_with("mem");
  config.window = has_memory ? kMaxWindow : 64;
  config.eager_bytes = 16384;
  const auto first = or_throw(AddedLinks::open(for_node(config, 0)));
  const std::uint64_t before = resident_bytes();
  config.node = 1;
  const auto second = or_throw(AddedLinks::open(config));
  const std::uint64_t after = resident_bytes();
  const std::uint64_t grown = after - std::min(after, before);
  std::printf("%s: an endpoint with room for 128 links takes %llu KiB\n", GetParam().name,
              static_cast<unsigned long long>(grown / 1024));
  EXPECT_LT(grown, 24u << 20);
}

// Each rank connects only the links of its program, at its own time.
TEST_P(AddedLinksTest, CollectivesConnectWhatTheyNeed) {
  constexpr std::uint32_t kRanks = 8;
  LocalEndpoints endpoints = open(config(kRanks), kRanks);
  std::atomic<std::uint64_t> errors = 0;
  std::atomic<std::uint32_t> running = kRanks;
  std::atomic<std::uint32_t> links = 0;
  const auto run = [&](std::uint32_t v) {
    AddedLinks& own = *endpoints.nodes[v];
    CollectiveRank rank(kRanks, 100'000);
    if (rank.init(own.endpoint(), 60'000'000'000) != Status::kOk) errors += 1000;
    for (const char* algorithm : {"binomial", "two-tree"}) {
      if (!rank.plan(Collective::kBroadcast, algorithm)) errors += 1000;
      std::vector<std::uint32_t> needed;
      for (std::uint32_t i = 0; i < links_count(rank.program()); ++i) {
        needed.push_back(link_to(own, peer_of(rank.program(), i)));
      }
      for (std::uint32_t round = 0; round < 20; ++round) {
        // Even rounds start at once: messages wait for the connection.
        while (!or_throw(own.connect_links(needed)) && v % 2 == 0) sched_yield();
        if (rank.start(round % 2 == 0 ? 10 : 100'000, round) != Status::kOk) errors += 1;
        if (rank.finish() != Status::kOk) errors += 1;
        errors += rank.incorrect();
      }
    }
    links += own.endpoint().links();
    --running;
    while (running != 0) {
      (void)rank.poll();
      own.endpoint().wait(own.endpoint().now() + 1'000'000);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t v = 0; v < kRanks; ++v) threads.emplace_back(run, v);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0u);
  if (!has_cables()) {
    EXPECT_LT(links, kRanks * (kRanks - 1) - 10);
  }
}

}  // namespace
}  // namespace espalier::ofi
