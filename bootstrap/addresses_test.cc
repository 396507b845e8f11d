// Which addresses a job tries and chooses.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/network/address.h"
#include "base/testing/contains.h"
#include "base/testing/free_port.h"
#include "base/testing/results.h"
#include "bootstrap/attempts.h"
#include "bootstrap/data_address.h"
#include "bootstrap/first_word.h"
#include "bootstrap/listener.h"
#include "bootstrap/subnet_probe.h"
#include "bootstrap/testing/members.h"

namespace espalier::bootstrap {
namespace {

using network::Address;
using network::Interface;
using network::InterfaceKind;

std::vector<Interface> interfaces() {
  return {{.name = "lo",
           .index = 1,
           .kind = InterfaceKind::kLoopback,
           .addresses = {{ip("127.0.0.1"), 8}}},
          {.name = "docker0",
           .index = 2,
           .kind = InterfaceKind::kBridge,
           .addresses = {{ip("172.17.0.1"), 16}}},
          {.name = "tun0",
           .index = 3,
           .kind = InterfaceKind::kPointToPoint,
           .addresses = {{ip("10.8.0.1"), 24}}},
          {.name = "eth0",
           .index = 4,
           .addresses = {{ip("fe80::1"), 64}, {ip("10.0.0.1"), 24}, {ip("fd00::1"), 64}}}};
}

std::string hosts_of(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& each : addresses) text += (text.empty() ? "" : " ") + each.host();
  return text;
}

TEST(Addresses, CandidatesBeginWithTheLaunchers) {
  unsetenv("SSH_CONNECTION");
  const Candidates own = own_candidates(interfaces(), 4000);
  EXPECT_EQ(hosts_of(own.addresses), "10.0.0.1 fd00::1 172.17.0.1 10.8.0.1 fe80::1 127.0.0.1");
  EXPECT_EQ(own.addresses.front().port, 4000);
  setenv("SSH_CONNECTION", "10.8.0.9 50000 10.8.0.1 22", 1);
  EXPECT_EQ(hosts_of(own_candidates(interfaces(), 1).addresses),
            "10.8.0.1 10.0.0.1 fd00::1 172.17.0.1 fe80::1 127.0.0.1");
  for (const char* wrong : {"", "10.8.0.9", "1 2 3 4", "10.8.0.9 50000 10.7.0.1 22"}) {
    setenv("SSH_CONNECTION", wrong, 1);
    EXPECT_EQ(own_candidates(interfaces(), 1).addresses.front().host(), "10.0.0.1") << wrong;
  }
  unsetenv("SSH_CONNECTION");
}

TEST(Addresses, TicketsFitALauncher) {
  Ticket ticket{.secret = {1, 2, 3}};
  ticket.server.network = 0x123456789abcdef0;
  for (unsigned i = 0; i < 60; ++i) {
    Address each = ip(i % 3 == 0 ? "10.0.0.1" : i % 3 == 1 ? "2001:db8::1" : "fe80::1");
    each.ip[each.is_v6 ? 15 : 3] = static_cast<std::uint8_t>(i);
    ticket.server.addresses.push_back(each.with_port(0xabcd));
  }
  const std::string text = encode_ticket(ticket);
  EXPECT_LE(text.size(), 400u);
  EXPECT_EQ(text.find_first_of(" =\n"), std::string::npos);
  const auto read = decode_ticket(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->secret, ticket.secret);
  EXPECT_EQ(read->server.network, ticket.server.network);
  ASSERT_GE(read->server.addresses.size(), 20u);
  for (std::size_t i = 0; i < read->server.addresses.size(); ++i) {
    EXPECT_EQ(read->server.addresses[i], ticket.server.addresses[i]);
  }
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto part = decode_ticket(text.substr(0, length));
    EXPECT_TRUE(!part || part->server.addresses.size() < read->server.addresses.size());
  }
  for (const char* wrong : {"", "A", "B", "10.0.0.1:4000/00"}) EXPECT_FALSE(decode_ticket(wrong));
}

TEST(Addresses, TargetsOfAnotherHost) {
  Candidates server{.network = network::network_id() + 1};
  for (const char* each : {"192.168.9.9", "172.17.0.1", "10.0.0.2", "fe80::2", "127.0.0.1"}) {
    server.addresses.push_back(ip(each).with_port(7));
  }
  std::string text;
  for (const Target& each : targets_of(server, interfaces())) {
    text += each.address.host() + (each.refusal.empty() ? "" : "!") + " ";
    EXPECT_EQ(each.address.port, 7);
  }
  const std::string scoped = [] {
    std::string each;
    for (std::uint32_t index : {2u, 3u, 4u}) {
      Address address = ip("fe80::2");
      address.scope = index;
      each += address.host() + " ";
    }
    return each;
  }();
  EXPECT_EQ(text, "10.0.0.2 192.168.9.9 172.17.0.1! " + scoped);
  // On the same host its own addresses and the loopback's serve.
  server.network = network::network_id();
  text.clear();
  for (const Target& each : targets_of(server, interfaces())) {
    if (!each.address.needs_scope()) text += each.address.host() + " ";
    EXPECT_EQ(each.refusal, "");
  }
  EXPECT_EQ(text, "172.17.0.1 10.0.0.2 192.168.9.9 127.0.0.1 ");
}

// A rank's offer: the number of its host, what it reached, its choices.
AddressOffer offer(std::uint64_t network, const char* own, const char* server,
                   std::vector<AddressOffer::Choice> choices) {
  choices.push_back({{ip("127.0.0.1"), 8}, InterfaceKind::kLoopback});
  return {.network = network, .own = own, .server = server, .choices = std::move(choices)};
}

AddressOffer::Choice at(const char* address, std::uint8_t bits,
                        InterfaceKind kind = InterfaceKind::kNetwork, std::uint32_t rate = 0) {
  return {{ip(address), bits}, kind, rate};
}

TEST(Addresses, OffersReturn) {
  const AddressOffer sent = offer(7, "fe80::1%eth0", "", {at("10.0.0.1", 24), at("fd00::1", 64)});
  const auto back = decode_offer(encode(sent));
  ASSERT_TRUE(back);
  EXPECT_EQ(encode(*back), encode(sent));
  EXPECT_EQ(back->choices.size(), 3u);
  for (const char* wrong :
       {"", "7", "x - - 0 0", "7 - - 0 0\n10.0.0.1 33 0 0 0", "7 - - 0 0\nname 8 0 0 0",
        "7 - - 0 0\n10.0.0.1 24 9 0 0", "7 - - 0 0\n10.0.0.1 24"}) {
    EXPECT_FALSE(decode_offer(wrong)) << wrong;
  }
}

TEST(Addresses, OneHostUsesTheLoopback) {
  const auto here = offer(7, "10.0.0.1", "10.0.0.1", {at("10.0.0.1", 24)});
  EXPECT_EQ(hosts_of(choose_addresses({here, here}, nullptr)), "127.0.0.1 127.0.0.1");
  auto filtered = here;
  filtered.choices.pop_back();
  EXPECT_EQ(hosts_of(choose_addresses({filtered, filtered}, nullptr)), "10.0.0.1 10.0.0.1");
}

// A bridge with the same address on each host, a tunnel, a slow and a fast card.
TEST(Addresses, TheFastestSharedSubnet) {
  const auto host = [](std::uint64_t number, const std::string& last) {
    const auto numbered = [&last](const char* begin) { return begin + last; };
    return offer(number, numbered("10.0.0.").c_str(), "10.0.0.1",
                 {at("172.17.0.1", 16, InterfaceKind::kBridge, 10'000),
                  at(numbered("10.8.0.").c_str(), 24, InterfaceKind::kPointToPoint, 40'000),
                  at(numbered("10.0.0.").c_str(), 24, InterfaceKind::kNetwork, 1'000),
                  at(numbered("fd01::").c_str(), 64, InterfaceKind::kNetwork, 10'000),
                  at(numbered("10.1.0.").c_str(), 24, InterfaceKind::kNetwork, 10'000)});
  };
  const std::vector<AddressOffer> offers = {host(1, "1"), host(2, "2"), host(2, "2"), host(3, "3")};
  const auto subnets = shared_subnets(offers);
  std::string text;
  for (const SharedSubnet& each : subnets) text += each.prefix.host() + " ";
  EXPECT_EQ(text, "10.1.0.0 fd01:: 10.0.0.0 10.8.0.0 ");
  EXPECT_EQ(hosts_of(choose_addresses(offers, &subnets.front())),
            "10.1.0.1 10.1.0.2 10.1.0.2 10.1.0.3");
  // One host lacks the fast card.
  auto fewer = offers;
  std::erase_if(fewer[3].choices, [](const auto& each) { return each.rate_mbits == 10'000; });
  EXPECT_EQ(shared_subnets(fewer).front().prefix.host(), "10.0.0.0");
}

// Routers are between the hosts. Rank 0, at the server, does not know which address they reach.
TEST(Addresses, WithoutASharedSubnet) {
  const std::vector<AddressOffer> offers = {
      offer(1, "127.0.1.1", "127.0.1.1", {at("172.17.0.1", 16), at("10.1.0.1", 24)}),
      offer(2, "10.2.0.1", "10.1.0.1", {at("172.17.0.1", 16), at("10.2.0.1", 24)}),
      offer(3, "10.3.0.1", "10.1.0.1", {at("10.3.0.1", 24)})};
  EXPECT_TRUE(shared_subnets(offers).empty());
  EXPECT_EQ(hosts_of(choose_addresses(offers, nullptr)), "10.1.0.1 10.2.0.1 10.3.0.1");
}

// The interfaces by which they reached the server are excluded.
TEST(Addresses, WithoutTheServersInterface) {
  const std::vector<AddressOffer> offers = {offer(1, "10.0.0.1", "10.0.0.1", {at("10.1.0.1", 24)}),
                                            offer(2, "10.0.0.2", "10.0.0.1", {at("10.2.0.1", 24)})};
  EXPECT_EQ(hosts_of(choose_addresses(offers, nullptr)), "10.1.0.1 10.2.0.1");
}

// The ranks reached the server by addresses of both families; all must take one.
TEST(Addresses, OneFamily) {
  const std::vector<AddressOffer> offers = {
      offer(1, "::1", "::1", {at("10.1.0.1", 24), at("fd01::1", 64)}),
      offer(2, "fd02::1", "fd01::1", {at("10.2.0.1", 24), at("fd02::1", 64)}),
      offer(3, "10.3.0.1", "10.1.0.1", {at("10.3.0.1", 24)})};
  EXPECT_EQ(hosts_of(choose_addresses(offers, nullptr)), "10.1.0.1 10.2.0.1 10.3.0.1");
  const std::vector<AddressOffer> both(offers.begin(), offers.end() - 1);
  EXPECT_EQ(hosts_of(choose_addresses(both, nullptr)), "fd01::1 fd02::1");
}

// Several ranks agree, each in its own way, over a real server.
TEST(Addresses, RanksAgree) {
  const auto server = start(3);
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&server, rank] {
      auto job = or_throw(member(*server, rank, 3, milliseconds(20'000)));
      EXPECT_EQ(server_address(*job), "127.0.0.1");
      EXPECT_EQ(or_throw(agree_on_address(*job, {0, 1, 2}, "", {}, {}, false)), "127.0.0.1");
    });
  }
  for (std::thread& each : ranks) each.join();
}

// Agrees with a rank on a host that has the loopback alone.
std::string agree_with_loopback(bool is_host_given) {
  const auto server = start(2);
  std::thread other([&server] {
    auto job = or_throw(member(*server, 1, 2, milliseconds(20'000)));
    AddressOffer offer{.network = network::network_id() + 1, .own = "127.0.0.1"};
    offer.choices.push_back({{ip("127.0.0.1"), 8}, network::InterfaceKind::kLoopback, 0, 1});
    EXPECT_TRUE(job->put("espalier.offer", encode(offer)));
    EXPECT_TRUE(job->fence());
  });
  auto job = or_throw(member(*server, 0, 2, milliseconds(20'000)));
  const auto agreed = agree_on_address(*job, {0, 1}, "", {}, {}, is_host_given);
  other.join();
  return agreed ? "agreed" : message_of(agreed);
}

TEST(Addresses, TheLoopbackReachesNoOtherHost) {
  EXPECT_NE(agree_with_loopback(false).find("has no address that other hosts reach; expected"),
            std::string::npos);
  EXPECT_EQ(agree_with_loopback(true), "agreed");
}

TEST(Addresses, ListensAtANameOfThisHost) {
  bool is_in_use = false;
  const auto local = or_throw(listen_at("localhost:0", {}, is_in_use));
  EXPECT_TRUE(local.bound.is_loopback());
  const auto second = listen_at("127.0.0.1:" + std::to_string(local.bound.port), {}, is_in_use);
  EXPECT_TRUE(local.bound.is_v6 || (!second && is_in_use));
  EXPECT_EQ(message_of(listen_at("203.0.113.7:0", {}, is_in_use)),
            "cannot listen at 203.0.113.7:0: Cannot assign requested address");
  EXPECT_FALSE(is_in_use);
  char name[256] = "";
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  if (!network::resolve(std::string(name) + ":0")) GTEST_SKIP() << "this host's name is unknown";
  EXPECT_TRUE(or_throw(listen_at(std::string(name) + ":0", {}, is_in_use)).bound.is_wildcard());
}

TEST(Addresses, ListensInARange) {
  const std::uint16_t port = free_port();
  const network::PortRange range{.first = port, .last = port, .source = "ESPALIER_PORTS"};
  bool is_in_use = false;
  const auto first = listen_at("127.0.0.1:0", {.ports = range}, is_in_use);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->bound.port, port);
  EXPECT_EQ(message_of(listen_at("127.0.0.1:0", {.ports = range}, is_in_use)),
            "cannot listen at 127.0.0.1:0: no port of ESPALIER_PORTS is free; expected a wider "
            "range");
  EXPECT_TRUE(is_in_use);
}

// A stranger, a server of another job and a port without a listener come before the right one.
TEST(Addresses, TheServerThatProvesTheSecret) {
  const auto right = start(1), other = start(1, JobSecret{9});
  bool is_in_use = false;
  const Listener silent = or_throw(listen_at("127.0.0.1:0", {}, is_in_use));
  std::vector<Target> targets = {{silent.bound},
                                 {ip("127.0.0.1").with_port(free_port())},
                                 {ip("203.0.113.7").with_port(1), "an address of this host, too"}};
  for (const Server* each : {other.get(), right.get()}) {
    targets.push_back({network::resolve(each->address())->front()});
  }
  Attempts attempts(targets, kSecret);
  const auto reached = attempts.go_on(Clock::now() + milliseconds(20'000));
  ASSERT_TRUE(reached);
  EXPECT_EQ(reached->server.text(), right->address());
  EXPECT_EQ(reached->own.host(), "127.0.0.1");
}

TEST(Addresses, SaysWhatBecameOfEachAddress) {
  const auto other = start(1, JobSecret{9});
  bool is_in_use = false;
  const Listener silent = or_throw(listen_at("127.0.0.1:0", {}, is_in_use));
  Attempts attempts({{silent.bound},
                     {ip("127.0.0.1").with_port(free_port())},
                     {network::resolve(other->address())->front()},
                     {ip("127.0.0.1").with_port(1), "an address of this host, too"}},
                    kSecret);
  const auto begin = Clock::now();
  EXPECT_FALSE(attempts.go_on(begin + milliseconds(500)));
  EXPECT_GE(Clock::now() - begin, milliseconds(500));
  EXPECT_EQ(attempts.report(),
            "127.0.0.1 (lo: no answer), 127.0.0.1 (lo: connection refused), 127.0.0.1 (lo: another "
            "secret, or it ends), 127.0.0.1 (lo: an address of this host, too)");
  EXPECT_FALSE(attempts.has_other_secret() || attempts.is_foreign());
}

TEST(Addresses, ProbesFailAlone) {
  bool is_in_use = false;
  const Listener listener = or_throw(listen_at("127.0.0.1:0", {}, is_in_use));
  const Address own = ip("127.0.0.1");
  EXPECT_EQ(failed_probes({{.number = 0, .from = own, .to = listener.bound},
                           {.number = 1, .from = own, .to = own.with_port(free_port())},
                           {.number = 2, .from = own, .to = listener.bound},
                           {.number = 3, .from = ip("203.0.113.7"), .to = listener.bound},
                           {.number = 4, .from = own, .to = own}}),
            (std::vector<std::size_t>{3, 4, 1}));
}

TEST(Addresses, SaysWhetherItReaches) {
  bool is_in_use = false;
  const Listener listener = or_throw(listen_at("127.0.0.1:0", {}, is_in_use));
  EXPECT_EQ(reach_text(listener.bound.text()),
            listener.bound.text() + " (lo: reached, but it does not answer)");
  const std::string closed = "127.0.0.1:" + std::to_string(free_port());
  EXPECT_EQ(reach_text(closed), closed + " (lo: connection refused)");
  EXPECT_EQ(reach_text("no address"), "no address");
}

TEST(Addresses, FirstWords) {
  unsetenv("ESPALIER_VERBOSE");
  setenv("ESPALIER_PATIENCE", "0", 1);
  EXPECT_EQ(FirstWord().next().has_value(), FirstWord::is_watched());
  setenv("ESPALIER_PATIENCE", "1", 1);
  FirstWord word;
  EXPECT_FALSE(word.is_due());
  std::this_thread::sleep_until(*word.next());
  EXPECT_TRUE(word.is_due());
  EXPECT_EQ(word.so_far(), "");
  EXPECT_FALSE(word.is_due());  // not before it has lasted twice as long
  std::this_thread::sleep_until(*word.next());
  EXPECT_TRUE(word.is_due());
  EXPECT_TRUE(word.so_far().starts_with("; ") && word.so_far().ends_with(" s so far"));
  EXPECT_GE(std::atoi(word.so_far().c_str() + 2), 2);
  EXPECT_EQ(message_of(patience()), "");
  setenv("ESPALIER_PATIENCE", "soon", 1);
  EXPECT_EQ(message_of(patience()),
            "ESPALIER_PATIENCE='soon'; expected a whole number from 0 to 86400");
  unsetenv("ESPALIER_PATIENCE");
  EXPECT_TRUE(FirstWord().next());
}

TEST(Addresses, OneSpeaks) {
  const std::string what = "test-" + std::to_string(getpid());
  Speaker second;
  {
    Speaker first;
    EXPECT_TRUE(first.may_speak(what) && first.may_speak(what));
    EXPECT_FALSE(second.may_speak(what));
  }
  EXPECT_TRUE(second.may_speak(what));
}

}  // namespace
}  // namespace espalier::bootstrap
