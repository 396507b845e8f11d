#include "tools/doctor/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

#include "base/counted.h"
#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/network/lookup.h"
#include "base/try.h"
#include "bootstrap/candidates.h"

namespace espalier::tools::doctor {
namespace {

using network::Address;
using network::Interface;
using network::InterfaceKind;

// For the resolver to answer.
constexpr std::chrono::milliseconds kNameTime(5'000);

const char* kind_text(InterfaceKind kind) {
  switch (kind) {
    case InterfaceKind::kBridge: return "bridge";
    case InterfaceKind::kPointToPoint: return "point-to-point";
    case InterfaceKind::kLoopback: return "loopback";
    default: return "network";
  }
}

// All interfaces that have an address, in the system's order.
std::vector<JudgedInterface> listed_interfaces() {
  std::vector<JudgedInterface> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const auto address = Address::from_socket(one->ifa_addr);
    if (!address) continue;
    auto interface = std::find_if(found.begin(), found.end(), [one](const JudgedInterface& each) {
      return each.name == one->ifa_name;
    });
    if (interface == found.end()) {
      const bool is_up = (one->ifa_flags & IFF_UP) != 0;
      found.push_back({.name = one->ifa_name,
                       .state = !is_up                       ? "down"
                                : network::has_carrier(*one) ? "up"
                                                             : "no carrier",
                       .kind = (one->ifa_flags & IFF_POINTOPOINT) != 0 ? "point-to-point"
                               : (one->ifa_flags & IFF_LOOPBACK) != 0  ? "loopback"
                                                                       : "network"});
      interface = found.end() - 1;
    }
    interface->addresses.push_back({.text = address->host()});
  }
  freeifaddrs(all);
  return found;
}

bool is_link_local_only(const Interface& interface) {
  return std::all_of(interface.addresses.begin(), interface.addresses.end(),
                     [](const auto& each) { return each.address.is_link_local(); });
}

// What a job makes of an interface that it uses.
std::string use_of(const Interface& interface) {
  switch (interface.kind) {
    case InterfaceKind::kLoopback: return "used between processes of this host";
    case InterfaceKind::kBridge:
      return "tried after networks: hosts with the same containers or virtual machines often have "
             "the same address";
    case InterfaceKind::kPointToPoint:
      return "tried after networks and bridges: it leads to one peer, or into a tunnel";
    default: break;
  }
  if (is_link_local_only(interface)) {
    return "tried last: link-local addresses reach only hosts on the same cable or switch";
  }
  return "tried first";
}

const Interface* find(const std::vector<Interface>& interfaces, const std::string& name) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&name](const Interface& each) { return each.name == name; });
  return found == interfaces.end() ? nullptr : &*found;
}

// The name of another interface that has one of the addresses, too; empty: none.
std::string other_with_same(const JudgedInterface& interface,
                            const std::vector<JudgedInterface>& all) {
  for (const JudgedInterface& other : all) {
    if (other.name == interface.name || other.state != "up") continue;
    for (const JudgedAddress& one : interface.addresses) {
      for (const JudgedAddress& same : other.addresses) {
        if (same.text == one.text) return other.name;
      }
    }
  }
  return {};
}

void judge(JudgedInterface& judged, const Interface* running, const Interface* used,
           const std::vector<std::string>& published) {
  for (JudgedAddress& address : judged.addresses) {
    for (const auto& own :
         running == nullptr ? std::vector<network::InterfaceAddress>() : running->addresses) {
      if (own.address.host() == address.text) address.bits = own.bits;
    }
    const bool is_used =
        used != nullptr &&
        std::any_of(used->addresses.begin(), used->addresses.end(),
                    [&address](const auto& each) { return each.address.host() == address.text; });
    const auto place = std::find(published.begin(), published.end(), address.text);
    if (is_used && place != published.end()) {
      address.place = static_cast<std::uint32_t>(place - published.begin()) + 1;
    }
  }
  if (running == nullptr) {
    judged.verdict = "not published: it is " + judged.state;
    if (judged.state == "no carrier") judged.verdict = "not published: it has no carrier";
    return;
  }
  judged.kind = kind_text(running->kind);
  judged.rate_mbits = running->rate_mbits;
  judged.verdict =
      used != nullptr ? use_of(*used) : "not published: ESPALIER_INTERFACE leaves it out";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

HostFact interface_fact(const JudgedInterface& interface) {
  std::vector<std::string> addresses;
  for (const JudgedAddress& each : interface.addresses) {
    addresses.push_back(each.text + (each.bits == 0 ? "" : "/" + std::to_string(each.bits)) +
                        (each.place == 0 ? "" : " (place " + std::to_string(each.place) + ")"));
  }
  std::string about = interface.state;
  if (interface.kind != "network") about += ", " + interface.kind;
  if (interface.rate_mbits != 0) {
    about += ", " + std::to_string(interface.rate_mbits) + " Mbit/s, as its driver says";
  } else if (interface.state == "up" && interface.kind != "loopback") {
    about += ", rate unknown: a job with a choice measures it";
  }
  return {"interface " + interface.name,
          joined(addresses) + "; " + about + "; " + interface.verdict, interface.problem,
          interface.remedy};
}

// What other hosts make of this host's name is in their tables; here it may be the loopback's.
HostFact own_name_fact(const Network& network) {
  char name[HOST_NAME_MAX + 1] = "";
  if (gethostname(name, sizeof name - 1) != 0) return {"own name", "unknown", "", ""};
  const auto found = network::resolve(network::join(name, 0), kNameTime);
  if (!found) {
    const std::string why = found.error().message;
    return {"own name", name,
            why.substr(0, why.find("; expected")) + ", so MASTER_ADDR cannot be it on this host",
            "add it to /etc/hosts, or set MASTER_ADDR to an address"};
  }
  std::vector<std::string> addresses;
  bool is_loopback = true, is_here = true;
  for (const Address& each : *found) {
    addresses.push_back(each.host());
    is_loopback = is_loopback && each.is_loopback();
    const auto& own = network.interfaces;
    is_here =
        is_here &&
        (each.is_loopback() || std::any_of(own.begin(), own.end(), [&](const JudgedInterface& one) {
           return std::any_of(one.addresses.begin(), one.addresses.end(),
                              [&](const JudgedAddress& mine) { return mine.text == each.host(); });
         }));
  }
  HostFact fact{"own name", std::string(name) + ": " + joined(addresses), "", ""};
  if (is_loopback) fact.value += "; a rank 0 that MASTER_ADDR names so listens at all addresses";
  if (!is_here) {
    fact.problem = "this host has no such address, so rank 0 cannot listen there";
    fact.remedy = "correct /etc/hosts or the name server";
  }
  return fact;
}

}  // namespace

Result<Network> judge_network() {
  Network network{.interfaces = listed_interfaces(), .published = {}};
  const std::vector<Interface> running = network::running_interfaces();
  ESPALIER_TRY_TO(const auto filter, network::interface_filter(""));
  std::vector<Interface> used;
  if (!running.empty() || !filter.is_empty()) {
    ESPALIER_TRY_TO(used, filter.apply(running));
  }
  for (const Address& each : bootstrap::own_candidates(used, 0).addresses) {
    const std::string text = each.host();
    const auto& known = network.published;
    if (each.is_loopback() || std::find(known.begin(), known.end(), text) != known.end()) continue;
    network.published.push_back(text);
  }
  for (JudgedInterface& each : network.interfaces) {
    judge(each, find(running, each.name), find(used, each.name), network.published);
    const std::string other =
        each.state == "up" ? other_with_same(each, network.interfaces) : std::string();
    if (other.empty()) continue;
    each.problem = "interface " + other + " has the same address, so packets may leave by either";
    each.remedy = "give each its own address, or leave one out: ESPALIER_INTERFACE=!" + other;
  }
  return network;
}

std::vector<HostFact> network_facts(const Network& network) {
  std::vector<HostFact> facts;
  for (const JudgedInterface& each : network.interfaces) facts.push_back(interface_fact(each));
  if (network.published.empty()) {
    facts.push_back({"interfaces", "loopback only", "other hosts cannot reach this one",
                     "set up a network interface, unless all ranks run on this host"});
  } else {
    const bool has_v4 =
        std::any_of(network.published.begin(), network.published.end(),
                    [](const std::string& text) { return text.find(':') == std::string::npos; });
    facts.push_back({"published addresses",
                     joined(network.published) +
                         (has_v4 ? "" : "; no IPv4 address: other hosts need IPv6, too"),
                     "", ""});
  }
  facts.push_back(own_name_fact(network));
  return facts;
}

}  // namespace espalier::tools::doctor
