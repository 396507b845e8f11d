// Links over cables: which lanes belong together, what is refused, and how bytes are counted. The
// interfaces here are addresses of the loopback; tests/cables/links.py has real ones.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

using Cable = AddedConfig::Cable;

AddedConfig cabled_config(std::uint32_t node, std::vector<Cable> cables,
                          const std::string& provider = "tcp") {
  AddedConfig config;
  config.provider = provider;
  config.node = node;
  config.max_links = 8;
  config.has_secret = true;
  config.secret.fill(5);
  config.cables = std::move(cables);
  return config;
}

std::string refusal_of(const AddedConfig& config) { return message_of(AddedLinks::open(config)); }

TEST(CabledLinksTest, RefusesWhatIsNotUsed) {
  const std::vector<Cable> one = {{7, 1, "127.5.0.1", 1}};
  EXPECT_EQ(refusal_of(cabled_config(0, one, "mem")),
            "node 0: provider mem has no use for cables; expected none, or mem+tcp");
  AddedConfig config = cabled_config(0, one);
  config.local_address = "127.0.0.1";
  EXPECT_EQ(refusal_of(config),
            "node 0 has cables and the local_address 127.0.0.1; expected none, because each lane "
            "binds the address of its cable");
  config = cabled_config(0, one);
  config.host = "here";
  EXPECT_EQ(refusal_of(config),
            "node 0: host \"here\" with provider tcp, which does not ask who shares memory; "
            "expected mem+NAME");
  config = cabled_config(0, one, "mem+tcp");
  config.is_without_cables = true;
  EXPECT_EQ(refusal_of(config), "node 0 is_without_cables and has 1 cable; expected none");
  config = cabled_config(0, {}, "tcp");
  config.is_without_cables = true;
  EXPECT_EQ(refusal_of(config), "node 0 is_without_cables and has provider tcp; expected mem+NAME");
}

TEST(CabledLinksTest, RefusesWrongCables) {
  EXPECT_EQ(refusal_of(cabled_config(1, {{7, 1, "127.5.0.1", 1}})),
            "node 1: cable 7 leads back to this node");
  EXPECT_EQ(refusal_of(cabled_config(0, {{7, 1, "127.5.0.1", 0}})),
            "node 0: cable 7 has no lane; expected one or more");
  EXPECT_EQ(refusal_of(cabled_config(0, {{7, 1, "", 1}})),
            "node 0: cable 7 has no address; expected that of its interface, such as fe80::7%eth0");
  EXPECT_EQ(refusal_of(cabled_config(0, {{7, 1, "127.5.0.1", 1}, {7, 2, "127.5.0.2", 1}})),
            "node 0: cable 7 is given 2 times; expected another number for each");
  AddedConfig config = cabled_config(0, {{7, 1, "127.5.0.1", 100}, {8, 2, "127.5.0.2", 29}});
  EXPECT_EQ(
      refusal_of(config),
      "node 0 has 129 lanes over cables to 2 nodes; expected at most 128 lanes, and max_links "
      "= 8 nodes");
  config = cabled_config(0, {{7, 1, "127.5.0.1", 1}, {8, 2, "127.5.0.2", 1}});
  config.max_links = 1;
  EXPECT_EQ(
      refusal_of(config),
      "node 0 has 2 lanes over cables to 2 nodes; expected at most 128 lanes, and max_links = "
      "1 nodes");
  EXPECT_NE(refusal_of(cabled_config(0, {{7, 1, "fe80::5%none0", 1}})).find("fe80::5%none0"),
            std::string::npos);
}

// Opens one endpoint per list of cables, and gives all the addresses.
std::vector<std::unique_ptr<AddedLinks>> open_all(const std::vector<std::vector<Cable>>& cables,
                                                  const std::string& provider = "tcp",
                                                  const std::string& hosts = "") {
  std::vector<std::unique_ptr<AddedLinks>> nodes;
  std::vector<std::string> addresses;
  for (std::uint32_t v = 0; v < cables.size(); ++v) {
    AddedConfig config = cabled_config(v, cables[v], provider);
    if (!hosts.empty()) config.host = hosts[v];
    config.is_without_cables = cables[v].empty();
    nodes.push_back(or_throw(AddedLinks::open(config)));
    addresses.push_back(nodes.back()->address());
  }
  for (const auto& node : nodes) or_throw(node->set_addresses(addresses));
  return nodes;
}

TEST(CabledLinksTest, NamesTheNodesToWhichNoCableLeads) {
  const auto nodes = open_all({{{3, 1, "127.5.0.1", 1}},
                               {{3, 0, "127.5.1.1", 1}, {4, 2, "127.5.1.2", 1}},
                               {{4, 1, "127.5.2.1", 1}}});
  EXPECT_EQ(message_of(nodes[0]->add_link(2)), "node 0: no cable leads to node 2");
  EXPECT_EQ(message_of(nodes[0]->add_link(0)), "node 0: no address of node 0");
  EXPECT_EQ(message_of(nodes[0]->add_link(3)), "node 0: no address of node 3");
  const std::uint32_t none = 1;
  EXPECT_EQ(message_of(nodes[0]->connect_links({&none, 1})), "node 0: cannot connect link 1");
  EXPECT_EQ(nodes[0]->way_of_link(0), "over 127.5.0.1 to 127.5.1.1");
  EXPECT_EQ(nodes[0]->way_of_link(1), "");
  EXPECT_EQ(message_of(nodes[0]->set_addresses({})), "this endpoint has its addresses");
}

TEST(CabledLinksTest, BothEndsMustHaveTheSameCables) {
  const auto nodes = open_all({{{3, 1, "127.5.0.1", 2}, {4, 2, "127.5.0.2", 1}},
                               {{3, 0, "127.5.1.1", 1}},
                               {{5, 0, "127.5.2.1", 1}}});
  const std::string rest =
      " has one end only; expected the same cables, with as many lanes, at both ends";
  EXPECT_EQ(message_of(nodes[0]->add_link(1)), "address of node 1: lane 1 of cable 3" + rest);
  EXPECT_EQ(message_of(nodes[1]->add_link(0)), "address of node 0: lane 1 of cable 3" + rest);
  EXPECT_EQ(message_of(nodes[0]->add_link(2)), "address of node 2: lane 0 of cable 4" + rest);
  const auto alone = or_throw(AddedLinks::open(cabled_config(0, {{3, 1, "127.5.0.1", 1}})));
  or_throw(alone->set_addresses({"", alone->address().substr(0, 40)}));
  EXPECT_EQ(message_of(alone->add_link(1)), "address of node 1: malformed");
  const auto routed = or_throw(AddedLinks::open(cabled_config(1, {})));
  const auto other = or_throw(AddedLinks::open(cabled_config(0, {{3, 1, "127.5.0.1", 1}})));
  or_throw(other->set_addresses({"", routed->address()}));
  EXPECT_EQ(message_of(other->add_link(1)), "address of node 1: of a node without cables");
}

// Sends a message of `size` bytes over the link from a to b.
void send(AddedLinks& a, AddedLinks& b, std::uint64_t size) {
  std::vector<std::uint8_t> out(size, 1), in(size);
  const Region from = {out.data(), size}, to = {in.data(), size};
  ASSERT_EQ(a.endpoint().prepare(&from, 1), Status::kOk);
  ASSERT_EQ(b.endpoint().prepare(&to, 1), Status::kOk);
  const std::uint32_t there = or_throw(a.add_link(b.endpoint().node()));
  const std::uint32_t back = or_throw(b.add_link(a.endpoint().node()));
  ASSERT_EQ(b.endpoint().post_receive(back, {in.data(), size, 1, 0}), Status::kOk);
  ASSERT_EQ(a.endpoint().post_send(there, {out.data(), size, 1, 0, 0}), Status::kOk);
  Completion completion;
  bool has_sent = false, has_arrived = false;
  while (!has_sent || !has_arrived) {
    if (a.endpoint().poll(completion)) has_sent = completion.kind == Completion::Kind::kSent;
    if (b.endpoint().poll(completion)) has_arrived = completion.kind == Completion::Kind::kReceived;
  }
  EXPECT_EQ(in, out);
}

// The k-th message of a direction takes the k-th lane: first lanes before second ones, and cables
// in the order of their numbers, whatever the order in which they are given.
TEST(CabledLinksTest, CountsThePayloadOfEachCable) {
  const auto nodes = open_all({{{9, 1, "127.5.0.1", 2}, {3, 1, "127.5.0.2", 1}},
                               {{3, 0, "127.5.1.1", 1}, {9, 0, "127.5.1.2", 2}}});
  AddedLinks& a = *nodes[0];
  AddedLinks& b = *nodes[1];
  std::array<CableTraffic, 2> traffic;
  for (const std::uint64_t size : {1'000ULL, 70'000ULL, 100ULL, 5ULL}) send(a, b, size);
  send(b, a, 40'000);
  EXPECT_EQ(a.cable_traffic(traffic), 2u);
  EXPECT_EQ(traffic[0].number, 9u);
  EXPECT_EQ(traffic[0].sent_bytes, 70'100u);
  EXPECT_EQ(traffic[0].received_bytes, 0u);
  EXPECT_EQ(traffic[1].number, 3u);
  EXPECT_EQ(traffic[1].sent_bytes, 1'005u);
  EXPECT_EQ(traffic[1].received_bytes, 40'000u);
  EXPECT_EQ(b.cable_traffic(traffic), 2u);
  EXPECT_EQ(traffic[0].number, 3u);
  EXPECT_EQ(traffic[0].received_bytes, 1'005u);
  EXPECT_EQ(traffic[1].received_bytes, 70'100u);
  std::array<CableTraffic, 1> first;
  EXPECT_EQ(b.cable_traffic(first), 2u);
  EXPECT_EQ(first[0].sent_bytes, 40'000u);
  EXPECT_EQ(b.cable_traffic({}), 2u);
}

// Nodes 0 and 1 are on host a, 2 and 3 on host b. The only cable joins nodes 0 and 2.
TEST(CabledLinksTest, RanksOfAHostShareItsCables) {
  const auto nodes =
      open_all({{{1, 2, "127.5.0.1", 1}}, {}, {{1, 0, "127.5.2.1", 1}}, {}}, "mem+tcp", "aabb");
  for (const auto& node : nodes) EXPECT_EQ(node->nodes_per_host(), 2u);
  EXPECT_EQ(message_of(nodes[1]->add_link(2)), "node 1: no cable leads to node 2");
  EXPECT_EQ(message_of(nodes[0]->add_link(3)), "node 0: no cable leads to node 3");
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {3, 2}}) {
    send(*nodes[a], *nodes[b], 100'000);
    send(*nodes[b], *nodes[a], 10);
  }
  std::array<CableTraffic, 1> traffic;
  EXPECT_EQ(nodes[0]->cable_traffic(traffic), 1u);
  EXPECT_EQ(traffic[0].sent_bytes, 100'000u);
  EXPECT_EQ(traffic[0].received_bytes, 10u);
  EXPECT_EQ(nodes[1]->cable_traffic(traffic), 0u);
  EXPECT_TRUE(nodes[0]->has_cables() && nodes[1]->has_cables());
  const std::uint32_t link = or_throw(nodes[0]->add_link(2));
  EXPECT_EQ(nodes[0]->way_of_link(link), "over 127.5.0.1 to 127.5.2.1");
  EXPECT_EQ(nodes[0]->way_of_link(or_throw(nodes[0]->add_link(1))), "");
}

// A thread that waits in the fabric wakes at once, not at the end of its wait.
TEST(CabledLinksTest, AnotherThreadEndsTheWait) {
  const auto nodes = open_all({{{3, 1, "127.5.0.1", 1}}, {{3, 0, "127.5.1.1", 1}}});
  AddedLinks& a = *nodes[0];
  send(a, *nodes[1], 10);
  std::thread waker([&a] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    a.wake();
  });
  a.endpoint().wait(UINT64_MAX);
  waker.join();
  nodes[1]->wake();  // before the wait
  nodes[1]->endpoint().wait(UINT64_MAX);
}

}  // namespace
}  // namespace espalier::ofi
