#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "base/network/address.h"
#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/network/lookup.h"
#include "base/testing/contains.h"
#include "base/testing/results.h"

namespace espalier::network {
namespace {

Address ip(const std::string& text) { return parse_ip(text).value(); }

std::vector<std::string> texts(const std::vector<Address>& addresses) {
  std::vector<std::string> all;
  for (const Address& each : addresses) all.push_back(each.text());
  return all;
}

// Two cards, a bridge and a tunnel, as a host may have them.
std::vector<Interface> host() {
  const auto interface = [](const char* name, std::uint32_t index, InterfaceKind kind,
                            std::vector<InterfaceAddress> addresses) {
    return Interface{.name = name, .index = index, .kind = kind, .addresses = addresses};
  };
  return {interface("lo", 1, InterfaceKind::kLoopback, {{ip("127.0.0.1"), 8}, {ip("::1"), 128}}),
          interface("docker0", 2, InterfaceKind::kBridge, {{ip("172.17.0.1"), 16}}),
          interface("eth0", 3, InterfaceKind::kNetwork,
                    {{ip("10.1.2.3"), 24}, {ip("2001:db8::3"), 64}}),
          interface("eth1", 4, InterfaceKind::kNetwork, {{ip("192.168.0.3"), 24}}),
          interface("tun0", 5, InterfaceKind::kPointToPoint, {{ip("10.8.0.3"), 32}})};
}

// The addresses that a filter leaves, or its error.
std::string used(const std::string& text) {
  const auto filter = InterfaceFilter::parse(text, "ESPALIER_INTERFACE");
  if (!filter) return message_of(filter);
  const auto left = filter->apply(host());
  if (!left) return message_of(left);
  std::string all;
  for (const Interface& interface : *left) {
    for (const InterfaceAddress& each : interface.addresses) all += each.address.host() + " ";
  }
  return all;
}

TEST(Network, AddressesAsText) {
  EXPECT_EQ(ip("10.0.0.1").with_port(4000).text(), "10.0.0.1:4000");
  EXPECT_EQ(ip("2001:db8::1").with_port(4000).text(), "[2001:db8::1]:4000");
  EXPECT_EQ(ip("[2001:db8::1]").host(), "2001:db8::1");
  EXPECT_EQ(ip("fe80::1%lo").with_port(1).text(), "[fe80::1%lo]:1");
  for (const char* wrong : {"", "10.0.0", "10.0.0.256", "a", "fe80::1%none", "2001:db8::1%lo",
                            "[10.0.0.1]", "10.0.0.1:4", "[::1", "::1%1"}) {
    EXPECT_FALSE(parse_ip(wrong)) << wrong;
  }
}

TEST(Network, KindsOfAddresses) {
  EXPECT_TRUE(ip("127.9.0.1").is_loopback() && ip("::1").is_loopback());
  EXPECT_FALSE(ip("126.0.0.1").is_loopback() || ip("::2").is_loopback());
  EXPECT_TRUE(ip("0.0.0.0").is_wildcard() && ip("::").is_wildcard());
  EXPECT_TRUE(ip("169.254.1.1").is_link_local() && ip("fe80::1").is_link_local());
  EXPECT_TRUE(ip("fe80::1").needs_scope());
  EXPECT_FALSE(ip("169.254.1.1").needs_scope() || ip("fec0::1").is_link_local());
}

TEST(Network, SocketAddressesReturn) {
  for (const char* text : {"10.0.0.1", "2001:db8::1", "fe80::1%lo"}) {
    sockaddr_storage socket;
    const Address sent = ip(text).with_port(4711);
    (void)sent.to_socket(socket);
    EXPECT_EQ(Address::from_socket(reinterpret_cast<sockaddr*>(&socket)), sent);
  }
  sockaddr_in6 mapped = {};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(80);
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:10.0.0.1", &mapped.sin6_addr), 1);
  EXPECT_EQ(Address::from_socket(reinterpret_cast<sockaddr*>(&mapped))->text(), "10.0.0.1:80");
  EXPECT_FALSE(Address::from_socket(nullptr));
}

TEST(Network, Prefixes) {
  EXPECT_EQ(ip("10.1.2.3").prefix(12).host(), "10.0.0.0");
  EXPECT_EQ(ip("10.31.2.3").prefix(12).host(), "10.16.0.0");
  EXPECT_EQ(ip("10.1.2.3").prefix(32).host(), "10.1.2.3");
  EXPECT_EQ(ip("10.1.2.3").prefix(0).host(), "0.0.0.0");
  EXPECT_EQ(ip("2001:db8::ff").prefix(64).host(), "2001:db8::");
  const InterfaceAddress own{ip("10.1.2.3"), 24};
  EXPECT_TRUE(own.has_on_link(ip("10.1.2.200")));
  EXPECT_FALSE(own.has_on_link(ip("10.1.3.200")) || own.has_on_link(ip("2001:db8::1")));
}

TEST(Network, HostsAndPorts) {
  EXPECT_EQ(or_throw(split("host:4")).host, "host");
  EXPECT_EQ(or_throw(split("[fe80::1%eth0]:4000")).host, "fe80::1%eth0");
  EXPECT_EQ(or_throw(split("::1:4000")).port, 4000);
  EXPECT_EQ(or_throw(split("::1:4000")).host, "::1");
  EXPECT_EQ(join("::1", 7), "[::1]:7");
  EXPECT_EQ(join("[::1]", 7), "[::1]:7");
  EXPECT_EQ(join("host", 7), "host:7");
  for (const char* wrong :
       {"", "host", ":4", "host:", "host:65536", "host:-1", "host: 4", "::1", "[::1", "[::1:4"}) {
    EXPECT_EQ(message_of(split(wrong)), "'" + std::string(wrong) +
                                            "' is not an address; expected HOST:PORT, with a "
                                            "port up to 65535");
  }
}

TEST(Network, ResolvesAll) {
  EXPECT_EQ(texts(or_throw(resolve("127.0.0.1:5"))), std::vector<std::string>{"127.0.0.1:5"});
  EXPECT_EQ(texts(or_throw(resolve("[::1]:5"))), std::vector<std::string>{"[::1]:5"});
  for (const Address& each : or_throw(resolve("localhost:5"))) EXPECT_TRUE(each.is_loopback());
  EXPECT_PRED2(contains, message_of(resolve("no-such-host.invalid:5")),
               "host 'no-such-host.invalid' is unknown: ");
}

TEST(Network, RefusesWhatNoHostCanHave) {
  const std::string multicast = "is a multicast address; expected the address of one host";
  for (const char* wrong : {"224.0.0.1", "239.255.255.255", "ff02::1", "::ffff:224.0.0.1"}) {
    EXPECT_PRED2(contains, message_of(check_host(wrong)), multicast) << wrong;
    EXPECT_PRED2(contains, message_of(resolve(join(wrong, 5))), multicast) << wrong;
  }
  EXPECT_EQ(message_of(check_host("[ff02::1%no-such]")), "'ff02::1' " + multicast);
  EXPECT_EQ(message_of(resolve("255.255.255.255:5")),
            "'255.255.255.255' is a broadcast address; expected the address of one host");
  // As the resolver reads numbers.
  EXPECT_PRED2(contains, message_of(resolve("224.1:5")), multicast);
  for (const char* right : {"223.255.255.255", "255.255.255.254", "240.0.0.1", "0.0.0.0",
                            "::", "fe80::1%eth0", "::ffff:10.0.0.1", "host", "", "ff02::g"}) {
    EXPECT_EQ(message_of(check_host(right)), "") << right;
  }
}

// The thread of a look-up that is not awaited ends by itself.
TEST(Network, LookUpsAreAbandoned) {
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto found = resolve("no-such-host.invalid:5", std::chrono::milliseconds(0));
    EXPECT_FALSE(found);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));  // only a hang
  }
  Lookup here("localhost");
  while (!here.wait(std::chrono::steady_clock::now() + std::chrono::seconds(1))) continue;
  EXPECT_FALSE(or_throw(here.addresses()).empty());
  EXPECT_NE(here.full_name(), "");
}

TEST(Network, OwnInterfaces) {
  const auto interfaces = running_interfaces();
  const Interface* const loopback = interface_of(ip("127.0.0.1"), interfaces);
  ASSERT_NE(loopback, nullptr);
  EXPECT_EQ(loopback->kind, InterfaceKind::kLoopback);
  EXPECT_GT(loopback->index, 0u);
  EXPECT_EQ(loopback->addresses.front().bits, 8);
  EXPECT_EQ(interface_of(ip("127.0.1.1"), interfaces), loopback);
  EXPECT_EQ(interface_of(ip("203.0.113.7"), interfaces), nullptr);
  EXPECT_EQ(route_to(ip("127.0.0.1"), interfaces), loopback->name);
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& each : interface.addresses) {
      EXPECT_EQ(each.address.needs_scope(), each.address.scope != 0);
    }
  }
  EXPECT_EQ(network_id(), network_id());
}

TEST(Network, FiltersNameAndExclude) {
  const std::string loopback = "127.0.0.1 ::1 ";
  EXPECT_EQ(used("eth0"), loopback + "10.1.2.3 2001:db8::3 ");
  EXPECT_EQ(used("eth1,eth0"), loopback + "10.1.2.3 2001:db8::3 192.168.0.3 ");
  EXPECT_EQ(used("10.0.0.0/8,!tun0"), loopback + "10.1.2.3 ");
  EXPECT_EQ(used("!10.0.0.0/8"), loopback + "172.17.0.1 2001:db8::3 192.168.0.3 ");
  EXPECT_EQ(used("2001:db8::/32"), loopback + "2001:db8::3 ");
  EXPECT_EQ(used("192.168.0.3"), loopback + "192.168.0.3 ");
  EXPECT_EQ(used("eth0,!2001:db8::/32,!none"), loopback + "10.1.2.3 ");
  EXPECT_EQ(used("eth0,!::1,!10.1.2.3"), "127.0.0.1 2001:db8::3 ");
  EXPECT_EQ(used("lo"), loopback);
}

TEST(Network, FiltersRefuse) {
  const std::string form = "; expected a name or a subnet, such as eth0,10.0.0.0/8,!docker0";
  for (const char* wrong : {"", "!", "10.0.0/8", "eth0 ", "!!eth0", "sixteen-letters-"}) {
    EXPECT_EQ(used(wrong),
              "ESPALIER_INTERFACE: '" + std::string(wrong) + "' is not an interface" + form);
  }
  for (const auto& [wrong, most] : {std::pair{"10.0.0.0/33", "32"},
                                    {"10.0.0.0/", "32"},
                                    {"!10.0.0.0/-1", "32"},
                                    {"2001:db8::/129", "128"}}) {
    EXPECT_EQ(used(wrong), "ESPALIER_INTERFACE: '" + std::string(wrong) +
                               "' is a subnet with a wrong length; expected 0 to " + most +
                               " behind the '/'");
  }
  EXPECT_EQ(used("eth0,,eth1"), "ESPALIER_INTERFACE: '' is not an interface" + form);
  EXPECT_EQ(used("eth0,ib0"),
            "ESPALIER_INTERFACE: 'ib0' names no interface of this host that is up and running; "
            "expected one of lo, docker0, eth0, eth1, tun0");
  EXPECT_PRED2(contains, used("192.168.7.0/24"), "'192.168.7.0/24' names no interface");
  for (const char* wrong : {"eth0,!eth0", "10.0.0.0/8,!eth0,!tun0", "eth0,!10.0.0.0/8,!2001::/16",
                            "lo,!127.0.0.0/8,!::1"}) {
    EXPECT_EQ(used(wrong),
              "ESPALIER_INTERFACE excludes each address that it names; expected one that is left");
  }
  EXPECT_EQ(used("!0.0.0.0/0,!::/0"),
            "ESPALIER_INTERFACE leaves no interface of this host; it has lo, docker0, eth0, eth1, "
            "tun0");
}

TEST(Network, OptionsComeBeforeVariables) {
  setenv("ESPALIER_INTERFACE", "/", 1);
  setenv("ESPALIER_PORTS", "5", 1);
  EXPECT_EQ(message_of(interface_filter("eth0")), "");
  EXPECT_PRED2(contains, message_of(interface_filter("")), "ESPALIER_INTERFACE='/': '/' is not");
  EXPECT_EQ(message_of(port_range("5-6")), "");
  EXPECT_PRED2(contains, message_of(port_range("5", "--port-range")), "--port-range '5'; expected");
  EXPECT_EQ(message_of(port_range("")),
            "ESPALIER_PORTS='5'; expected FIRST-LAST, from 1 to 65535, such as 40000-40100");
  unsetenv("ESPALIER_INTERFACE");
  unsetenv("ESPALIER_PORTS");
  EXPECT_TRUE(or_throw(interface_filter("")).is_empty());
  EXPECT_TRUE(or_throw(port_range("")).is_any());
  for (const char* wrong : {"0-5", "6-5", "5-70000", "-", "5-", "-5", "a-b", "5-6-7", "5-6 "}) {
    EXPECT_PRED2(contains, message_of(port_range(wrong)), "expected FIRST-LAST") << wrong;
  }
}

TEST(Network, PortsAreTriedInOrder) {
  const PortRange range = or_throw(port_range("5-7"));
  std::vector<int> tried;
  const auto refuses = [&tried](int error, int until) {
    return [&tried, error, until](std::uint16_t port) {
      tried.push_back(port);
      return port < until ? error : 0;
    };
  };
  EXPECT_EQ(or_throw(take_port(range, "cannot listen", refuses(EADDRINUSE, 7))), 7);
  EXPECT_EQ(tried, (std::vector<int>{5, 6, 7}));
  EXPECT_EQ(message_of(take_port(range, "cannot listen at x", refuses(EADDRINUSE, 8))),
            "cannot listen at x: no port of ports '5-7' is free; expected a wider range");
  EXPECT_EQ(message_of(take_port(range, "cannot listen", refuses(EADDRNOTAVAIL, 8))),
            "cannot listen: Cannot assign requested address");
  EXPECT_EQ(or_throw(take_port(PortRange(), "cannot listen", refuses(EADDRINUSE, 0))), 0);
  EXPECT_EQ(message_of(take_port(PortRange(), "cannot listen", refuses(EADDRINUSE, 1))),
            "cannot listen: Address already in use");
}

}  // namespace
}  // namespace espalier::network
