// The search for cables over a simulated network: graphs that are found, what is named, and that
// packets of strangers have no effect.

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/contains.h"
#include "bootstrap/cables/discovery.h"
#include "bootstrap/cables/graph.h"
#include "bootstrap/cables/packet.h"

namespace espalier::cables {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Kind = Finding::Kind;

const Key kKey = key_of({1, 2, 3});
constexpr Time kBegin = std::chrono::seconds(100);
constexpr Time kLatency = microseconds(20);

network::Address address_of(std::uint32_t host, std::uint32_t port) {
  network::Address address{.is_v6 = true, .port = 9, .scope = 1};
  address.ip = {0xfe, 0x80};
  address.ip[14] = static_cast<std::uint8_t>(host);
  address.ip[15] = static_cast<std::uint8_t>(port);
  return address;
}

// An interface of a simulated host; ports are numbered from 1.
struct Place {
  std::uint32_t host = 0, port = 0;
  auto operator<=>(const Place&) const = default;
};

// Hosts, and media that carry packets from one of their places to all others.
class Network {
 public:
  explicit Network(std::uint32_t hosts, std::uint32_t ports = 4, std::uint64_t seed = 7)
      : random_(seed) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      add_host("box" + std::to_string(host), ports);
    }
  }
  void add_host(const std::string& name, std::uint32_t ports) {
    hosts_.push_back(std::make_unique<Discovery>(Identity{random_(), 1000 + hosts_.size(), name},
                                                 kKey, [this] { return random_(); }));
    std::vector<Port> all;
    for (std::uint32_t port = 1; port <= ports; ++port) {
      all.push_back({port, "eth" + std::to_string(port), 1000, 1500});
    }
    hosts_.back()->set_ports(all, now_);
    is_on_.push_back(true);
  }
  void join(std::vector<Place> places) { media_.push_back(std::move(places)); }
  void lose_from(Place place) { mute_.push_back(place); }
  void turn_off(std::uint32_t host) { is_on_[host] = false; }
  [[nodiscard]] Discovery& host(std::uint32_t number) { return *hosts_[number]; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] const std::vector<std::string>& sent() const { return sent_; }

  void run_for(Time time) {
    const Time end = now_ + time;
    while (true) {
      Time next = end;
      for (std::size_t host = 0; host < hosts_.size(); ++host) {
        if (is_on_[host]) next = std::min(next, std::max(hosts_[host]->next_due(), now_));
      }
      if (!flying_.empty()) next = std::min(next, flying_.top().at);
      now_ = next;
      if (next == end) return;
      deliver();
      for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
        if (is_on_[host]) send(host, hosts_[host]->take_due(now_));
      }
    }
  }
  void send(std::uint32_t host, const std::vector<Discovery::Outgoing>& packets) {
    for (const Discovery::Outgoing& packet : packets) {
      sent_.push_back(packet.bytes);
      const Place from{host, packet.port};
      if (std::find(mute_.begin(), mute_.end(), from) != mute_.end()) continue;
      for (const auto& medium : media_) {
        if (std::find(medium.begin(), medium.end(), from) == medium.end()) continue;
        for (const Place place : medium) {
          const bool is_meant = !packet.to || *packet.to == address_of(place.host, place.port);
          if (place != from && is_meant) {
            flying_.push({now_ + kLatency, next_++, from, place, packet.bytes});
          }
        }
      }
    }
  }
  [[nodiscard]] Graph graph(std::uint32_t host, std::uint32_t expected = 0) {
    return graph_of(hosts_[host]->hosts(), expected);
  }

 private:
  struct Flight {
    Time at{0};
    std::uint64_t number = 0;
    Place from = {}, to = {};
    std::string bytes = {};
    bool operator<(const Flight& other) const {
      return std::tie(other.at, other.number) < std::tie(at, number);
    }
  };
  void deliver() {
    while (!flying_.empty() && flying_.top().at <= now_) {
      const Flight flight = flying_.top();
      flying_.pop();
      if (!is_on_[flight.to.host]) continue;
      hosts_[flight.to.host]->receive(
          flight.to.port, address_of(flight.from.host, flight.from.port), flight.bytes, now_);
    }
  }

  std::mt19937_64 random_;
  Time now_ = kBegin;
  std::vector<std::unique_ptr<Discovery>> hosts_;
  std::vector<bool> is_on_;
  std::vector<std::vector<Place>> media_;
  std::vector<Place> mute_;
  std::priority_queue<Flight> flying_;
  std::uint64_t next_ = 0;
  std::vector<std::string> sent_;
};

std::string text(const Graph& graph) {
  std::string all;
  for (const Cable& cable : graph.cables) {
    all += graph.text(cable.a) + "-" + graph.text(cable.b) + " ";
  }
  for (const Finding& finding : graph.findings) all += std::string(name_of(finding.kind)) + " ";
  return all;
}

// box0 to box3 in a ring: port 1 leads to the next host, port 2 to the one before.
void make_ring(Network& network, std::uint32_t hosts) {
  for (std::uint32_t host = 0; host < hosts; ++host) {
    network.join({{host, 1}, {(host + 1) % hosts, 2}});
  }
}
constexpr const char* kRing =
    "box0 eth1-box1 eth2 box0 eth2-box3 eth1 box1 eth1-box2 eth2 "
    "box2 eth1-box3 eth2 ";

TEST(Cables, EveryHostFindsTheWholeRing) {
  Network network(4);
  make_ring(network, 4);
  network.run_for(milliseconds(350));
  for (std::uint32_t host = 0; host < 4; ++host) {
    const Graph graph = network.graph(host, 4);
    EXPECT_EQ(text(graph), kRing);
    EXPECT_FALSE(network.host(host).is_beginning());
    for (const Cable& cable : graph.cables) {
      EXPECT_EQ(cable.round_trip_ns, static_cast<std::uint64_t>((2 * kLatency).count()));
    }
    EXPECT_EQ(network.host(host).refused(), 0u);
    EXPECT_FALSE(network.host(host).all_content());
  }
  EXPECT_EQ(text(network.graph(0, 5)), std::string(kRing) + "missing ");
}

TEST(Cables, HostsEndTogetherAndStayInTheGraph) {
  Network network(4);
  make_ring(network, 4);
  network.run_for(milliseconds(400));
  for (std::uint32_t host = 0; host < 3; ++host)
    network.host(host).set_content(true, network.now());
  network.run_for(milliseconds(50));
  EXPECT_FALSE(network.host(0).all_content());  // host 3 is not
  network.host(3).set_content(true, network.now());
  network.run_for(milliseconds(50));
  for (std::uint32_t host = 0; host < 4; ++host) EXPECT_TRUE(network.host(host).all_content());
  network.send(1, network.host(1).leave(network.now()));
  network.run_for(microseconds(100));
  network.turn_off(1);
  network.run_for(std::chrono::seconds(8));
  EXPECT_TRUE(network.host(0).has_any_left());
  EXPECT_EQ(text(network.graph(3, 4)), kRing);
}

TEST(Cables, AHostThatEndsWithoutAWordIsForgotten) {
  Network network(4);
  make_ring(network, 4);
  network.run_for(milliseconds(400));
  network.turn_off(1);
  network.run_for(milliseconds(1300));
  EXPECT_EQ(text(network.graph(3)), "box0 eth2-box3 eth1 box2 eth1-box3 eth2 ");
  EXPECT_EQ(network.graph(3).hosts.size(), 3u);
}

TEST(Cables, ANewRunOfAHostTakesThePlaceOfTheOneThatLeft) {
  Network network(2);
  network.join({{0, 1}, {1, 1}});
  network.run_for(milliseconds(400));
  network.send(1, network.host(1).leave(network.now()));
  network.run_for(microseconds(100));
  network.turn_off(1);
  network.add_host("box1", 4);
  network.join({{0, 1}, {2, 1}});
  network.run_for(milliseconds(400));
  EXPECT_EQ(text(network.graph(0)), "box0 eth1-box1 eth1 ");
  EXPECT_EQ(text(network.graph(2)), "box0 eth1-box1 eth1 ");
}

TEST(Cables, FaultsAndOddCablesAreNamed) {
  Network network(3);
  network.join({{0, 1}, {1, 1}});
  network.join({{0, 2}, {1, 2}});          // two lanes
  network.join({{1, 3}, {2, 3}});          // seen from one side only
  network.join({{0, 4}, {1, 4}, {2, 4}});  // a switch
  network.join({{2, 1}, {2, 2}});          // a loop
  network.lose_from({1, 3});
  network.run_for(milliseconds(900));
  for (std::uint32_t host = 0; host < 3; ++host) {
    const Graph graph = network.graph(host);
    EXPECT_EQ(text(graph),
              "box0 eth1-box1 eth1 box0 eth2-box1 eth2 one-sided switch loop lanes islands ");
    EXPECT_EQ(graph.findings[0].text,
              "a cable is seen from one side only: box1 eth3 receives from box2 eth3, which does "
              "not receive from it");
    EXPECT_PRED2(contains, graph.findings[4].text, "box0, box1; box2");
    EXPECT_EQ(graph.networks.size(), 1u);
  }
}

TEST(Cables, HostsOfOneNameAndSearchesOnOneHostAreNamed) {
  Network network(1);
  network.add_host("box0", 2);
  network.join({{0, 1}, {1, 1}});
  network.run_for(milliseconds(400));
  EXPECT_EQ(text(network.graph(0)), "box0 eth1-box0#2 eth1 same-name ");
  HostRecord one{.host = 1, .network = 5, .name = "a"}, other{.host = 2, .network = 5, .name = "b"};
  one.ports = {
      {{.number = 1, .name = "x", .mtu = 1500}, {{.host = 2, .port = 1, .is_proven = true}}}};
  other.ports = {
      {{.number = 1, .name = "y", .mtu = 9000}, {{.host = 1, .port = 1, .is_proven = true}}},
      {{.number = 2, .name = "z", .state = PortState::kNoIpv6}, {}}};
  EXPECT_EQ(text(graph_of({one, other}, 2)), "a x-b y twice mtu no-probe ");
}

TEST(Cables, NamesAreInTheOrderOfTheirNumbers) {
  Graph graph;
  for (const char* name : {"box10", "box2", "a", "box02", "box2"}) graph.hosts.push_back({name});
  EXPECT_EQ(order_hosts(graph), (std::vector<std::uint32_t>{4, 1, 0, 3, 2}));
  EXPECT_EQ(graph.hosts[2].name, "box2#2");
}

// Packets of an earlier run at all ports, and those of this run that are older than a second at all
// ports with a cable, in any order; and each port's packets sent back to it at once. Not noticed
// are a stranger that carries packets from one cable to another within a second, as a switch does,
// and one that repeats this run's packets on an interface without a neighbour: that one is named.
TEST(Cables, RepeatedPacketsHaveNoEffect) {
  Network earlier(4, 4, 8);
  make_ring(earlier, 4);
  earlier.run_for(milliseconds(600));
  std::vector<std::string> recorded = earlier.sent();
  Network network(4);
  make_ring(network, 4);
  std::mt19937 random(3);
  for (int round = 0; round < 250; ++round) {
    const std::size_t before = network.sent().size();
    network.run_for(milliseconds(10));
    if (round == 30) recorded = network.sent();  // which are repeated later
    for (std::uint32_t host = 0; host < 4; ++host) {
      for (int i = 0; i < 20 && (round < 30 || round > 140); ++i) {
        network.host(host).receive(1 + random() % (round < 30 ? 4 : 2), address_of(9, 9),
                                   recorded[random() % recorded.size()], network.now());
      }
      for (std::size_t i = before; i < network.sent().size(); ++i) {
        const auto packet = open(network.sent()[i], kKey);
        if (packet->host_name != "box" + std::to_string(host)) continue;
        network.host(host).receive(packet->port, address_of(9, 9), network.sent()[i],
                                   network.now());
      }
    }
  }
  for (std::uint32_t host = 0; host < 4; ++host) {
    const Graph graph = network.graph(host);
    EXPECT_EQ(graph.hosts.size(), 4u);
    EXPECT_PRED2(contains, text(graph), kRing);
    for (const Finding& finding : graph.findings) EXPECT_FALSE(finding.is_fault()) << finding.text;
    EXPECT_GT(network.host(host).refused(), 400u);
  }
}

std::string sealed(std::string body) {
  std::string code(crypto_shorthash_BYTES, '\0');
  crypto_shorthash(reinterpret_cast<unsigned char*>(code.data()),
                   reinterpret_cast<const unsigned char*>(body.data()), body.size(), kKey.data());
  return body + code;
}

TEST(Cables, PacketsAreReadOrRefusedWhole) {
  Network network(4);
  make_ring(network, 4);
  network.run_for(milliseconds(600));
  const std::vector<std::string>& packets = network.sent();
  ASSERT_GT(packets.size(), 50u);
  std::mt19937 random(5);
  Discovery reader({1, 1, "reader"}, kKey, [] { return 4; });
  reader.set_ports({{1, "eth1", 0, 1500}}, kBegin);
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = packets[random() % packets.size()];
    const auto whole = open(bytes, kKey);
    ASSERT_TRUE(whole);
    EXPECT_EQ(seal(*whole, kKey), bytes);
    const std::size_t changed = random() % bytes.size();
    bytes[changed] = static_cast<char>(bytes[changed] ^ (1 + random() % 255));
    EXPECT_FALSE(open(bytes, kKey));
    EXPECT_FALSE(open(bytes.substr(0, changed), kKey));
    // The same by someone who knows the secret.
    std::string body = bytes.substr(0, bytes.size() - crypto_shorthash_BYTES);
    if (random() % 4 == 0) body.resize(random() % body.size());
    const std::string again = sealed(body);
    const auto packet = open(again, kKey);
    if (packet) {
      EXPECT_EQ(seal(*packet, kKey), again);
    }
    read += packet ? 1 : 0;
    reader.receive(1, address_of(1, 1), again, kBegin + milliseconds(round));
    (void)reader.take_due(kBegin + milliseconds(round));
    EXPECT_LE(reader.hosts().size(), kMaxHosts);
  }
  EXPECT_GT(read, 1000);
  EXPECT_FALSE(open("", kKey));
  EXPECT_FALSE(open(packets[0], key_of({9})));
  EXPECT_FALSE(open(packets[0] + std::string(kMaxPacketBytes, 'x'), kKey));
}

}  // namespace
}  // namespace espalier::cables
