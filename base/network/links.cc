#include "base/network/links.h"

#include <ifaddrs.h>
#include <linux/if_addr.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "base/network/drivers.h"
#include "base/network/interfaces.h"
#include "base/try.h"

namespace espalier::network {
namespace {

struct Found {
  LinkLocal state = LinkLocal::kNotYet;
  Address address = {};
};

// From 32 hexadecimal digits.
Address address_of(const std::string& digits, std::uint32_t interface) {
  Address address{.is_v6 = true, .scope = interface};
  for (std::size_t i = 0; i < address.ip.size() && 2 * i + 2 <= digits.size(); ++i) {
    address.ip[i] = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
  return address;
}

// The best of each interface's link-local addresses. A line of the file has the address, numbers in
// hexadecimal (interface, bits, scope, flags) and the interface's name.
std::map<std::string, Found> link_local_addresses() {
  std::map<std::string, Found> found;
  std::ifstream file("/proc/self/net/if_inet6");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string address, name;
    unsigned index = 0, bits = 0, scope = 0, flags = 0;
    words >> address >> std::hex >> index >> bits >> scope >> flags >> name;
    if (!words || !address.starts_with("fe8")) continue;
    const LinkLocal state = (flags & IFA_F_DADFAILED) != 0 ? LinkLocal::kFailed
                            : (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0
                                ? LinkLocal::kNotYet
                                : LinkLocal::kUsable;
    const auto [entry, is_first] = found.emplace(name, Found{state, address_of(address, index)});
    if (!is_first && state < entry->second.state)
      entry->second = {state, address_of(address, index)};
  }
  return found;
}

bool is_off(const std::string& name) {
  std::ifstream file("/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6");
  int value = 0;
  return !(file >> value) || value != 0;
}

}  // namespace

std::vector<Link> links_up() {
  std::vector<Link> links;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return links;
  const Drivers drivers;
  const auto addresses = link_local_addresses();
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    // One entry per interface is of this family; the others have addresses.
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const std::string name = one->ifa_name;
    const auto address = addresses.find(name);
    links.push_back({.name = name,
                     .index = if_nametoindex(one->ifa_name),
                     .kind = drivers.kind_of(name, one->ifa_flags),
                     .has_carrier = has_carrier(*one),
                     .rate_mbits = drivers.rate(name),
                     .mtu = drivers.mtu(name),
                     .link_local = address != addresses.end() ? address->second.state
                                   : is_off(name)             ? LinkLocal::kOff
                                                              : LinkLocal::kNotYet,
                     .address = address != addresses.end() ? address->second.address : Address{}});
  }
  freeifaddrs(all);
  return links;
}

// The filter names interfaces with their addresses; links may have none yet.
Result<std::vector<Link>> links_up(const InterfaceFilter& filter) {
  std::vector<Link> all = links_up();
  if (filter.is_empty()) return all;
  std::vector<Interface> interfaces = running_interfaces();
  for (const Link& link : all) {
    const auto known =
        std::find_if(interfaces.begin(), interfaces.end(),
                     [&link](const Interface& each) { return each.index == link.index; });
    if (known != interfaces.end()) continue;
    Address address{.is_v6 = true, .scope = link.index};
    address.ip[0] = 0xfe;
    address.ip[1] = 0x80;
    interfaces.push_back({.name = link.name, .index = link.index, .addresses = {{address, 64}}});
  }
  ESPALIER_TRY_TO(const auto used, filter.apply(interfaces));
  std::erase_if(all, [&used](const Link& link) {
    return std::none_of(used.begin(), used.end(),
                        [&link](const Interface& each) { return each.index == link.index; });
  });
  return all;
}

}  // namespace espalier::network
