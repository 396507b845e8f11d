#include "bootstrap/data_address.h"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/process/variables.h"
#include "base/try.h"
#include "bootstrap/client.h"
#include "bootstrap/listener.h"
#include "bootstrap/subnet_probe.h"
#include "bootstrap/subnet_rates.h"

namespace espalier::bootstrap {
namespace {

using network::Address;
using network::Interface;
using network::InterfaceAddress;
using network::InterfaceKind;

constexpr std::uint32_t kUnknownRate = 1'000;  // Mbit/s, of an interface that does not tell
constexpr std::size_t kMostChoices = 256;      // of a process

// The number of the host of each rank, in the order of ranks.
std::vector<std::size_t> hosts_of(const std::vector<AddressOffer>& offers) {
  std::map<std::uint64_t, std::size_t> numbers;
  std::vector<std::size_t> hosts;
  std::size_t next = 0;
  for (const AddressOffer& each : offers) {
    const auto known = each.network == 0 ? numbers.end() : numbers.find(each.network);
    hosts.push_back(known == numbers.end() ? next : known->second);
    if (known != numbers.end()) continue;
    if (each.network != 0) numbers[each.network] = next;
    ++next;
  }
  return hosts;
}

using Key = std::tuple<bool, std::array<std::uint8_t, 16>, unsigned>;

Key key_of(const InterfaceAddress& own) {
  return {own.address.is_v6, own.address.prefix(own.bits).ip, own.bits};
}

// The subnet of this key, if every host has an address of its own in it.
std::optional<SharedSubnet> find_subnet(const Key& key, const std::vector<AddressOffer>& offers,
                                        const std::vector<std::size_t>& hosts) {
  SharedSubnet subnet{.prefix = {.is_v6 = std::get<0>(key), .ip = std::get<1>(key)},
                      .bits = std::get<2>(key),
                      .slowest_mbits = UINT32_MAX};
  std::map<Address, std::size_t> host_of;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const auto& choices = offers[rank].choices;
    const auto own =
        std::find_if(choices.begin(), choices.end(), [&key](const AddressOffer::Choice& each) {
          return each.kind != InterfaceKind::kLoopback && key_of(each.address) == key;
        });
    if (own == choices.end()) return {};
    subnet.addresses.push_back(own->address.address);
    subnet.interfaces.push_back(own->interface);
    const auto [there, is_new] = host_of.emplace(own->address.address, hosts[rank]);
    if (!is_new && there->second != hosts[rank]) return {};
    subnet.is_point_to_point |= own->kind == InterfaceKind::kPointToPoint;
    subnet.has_bridge |= own->kind == InterfaceKind::kBridge;
    const std::uint32_t rate = own->rate_mbits == 0 ? kUnknownRate : own->rate_mbits;
    subnet.slowest_mbits = std::min(subnet.slowest_mbits, rate);
    subnet.is_rate_known &= own->rate_mbits != 0;
  }
  return subnet;
}

bool is_better(const SharedSubnet& a, const SharedSubnet& b) {
  const auto order = [](const SharedSubnet& each) {
    return std::tuple(each.is_unproven, each.is_point_to_point, UINT32_MAX - each.slowest_mbits,
                      each.has_bridge, each.prefix.is_v6);
  };
  return order(a) < order(b);
}

bool has(const AddressOffer& offer, const Address& address) {
  return std::any_of(offer.choices.begin(), offer.choices.end(),
                     [&](const auto& each) { return each.address.address == address.bare(); });
}

// Its first address of the family that is not the loopback's.
std::optional<Address> first_of(const AddressOffer& offer, bool is_v6) {
  for (const auto& each : offer.choices) {
    const bool is_right = each.kind != InterfaceKind::kLoopback &&
                          each.address.address.is_v6 == is_v6 &&
                          !each.address.address.needs_scope();
    if (is_right) return each.address.address;
  }
  return {};
}

// The addresses of a connection without scopes; nothing: unknown, or the loopback's.
std::optional<Address> outside(const std::string& text) {
  auto address = network::parse_ip(text);
  if (!address) address = network::parse_ip(text.substr(0, text.find('%')));
  if (!address || address->is_loopback() || address->is_wildcard()) return {};
  return address->bare();
}

// The address of a rank without a shared subnet, of the family if it has one.
Address reached_address(const AddressOffer& offer, const std::optional<Address>& server,
                        bool is_v6) {
  auto own = outside(offer.own);
  // The interface by which it reached the server may be excluded for data.
  if (own && !offer.choices.empty() && !has(offer, *own)) own.reset();
  const bool is_of_server = outside(offer.own) == outside(offer.server) || !outside(offer.own);
  if (is_of_server && server && server->is_v6 == is_v6 && has(offer, *server)) return *server;
  if (own && own->is_v6 == is_v6) return *own;
  if (const auto first = first_of(offer, is_v6)) return *first;
  return own ? *own : network::loopback_v4();
}

}  // namespace

std::string encode(const AddressOffer& offer) {
  std::ostringstream text;
  const auto word = [](const std::string& value) { return value.empty() ? "-" : value; };
  text << offer.network << ' ' << word(offer.own) << ' ' << word(offer.server) << ' '
       << offer.probe_port << ' ' << offer.token;
  for (std::size_t i = 0; i < offer.choices.size() && i < kMostChoices; ++i) {
    const AddressOffer::Choice& each = offer.choices[i];
    text << '\n'
         << each.address.address.host() << ' ' << unsigned{each.address.bits} << ' '
         << static_cast<unsigned>(each.kind) << ' ' << each.rate_mbits << ' ' << each.interface;
  }
  return text.str();
}

std::optional<AddressOffer> decode_offer(const std::string& text) {
  std::istringstream words(text);
  AddressOffer offer;
  words >> offer.network >> offer.own >> offer.server >> offer.probe_port >> offer.token;
  if (!words) return {};
  for (std::string* each : {&offer.own, &offer.server}) {
    if (*each == "-") each->clear();
  }
  std::string host;
  while (words >> host) {
    unsigned bits = 0, kind = 0;
    AddressOffer::Choice choice;
    words >> bits >> kind >> choice.rate_mbits >> choice.interface;
    const auto address = network::parse_ip(host);
    if (!words || !address || address->is_group() || bits > 8 * address->ip_bytes() ||
        kind > static_cast<unsigned>(InterfaceKind::kLoopback) ||
        offer.choices.size() == kMostChoices) {
      return {};
    }
    choice.address = {*address, static_cast<std::uint8_t>(bits)};
    choice.kind = static_cast<InterfaceKind>(kind);
    offer.choices.push_back(choice);
  }
  return offer;
}

std::vector<SharedSubnet> shared_subnets(const std::vector<AddressOffer>& offers) {
  const std::vector<std::size_t> hosts = hosts_of(offers);
  std::vector<SharedSubnet> subnets;
  std::set<Key> seen;
  for (const AddressOffer::Choice& each : offers.front().choices) {
    // A link-local prefix is the same on every interface.
    if (each.kind == InterfaceKind::kLoopback || each.address.address.is_link_local()) continue;
    if (!seen.insert(key_of(each.address)).second) continue;
    if (auto subnet = find_subnet(key_of(each.address), offers, hosts)) {
      subnets.push_back(*std::move(subnet));
    }
  }
  std::stable_sort(subnets.begin(), subnets.end(), is_better);
  return subnets;
}

std::string SharedSubnet::text() const { return prefix.host() + "/" + std::to_string(bits); }

std::vector<std::size_t> subnets_to_measure(const std::vector<SharedSubnet>& subnets) {
  constexpr std::size_t kMostMeasured = 4;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < subnets.size() && chosen.size() < kMostMeasured; ++i) {
    const SharedSubnet &first = subnets.front(), &each = subnets[i];
    const bool is_slower =
        first.is_rate_known && each.is_rate_known && each.slowest_mbits < first.slowest_mbits;
    const bool is_worse =
        each.is_unproven || is_slower || each.is_point_to_point != first.is_point_to_point;
    // IPv4 and IPv6 over the same cable, for example.
    const bool is_same = std::any_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
      return subnets[other].interfaces == each.interfaces;
    });
    if (!is_worse && !is_same) chosen.push_back(i);
  }
  if (chosen.size() < 2) chosen.clear();
  return chosen;
}

std::vector<Address> choose_addresses(const std::vector<AddressOffer>& offers,
                                      const SharedSubnet* subnet) {
  const std::vector<std::size_t> hosts = hosts_of(offers);
  const bool is_one_host =
      std::all_of(hosts.begin(), hosts.end(), [](std::size_t host) { return host == 0; });
  const auto have = [&offers](auto condition) {
    return std::all_of(offers.begin(), offers.end(), condition);
  };
  const Address loopback = network::loopback_v4();
  if (is_one_host && have([&](const AddressOffer& each) { return has(each, loopback); })) {
    return std::vector<Address>(offers.size(), loopback);
  }
  if (subnet != nullptr) return subnet->addresses;
  // The server's host, as the lowest rank of another host sees it.
  std::optional<Address> server;
  for (const AddressOffer& each : offers) {
    const auto own = outside(each.own), there = outside(each.server);
    if (!server && own && there && own != there) server = there;
  }
  const bool have_v4 =
      have([](const AddressOffer& each) { return first_of(each, false).has_value(); });
  const bool have_v6 = have([](const AddressOffer& each) {
    const auto own = outside(each.own);
    return first_of(each, true).has_value() || (own && own->is_v6);
  });
  const bool is_v6 = server ? (server->is_v6 ? have_v6 : !have_v4) : !have_v4;
  std::vector<Address> addresses;
  for (const AddressOffer& each : offers) {
    addresses.push_back(reached_address(each, server, is_v6));
  }
  return addresses;
}

namespace {

bool is_wide(const InterfaceAddress& own) {
  return !own.address.is_link_local() && !own.address.is_loopback();
}

bool has_wide(const Interface& interface) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(), is_wide);
}

// Removes the addresses that cannot be bound. A tentative address is awaited if its interface, or
// for link-local addresses this host, has no other.
void await_addresses(std::vector<Interface>& interfaces) {
  const auto now = std::chrono::steady_clock::now();
  const bool has_any = std::any_of(interfaces.begin(), interfaces.end(), has_wide);
  for (Interface& each : interfaces) {
    const bool is_ready =
        std::any_of(each.addresses.begin(), each.addresses.end(), [now](const auto& own) {
          return is_wide(own) && network::await_address(own.address, now);
        });
    const bool waits = has_wide(each) ? !is_ready : !has_any;
    const auto until = waits ? now + network::kTentativeTime : now;
    std::erase_if(each.addresses, [until](const InterfaceAddress& own) {
      return !network::await_address(own.address, until);
    });
  }
}

// This process's offer. A given address is the only choice.
AddressOffer make_offer(const Bootstrap& members, const std::string& given,
                        const std::vector<Interface>& interfaces) {
  AddressOffer offer{.network = network::network_id(),
                     .own = given.empty() ? members.local_address() : given,
                     .server = server_address(members)};
  const auto only = network::parse_ip(given);
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      const Address bare = own.address.bare();
      if (!given.empty() && (!only || bare != only->bare())) continue;
      offer.choices.push_back(
          {{bare, own.bits}, interface.kind, interface.rate_mbits, interface.index});
    }
  }
  return offer;
}

Result<std::vector<AddressOffer>> exchange(Bootstrap& members,
                                           const std::vector<std::uint32_t>& ranks,
                                           const AddressOffer& own) {
  constexpr const char* kKey = "espalier.offer";
  ESPALIER_TRY(members.put(kKey, encode(own)));
  ESPALIER_TRY(members.fence());
  std::vector<AddressOffer> offers;
  for (const std::uint32_t rank : ranks) {
    ESPALIER_TRY_TO(const auto text, members.get(rank, kKey));
    auto offer = decode_offer(text);
    if (!offer) return fail("rank " + std::to_string(rank) + " published malformed addresses");
    offers.push_back(*std::move(offer));
  }
  return offers;
}

// The place of the first rank of each host.
std::vector<std::uint32_t> first_ranks(const std::vector<AddressOffer>& offers) {
  const auto hosts = hosts_of(offers);
  std::vector<std::uint32_t> first;
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] == first.size()) first.push_back(rank);
  }
  return first;
}

// Proves the subnets between the hosts: each host's first rank connects to the next ones'.
Result<void> prove(Bootstrap& members, const std::vector<std::uint32_t>& ranks, std::size_t own,
                   const std::vector<AddressOffer>& offers, std::vector<SharedSubnet>& subnets) {
  constexpr const char* kKey = "espalier.proven";
  constexpr std::size_t kMostPeers = 4;
  const std::vector<std::uint32_t> first = first_ranks(offers);
  const auto me = std::find(first.begin(), first.end(), own);
  std::string proven(subnets.size(), '1');
  if (me != first.end()) {
    std::vector<ProbeOf> probes;
    const auto place = static_cast<std::size_t>(me - first.begin());
    for (std::size_t i = 0; i < subnets.size(); ++i) {
      for (std::size_t next = 1; next < first.size() && next <= kMostPeers; ++next) {
        const std::uint32_t peer = first[(place + next) % first.size()];
        probes.push_back({.number = i,
                          .from = subnets[i].addresses[own],
                          .to = subnets[i].addresses[peer].with_port(offers[peer].probe_port)});
      }
    }
    for (const std::size_t failed : failed_probes(probes)) proven[failed] = '0';
  }
  ESPALIER_TRY(members.put(kKey, proven));
  ESPALIER_TRY(members.fence());
  for (const std::uint32_t place : first) {
    ESPALIER_TRY_TO(const auto there, members.get(ranks[place], kKey));
    for (std::size_t i = 0; i < subnets.size(); ++i) {
      subnets[i].is_unproven |= i >= there.size() || there[i] != '1';
    }
  }
  std::stable_sort(subnets.begin(), subnets.end(), is_better);
  return {};
}

// What is measured: the same on all processes.
struct Measured {
  std::vector<std::uint32_t> first;  // the place of the first rank of each host
  std::vector<std::size_t> numbers;  // of the subnets
};

// The measured rates of this process, "900000 18000"; empty: it is not the first of its host.
std::string measured_text(const Measured& measured, std::size_t own, int listener,
                          const std::vector<AddressOffer>& offers,
                          const std::vector<SharedSubnet>& subnets) {
  const auto me = std::find(measured.first.begin(), measured.first.end(), own);
  if (me == measured.first.end()) return {};
  const auto place = static_cast<std::size_t>(me - measured.first.begin());
  const std::uint32_t next = measured.first[(place + 1) % measured.first.size()];
  RateTest test{
      .listener = listener, .own_token = offers[own].token, .peer_token = offers[next].token};
  for (const std::size_t i : measured.numbers) {
    test.subnets.push_back(
        {subnets[i].addresses[own], subnets[i].addresses[next].with_port(offers[next].probe_port)});
  }
  std::string text;
  for (const std::uint32_t rate : measured_rates(test)) text += std::to_string(rate) + ' ';
  return text;
}

// Measures the subnets between which the drivers' rates do not decide. The preferred subnet becomes
// the first. All compute the same from the same rates.
Result<void> measure(Bootstrap& members, const std::vector<std::uint32_t>& ranks, std::size_t own,
                     int listener, const std::vector<AddressOffer>& offers,
                     std::vector<SharedSubnet>& subnets) {
  constexpr const char* kKey = "espalier.rates";
  const Measured measured{first_ranks(offers), subnets_to_measure(subnets)};
  if (measured.numbers.empty()) return {};
  ESPALIER_TRY(members.put(kKey, measured_text(measured, own, listener, offers, subnets)));
  ESPALIER_TRY(members.fence());
  std::vector<std::uint32_t> slowest(measured.numbers.size(), UINT32_MAX);
  for (const std::uint32_t place : measured.first) {
    ESPALIER_TRY_TO(const auto there, members.get(ranks[place], kKey));
    std::istringstream words(there);
    for (std::uint32_t& each : slowest) {
      std::uint32_t rate = 0;
      if (!(words >> rate)) rate = 0;
      each = std::min(each, rate);
    }
  }
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    subnets[measured.numbers[i]].measured_kbits = slowest[i];
  }
  const auto best =
      subnets.begin() + static_cast<std::ptrdiff_t>(measured.numbers[preferred_by_rate(slowest)]);
  std::rotate(subnets.begin(), best, best + 1);
  return {};
}

// "10.0.0.0/24 (measured: 940 Mbit/s)".
std::string rate_text(const SharedSubnet& subnet) {
  std::ostringstream text;
  text << subnet.text();
  if (subnet.measured_kbits != 0) {
    text << " (measured: " << static_cast<double>(subnet.measured_kbits / 100) / 10 << " Mbit/s)";
  } else if (subnet.is_rate_known) {
    text << " (as drivers say: " << subnet.slowest_mbits << " Mbit/s)";
  }
  return text.str();
}

// Says where the data goes, and why.
void say_choice(const std::vector<SharedSubnet>& subnets, bool is_one_host) {
  if (is_one_host) return;
  std::string others, text =
                          "each rank's address is the one by which it reached the server, "
                          "because the hosts share no subnet that connects them";
  for (const SharedSubnet& each : subnets) {
    if (&each == &subnets.front() && !each.is_unproven) {
      text = rate_text(each);
      continue;
    }
    others += (others.empty() ? "; not " : ", ") +
              (each.is_unproven ? each.text() + " (does not connect all hosts)" : rate_text(each));
  }
  std::fprintf(stderr, "espalier: the subnet of tcp's data: %s%s\n", text.c_str(), others.c_str());
}

// The loopback's address reaches no other host.
Result<void> check_reach(const std::vector<std::uint32_t>& ranks,
                         const std::vector<AddressOffer>& offers,
                         const std::vector<Address>& addresses) {
  const auto hosts = hosts_of(offers);
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const bool is_alone = std::all_of(hosts.begin(), hosts.end(),
                                      [&](std::size_t host) { return host == hosts[place]; });
    // Hosts that do not say which network they are in may share one.
    if (is_alone || offers[place].network == 0 || !addresses[place].is_loopback()) continue;
    return fail("rank " + std::to_string(ranks[place]) +
                " has no address that other hosts reach; expected an interface of its host, among "
                "those that the job may use, that is up and has a carrier and an address");
  }
  return {};
}

// With the scope of this host's interface.
std::string as_own(const Address& address, const std::vector<Interface>& interfaces) {
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address.bare() == address) return own.address.host();
    }
  }
  return address.host();
}

}  // namespace

Result<std::string> agree_on_address(Bootstrap& members, const std::vector<std::uint32_t>& ranks,
                                     const std::string& given,
                                     const network::InterfaceFilter& filter,
                                     const network::PortRange& ports, bool is_host_given) {
  const auto me = std::find(ranks.begin(), ranks.end(), members.rank());
  if (me == ranks.end()) return fail("this process is not among those that agree on addresses");
  const auto place = static_cast<std::size_t>(me - ranks.begin());
  ESPALIER_TRY_TO(auto interfaces, filter.apply(network::running_interfaces()));
  await_addresses(interfaces);
  AddressOffer own = make_offer(members, given, interfaces);
  bool is_in_use = false;
  auto listener = listen_at("[::]:0", {.ports = ports}, is_in_use);
  if (!listener) listener = listen_at("0.0.0.0:0", {.ports = ports}, is_in_use);
  if (listener) own.probe_port = listener->bound.port;
  randombytes_buf(&own.token, sizeof own.token);
  ESPALIER_TRY_TO(const auto offers, exchange(members, ranks, own));
  const bool is_one_host = first_ranks(offers).size() == 1;
  std::vector<SharedSubnet> subnets = shared_subnets(offers);
  constexpr std::size_t kMostProven = 16;
  if (subnets.size() > kMostProven) subnets.resize(kMostProven);
  if (!is_one_host && !subnets.empty()) ESPALIER_TRY(prove(members, ranks, place, offers, subnets));
  if (!is_one_host) {
    const int file = listener ? listener->socket.get() : -1;
    ESPALIER_TRY(measure(members, ranks, place, file, offers, subnets));
  }
  if (place == 0 && is_set(Variable::kVerbose)) say_choice(subnets, is_one_host);
  const bool is_proven = !subnets.empty() && !subnets.front().is_unproven;
  const auto all = choose_addresses(offers, is_proven ? &subnets.front() : nullptr);
  if (!is_host_given) ESPALIER_TRY(check_reach(ranks, offers, all));
  if (!given.empty()) return given;
  return as_own(all[place], interfaces);
}

}  // namespace espalier::bootstrap
