// Tests of this back end that the conformance suite cannot contain; see also conformance_test.cc.

#include "espalier/hal/ofi/ofi_endpoint.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/testing/results.h"
#include "espalier/internal/base/limits.h"
#include "hal/fabric/address.h"
#include "hal/fabric/mixed/mixed_endpoint.h"
#include "hal/fabric/ofi/domain.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Peers = std::vector<std::vector<std::uint32_t>>;  // the nodes at the links' other ends

class OfiTest : public testing::TestWithParam<const char*> {
 protected:
  FixedConfig config() const {
    FixedConfig config;
    config.provider = GetParam();
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, OfiTest, testing::Values("tcp", "mem"),
                         [](const auto& info) { return std::string(info.param); });

Bytes pattern(std::size_t size, std::uint32_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 31 + seed * 7 + (i >> 8));
  return bytes;
}

// Polls connected endpoints and keeps their completions, by endpoint.
class Inbox {
 public:
  explicit Inbox(LocalEndpoints<FixedConfig>& endpoints)
      : endpoints_(endpoints), arrived_(endpoints.nodes.size()) {}
  void poll_all() {
    for (std::size_t v = 0; v < arrived_.size(); ++v) {
      Completion completion;
      while (endpoints_[v].poll(completion)) arrived_[v].push_back(completion);
    }
  }
  // Polls until `v` has a completion of `kind`; removes and returns it.
  Completion await(std::size_t v, Completion::Kind kind) {
    while (true) {
      for (auto it = arrived_[v].begin(); it != arrived_[v].end(); ++it) {
        if (it->kind != kind) continue;
        const Completion found = *it;
        arrived_[v].erase(it);
        return found;
      }
      poll_all();
    }
  }
  [[nodiscard]] std::size_t size(std::size_t v) const { return arrived_[v].size(); }

 private:
  LocalEndpoints<FixedConfig>& endpoints_;
  std::vector<std::vector<Completion>> arrived_;
};

// Writes to the last port of a receiver while it waits. How libfabric reports arrivals differs
// between its releases. Where it does not, a wait lasts its whole time.
void expect_wait_to_end(const Domain::Capacity& of_receiver) {
  constexpr std::uint64_t kWholeNs = 60'000'000'000;
  Domain receiver, sender;
  const auto opened = receiver.open("tcp", "", of_receiver);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(sender.open("tcp", "", {.ports = 1, .peers = 1, .completions = 16}));
  const auto port = static_cast<std::uint32_t>(of_receiver.ports - 1);
  Domain::Target from_receiver{.port = port}, to_receiver;
  ASSERT_TRUE(receiver.insert(sender.name(0), from_receiver));
  ASSERT_TRUE(sender.insert(receiver.name(port), to_receiver));
  std::uint64_t word = 0;
  Registration memory;
  ASSERT_TRUE(receiver.register_memory(&word, sizeof word, memory));
  const std::uint64_t key = receiver.key(memory, port);
  EXPECT_EQ(key == memory.key, !of_receiver.separate);
  std::atomic<bool> has_arrived = false;
  std::thread sending([&] {
    const std::uint64_t sent = 5;
    fi_cq_data_entry entry;
    while (sender.inject(to_receiver, &sent, sizeof sent, 7, memory.base, key) !=
           Domain::Result::kDone) {
      (void)sender.read_completions(&entry, 1);
    }
    while (!has_arrived) (void)sender.read_completions(&entry, 1);
  });
  fi_cq_data_entry entry = {};
  std::uint64_t longest_ns = 0;
  while (receiver.read_completions(&entry, 1) == 0) {
    const std::uint64_t start = monotonic_ns();
    EXPECT_TRUE(receiver.wait(kWholeNs));
    longest_ns = std::max(longest_ns, monotonic_ns() - start);
  }
  has_arrived = true;
  sending.join();
  EXPECT_EQ(entry.data, 7u);
  EXPECT_EQ(word, 5u);
  EXPECT_LT(longest_ns, kWholeNs);
  receiver.deregister(memory);
  ASSERT_TRUE(receiver.register_memory(&word, sizeof word, memory));
  EXPECT_NE(receiver.key(memory, port), key) << "new for each registration";
  receiver.deregister(memory);
}

TEST(Domain, AWaitEndsWhenSomethingArrives) {
  expect_wait_to_end({.ports = 1, .peers = 1, .completions = 16});
  Domain::Capacity two{.ports = 2, .peers = 1, .completions = 16};
  two.addresses = {"127.6.0.1", "127.6.0.2"};
  expect_wait_to_end(two);
  two.separate = true;
  expect_wait_to_end(two);
}

void expect_words(const std::string& message, const char* words) {
  EXPECT_NE(message.find(words), std::string::npos) << message;
}

TEST(Ofi, NamesWhatIsWrong) {
  FixedConfig config;
  config.provider = "carrier-pigeon";
  EXPECT_FALSE(known_provider("carrier-pigeon"));
  expect_words(message_of(FixedLinks::open(config)), "\"carrier-pigeon\"");
  EXPECT_TRUE(known_provider("tcp"));
  for (const char* shm : {"shm", "mem+shm"}) {
    config.provider = shm;
    for (const std::string& refusal :
         {message_of(check_provider(shm)), message_of(FixedLinks::open(config))}) {
      EXPECT_EQ(refusal, std::string("provider \"") + shm +
                             "\": a peer that is stopped or killed can block all processes that "
                             "share its memory; expected mem, which joins the processes of one "
                             "host");
    }
  }
  expect_words(message_of(check_provider("udp")), "FI_EP_RDM");
  expect_words(message_of(check_provider("udp;ofi_rxd")), "crashes");
  for (const char* layered : {"tcp;ofi_rxm", "net;ofi_rxm"}) {
    for (const char* words : {"ofi_rxm crashes", "expected tcp"}) {
      expect_words(message_of(check_provider(layered)), words);
    }
  }
  expect_words(message_of(check_provider("sockets")), "deprecated");

  config.provider = "tcp";
  config.local_address = "203.0.113.77";  // No interface has it.
  expect_words(message_of(FixedLinks::open(config)), "203.0.113.77");
  config.local_address = "300.1.1.1";
  expect_words(message_of(FixedLinks::open(config)), "300.1.1.1: this is not an IP address");
  config.local_address.clear();
  config.window = 0;
  expect_words(message_of(FixedLinks::open(config)), "window 0");
  config.window = 4;
  config.peers = {0};
  expect_words(message_of(FixedLinks::open(config)), "itself");
  config.peers = {1, 2};
  for (const std::vector<FixedConfig::Lanes>& lanes :
       {std::vector<FixedConfig::Lanes>{{1, 1}}, {{1, 1}, {0, 0}}, {{1, 1}, {1, kMaxLinks}}}) {
    config.lanes = lanes;
    const bool is_one = lanes.size() == 1 || lanes[1].out == 0;
    expect_words(message_of(FixedLinks::open(config)),
                 is_one ? " has 1 lane for 2 links" : " lanes for 2 links");
  }
}

// What cannot be bound is named before anything is opened, an address that this host does not have
// when it is bound.
TEST(Ofi, LaneAddressesFitTheLanes) {
  FixedConfig config;
  config.node = 0;
  config.peers = {1, 2};
  config.lane_addresses = {"127.2.0.1", "127.2.0.2"};
  expect_words(message_of(FixedLinks::open(config)), "2 lane addresses for 0 lanes");
  config.lanes = {{1, 1}, {1, 2}};
  expect_words(message_of(FixedLinks::open(config)), "2 lane addresses for 3 lanes; expected one");
  config.lanes = {{1, 1}, {1, 1}};
  config.local_address = "127.0.0.1";
  expect_words(message_of(FixedLinks::open(config)), "no local_address");
  config.local_address.clear();
  config.lane_addresses[1] = "203.0.113.77";
  expect_words(message_of(FixedLinks::open(config)), "203.0.113.77: fi_endpoint: Cannot assign");
  config.lane_addresses[1] = "::1";
  expect_words(message_of(FixedLinks::open(config)),
               "::1: not an address of the kind of the first lane's; expected IPs of one family");
  config.lane_addresses[1] = "300.1.1.1";
  expect_words(message_of(FixedLinks::open(config)), "300.1.1.1: this is not an IP address");
  config.provider = "mem";
  expect_words(message_of(FixedLinks::open(config)), "mem binds no addresses");
  config.lane_addresses.clear();
  config.separate_domains = true;
  expect_words(message_of(FixedLinks::open(config)), "separate_domains without lane_addresses");
}

// The address says which of the lanes to a node has a wrong cable.
TEST(Ofi, ALaneThatDoesNotConnectIsNamedByItsAddress) {
  FixedConfig config;
  config.lanes = {{1, 1}};
  config.lane_addresses = {"127.7"};
  config.connect_deadline_ns = 100'000'000;
  const auto here = or_throw(FixedLinks::open(for_node(config, 0, {1})));
  const auto there = or_throw(FixedLinks::open(for_node(config, 1, {0})));
  const auto connected = here->connect(there->addresses());
  EXPECT_EQ(message_of(connected), "node 1 did not connect at 127.7.0.1 within 100 ms");
}

// The connections between addresses that begin with the byte 127 and this one: both ends of each,
// in the order in which the bytes travel.
std::set<std::pair<std::uint32_t, std::uint32_t>> connections_of(std::uint8_t second) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> found;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    unsigned here = 0, here_port = 0, there = 0, there_port = 0, state = 0;
    if (std::sscanf(line.c_str(), " %*d: %8X:%4X %8X:%4X %2X", &here, &here_port, &there,
                    &there_port, &state) != 5) {
      continue;
    }
    here = ntohl(here);
    there = ntohl(there);
    const unsigned net = 127u << 8 | second;
    if (state == 1 && here >> 16 == net && there >> 16 == net) found.insert({here, there});
  }
  return found;
}

// Every lane publishes its own address, and its two ends connect from there to there, and to
// nothing else.
TEST(Ofi, EachLaneBindsItsOwnAddress) {
  FixedConfig config;
  config.lanes = {{2, 2}};
  config.lane_addresses = {"127.3"};
  LocalEndpoints endpoints(config, {{1, 2}, {0, 2}, {0, 1}});
  ASSERT_EQ(endpoints.error, "");
  std::set<std::pair<std::uint32_t, std::uint32_t>> expected;
  const auto expect_lanes = [&expected](std::uint32_t low, std::uint32_t first, std::uint32_t high,
                                        std::uint32_t other) {
    for (std::uint32_t lane = 1; lane <= 2; ++lane) {
      const std::uint32_t net = 127u << 24 | 3u << 16;
      const std::uint32_t here = net | low << 8 | (first + lane);
      const std::uint32_t there = net | high << 8 | (other + lane);
      expected.insert({{here, there}, {there, here}});
    }
  };
  expect_lanes(0, 0, 1, 0);
  expect_lanes(0, 2, 2, 0);
  expect_lanes(1, 2, 2, 2);
  EXPECT_EQ(connections_of(3), expected);
  const auto hosts = [&endpoints](std::uint32_t node) {
    std::vector<std::string> all;
    for (const std::string& address : endpoints.nodes[node]->addresses()) {
      const std::string text = address_text(address);
      all.push_back(text.substr(0, text.find(':')));
    }
    return all;
  };
  for (std::uint32_t node = 0; node < 3; ++node) {
    const std::string net = "127.3." + std::to_string(node) + ".";
    EXPECT_EQ(hosts(node), (std::vector{net + "1", net + "2", net + "3", net + "4"}));
  }
  endpoints[0].release();
  EXPECT_EQ(hosts(0).front(), "127.3.0.1");
}

// Nodes 0 and 1 are on one host, node 2 on another.
TEST(Mixed, UsesMemoryWithinAHost) {
  AddedConfig config;
  config.provider = "mem+tcp";
  config.max_links = 4;
  std::vector<std::unique_ptr<AddedLinks>> nodes;
  std::vector<std::string> addresses;
  for (std::uint32_t node = 0; node < 3; ++node) {
    config.node = node;
    config.host = node == 2 ? "b" : "a";
    nodes.push_back(or_throw(AddedLinks::open(config)));
    addresses.push_back(nodes.back()->address());
  }
  ASSERT_TRUE(nodes[0]->set_addresses({addresses[0], addresses[1]}));
  EXPECT_EQ(nodes[0]->nodes_per_host(), 2u);
  ASSERT_TRUE(nodes[1]->set_addresses(addresses));
  EXPECT_EQ(nodes[1]->nodes_per_host(), 1u) << "a, a, b";
  EXPECT_EQ(message_of(nodes[1]->add_link(3)), "node 1: no address of node 3");
  AddedConfig alone;
  alone.host = "a";
  alone.max_links = 1;
  EXPECT_EQ(message_of(AddedLinks::open(alone)),
            "node 0: host \"a\" with provider tcp, which does not ask who shares memory; expected "
            "mem+NAME");
  FixedConfig fixed;
  fixed.provider = "mem+tcp";
  fixed.node = 2;
  fixed.peers = {1};
  EXPECT_EQ(message_of(FixedLinks::open(fixed)),
            "node 2: provider mem+tcp finds out which peers are on this host; with fixed links, "
            "expected mem or tcp");
  config.provider = "mem+mem";
  EXPECT_EQ(message_of(AddedLinks::open(config)),
            "provider \"mem+mem\": mem is of one host; expected mem alone, or mem+tcp");
  EXPECT_FALSE(known_provider("mem+mem"));
}

// Every node says how many nodes each host has, if all have as many and in succession.
TEST(Mixed, CountsTheNodesOfAHost) {
  const std::pair<const char*, std::uint32_t> kCases[] = {
      {"aaaa", 4}, {"aabb", 2},   {"abcd", 1},   {"aaab", 1},
      {"abab", 1}, {"aabbaa", 1}, {"aaabbb", 3}, {"aabbcc", 2}};
  for (const auto& [hosts, nodes_per_host] : kCases) {
    AddedConfig config;
    config.provider = "mem+tcp";
    config.max_links = 8;
    config.host = hosts;
    const LocalEndpoints endpoints(config, Peers(config.host.size()));
    ASSERT_EQ(endpoints.error, "");
    for (const auto& node : endpoints.nodes) {
      EXPECT_EQ(node->nodes_per_host(), nodes_per_host) << hosts;
    }
  }
}

// Links are numbered by one part alone if the numbers of one could run out.
TEST(Mixed, LeavesMemoryOutWhereNodesExceedLinks) {
  AddedConfig config;
  config.provider = "mem+tcp";
  config.max_links = 1;
  config.host = "a";
  const LocalEndpoints endpoints(config, Peers(3));
  AddedLinks& zero = *endpoints.nodes[0];
  EXPECT_EQ(zero.nodes_per_host(), 1u);
  EXPECT_EQ(or_throw(zero.add_link(2)), 0u);
  EXPECT_FALSE(zero.add_link(1));
  EXPECT_EQ(message_of(zero.set_addresses({})), "this endpoint has its addresses");
}

// Lowers the limit of open files to the lowest that leaves `free` ones, while it lives.
class FreeFiles {
 public:
  explicit FreeFiles(rlim_t free) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlim_t limit = 0;
    for (; free > 0; ++limit) {
      if (fcntl(static_cast<int>(limit), F_GETFD) < 0) --free;
    }
    const rlimit lowered{limit, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
    limit_ = std::to_string(limit);
  }
  FreeFiles(const FreeFiles&) = delete;
  FreeFiles& operator=(const FreeFiles&) = delete;
  ~FreeFiles() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  const std::string& limit() const { return limit_; }

 private:
  rlimit before_{};
  std::string limit_;
};

void few_open_files_are_named(bool is_shared) {
  SCOPED_TRACE(is_shared);
  AddedConfig config;
  config.max_links = 4;
  std::vector<std::unique_ptr<AddedLinks>> nodes;
  std::vector<std::string> addresses;
  for (config.node = 0; config.node < 3; ++config.node) {
    if (is_shared) config.fabric = make_shared_fabric();
    if (config.node == 1) {
      const FreeFiles files(11);
      EXPECT_EQ(message_of(AddedLinks::open(config)),
                "provider \"tcp\": an endpoint needs 12 more open files; the limit of " +
                    files.limit() + " leaves 11 (ulimit -n)");
    }
    const FreeFiles enough(12);
    nodes.push_back(or_throw(AddedLinks::open(config)));
    addresses.push_back(nodes.back()->address());
  }
  ASSERT_TRUE(nodes[0]->set_addresses(addresses));
  const FreeFiles one(1);
  EXPECT_TRUE(nodes[0]->add_link(1));
  const std::string message = message_of(nodes[0]->add_link(2));
  EXPECT_EQ(message, "node 0 needs 2 more open files; the limit of " + one.limit() +
                         " leaves 1 (ulimit -n)");
}

TEST(Ofi, FewOpenFilesAreNamed) {
  few_open_files_are_named(false);
  few_open_files_are_named(true);
}

// Each container is a host of its own, and so is each user.
TEST(Mixed, AHostIsNamedByWhatItsProcessesShare) {
  EXPECT_EQ(host_name(""), host_name(""));
  EXPECT_EQ(host_name("a"), host_name("a"));
  EXPECT_NE(host_name("a"), host_name("b"));
  EXPECT_NE(host_name("a"), host_name(""));
}

TEST(Ofi, RefusesAddressesThatDoNotFit) {
  FixedConfig config;
  config.peers = {1};
  const auto zero = or_throw(FixedLinks::open(config));
  config.node = 1;
  config.peers = {0};
  config.window = 4;
  const auto one = or_throw(FixedLinks::open(config));
  config.node = 2;
  const auto two = or_throw(FixedLinks::open(config));
  EXPECT_EQ(message_of(zero->connect({})), "0 addresses for 1 lane");
  expect_words(message_of(zero->connect({"rubbish"})), "node 1: too short");
  expect_words(message_of(zero->connect({std::string(100, 'x')})), "node 1: malformed");
  expect_words(message_of(zero->connect({one->addresses()[0]})), "window 4");
  expect_words(message_of(zero->connect({two->addresses()[0]})), "node 2");
  EXPECT_FALSE(two->connect({zero->addresses()[0]}));
}

TEST_P(OfiTest, PairsParallelLinksInOrder) {
  LocalEndpoints endpoints(config(), {{1, 1}, {0, 0}});
  ASSERT_EQ(endpoints.error, "");
  Inbox inbox(endpoints);
  for (std::uint32_t link = 0; link < 2; ++link) {
    std::uint32_t got = 0;
    const std::uint32_t sent = 40 + link;
    ASSERT_EQ(endpoints[0].post_send(link, {&sent, sizeof(sent), 1, 0, 0}), Status::kOk);
    ASSERT_EQ(endpoints[1].post_receive(link, {&got, sizeof(got), 1, 0}), Status::kOk);
    EXPECT_EQ(inbox.await(1, Completion::Kind::kReceived).link, link);
    EXPECT_EQ(got, sent);
    EXPECT_EQ(inbox.await(0, Completion::Kind::kSent).link, link);
  }
}

// Returns the libfabric addresses that the other ends of an endpoint's lanes know.
std::set<std::string> names(const FixedLinks& endpoint) {
  std::set<std::string> all;
  for (const std::string& address : endpoint.addresses()) all.insert(address_text(address));
  return all;
}

TEST(Ofi, RoutedHasOneEndpointHopByHopOnePerLane) {
  FixedConfig config;
  LocalEndpoints routed(config, {{1, 2}, {0, 2}, {0, 1}});
  ASSERT_EQ(routed.error, "");
  EXPECT_EQ(names(*routed.nodes[0]).size(), 1u);
  config.lanes = {{3, 2}};
  LocalEndpoints hop_by_hop(config, {{1, 2}, {0, 2}, {0, 1}});
  ASSERT_EQ(hop_by_hop.error, "");
  EXPECT_EQ(hop_by_hop[0].links(), 2u);
  EXPECT_EQ(hop_by_hop.nodes[0]->lane_peers(), (std::vector<std::uint32_t>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(names(*hop_by_hop.nodes[0]).size(), 6u);
  for (const std::string& name : names(*hop_by_hop.nodes[0])) {
    EXPECT_TRUE(name.starts_with("127.0.0.1:"));
  }
}

// Messages are reported in order although their lengths and lanes differ. Each direction has its
// own number of lanes.
TEST_P(OfiTest, ReportsMessagesInOrderOverUnevenLanes) {
  FixedConfig config = this->config();
  config.window = 8;
  config.lanes = {{3, 2}};
  LocalEndpoints endpoints(config, {{1}, {0}});
  ASSERT_EQ(endpoints.error, "");
  Inbox inbox(endpoints);
  constexpr std::uint32_t kMessages = 300;
  constexpr std::size_t kLong = 50000;
  const auto size = [](std::uint32_t n) { return n % 7 == 0 ? kLong : n % 5; };
  const Bytes out = pattern(kLong, 9);
  std::vector<Bytes> in = {Bytes(8 * kLong), Bytes(8 * kLong)};
  for (std::uint32_t v = 0; v < 2; ++v) {
    const Region region = {in[v].data(), in[v].size()};
    ASSERT_EQ(endpoints[v].prepare(&region, 1), Status::kOk);
  }
  for (std::uint32_t n = 0; n < kMessages; ++n) {
    for (std::uint32_t v = 0; v < 2; ++v) {
      if (n >= 8) {
        EXPECT_EQ(inbox.await(v, Completion::Kind::kReceived).context, n - 8);
        EXPECT_EQ(inbox.await(v, Completion::Kind::kSent).context, n - 8);
        const std::uint8_t* got = in[v].data() + n % 8 * kLong;
        EXPECT_TRUE(std::equal(got, got + size(n - 8), out.begin()));
      }
      ASSERT_EQ(endpoints[v].post_receive(0, {in[v].data() + n % 8 * kLong, size(n), n, n}),
                Status::kOk);
      ASSERT_EQ(endpoints[v].post_send(0, {out.data(), size(n), n, 0, n}), Status::kOk);
    }
  }
}

TEST(Ofi, OnlyControlsAreSentAgainstAOneWayLink) {
  FixedConfig config;
  config.lanes = {{1, 0}};
  LocalEndpoints endpoints(config, {{1}, {0}});
  ASSERT_EQ(endpoints.error, "");
  Inbox inbox(endpoints);
  std::uint32_t sent = 7;
  std::uint32_t got = 0;
  EXPECT_EQ(endpoints[1].post_send(0, {&sent, sizeof(sent), 1, 0, 0}), Status::kBadArgument);
  EXPECT_EQ(endpoints[0].post_receive(0, {&got, sizeof(got), 1, 0}), Status::kBadArgument);
  ASSERT_EQ(endpoints[0].post_send(0, {&sent, sizeof(sent), 1, 0, 0}), Status::kOk);
  ASSERT_EQ(endpoints[1].post_receive(0, {&got, sizeof(got), 1, 0}), Status::kOk);
  inbox.await(1, Completion::Kind::kReceived);
  EXPECT_EQ(got, sent);
  ASSERT_EQ(endpoints[1].post_control(0, {ControlKind::kProbe, 5, {}}), Status::kOk);
  EXPECT_EQ(inbox.await(0, Completion::Kind::kControl).control.number, 5u);
}

// Short messages alternate with long ones that the receiver takes late: slots become free again for
// every pattern.
TEST_P(OfiTest, GivesSlotsBackAmongLongMessages) {
  FixedConfig config = this->config();
  config.window = 8;
  config.eager_bytes = 256;
  LocalEndpoints endpoints(config, {{1}, {0}});
  ASSERT_EQ(endpoints.error, "");
  Inbox inbox(endpoints);
  constexpr std::size_t kLong = 1000;
  for (std::uint32_t period = 1; period < 20; ++period) {
    const Bytes out = pattern(kLong, period);
    Bytes in(8 * kLong);
    const Region region = {in.data(), in.size()};
    ASSERT_EQ(endpoints[1].prepare(&region, 1), Status::kOk);
    const auto size = [&](std::uint32_t n) { return n % period == 0 ? std::size_t{9} : kLong; };
    std::uint32_t sent = 0;
    for (std::uint32_t n = 0; n < 100; ++n) {
      for (; sent < 100 && sent < n + 8; ++sent) {
        if (sent >= 8) inbox.await(0, Completion::Kind::kSent);
        ASSERT_EQ(endpoints[0].post_send(0, {out.data(), size(sent), sent, 0, 0}), Status::kOk);
      }
      std::uint8_t* to = in.data() + n % 8 * kLong;
      ASSERT_EQ(endpoints[1].post_receive(0, {to, size(n), n, 0}), Status::kOk);
      EXPECT_EQ(inbox.await(1, Completion::Kind::kReceived).status, Status::kOk);
      EXPECT_TRUE(std::equal(to, to + size(n), out.begin()));
    }
    for (std::uint32_t n = 0; n < 8; ++n) inbox.await(0, Completion::Kind::kSent);
  }
}

}  // namespace
}  // namespace espalier::ofi
