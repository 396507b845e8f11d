#include "base/network/interfaces.h"

#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/digest.h"
#include "base/network/drivers.h"

namespace espalier::network {
namespace {

std::uint8_t bits_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  sockaddr_storage whole = {};
  const bool is_v6 = mask->sa_family == AF_INET6;
  std::memcpy(&whole, mask, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  std::array<std::uint8_t, 16> bytes = {};
  if (is_v6) {
    std::memcpy(bytes.data(), &reinterpret_cast<sockaddr_in6&>(whole).sin6_addr, 16);
  } else {
    std::memcpy(bytes.data(), &reinterpret_cast<sockaddr_in&>(whole).sin_addr, 4);
  }
  int bits = 0;
  for (const std::uint8_t byte : bytes) bits += std::popcount(byte);
  return static_cast<std::uint8_t>(bits);
}

}  // namespace

// IFF_RUNNING follows the carrier up to a second late. <linux/if.h>, which has IFF_LOWER_UP, and
// <net/if.h> exclude each other.
bool has_carrier(const ifaddrs& one) {
  constexpr unsigned kLowerUp = 1U << 16;
  return (one.ifa_flags & kLowerUp) != 0;
}

bool InterfaceAddress::has_on_link(const Address& other) const {
  if (other.is_v6 != address.is_v6) return false;
  if (other.scope != 0 && other.scope != address.scope) return false;
  return address.prefix(bits) == other.prefix(bits);
}

std::vector<Interface> running_interfaces() {
  std::vector<Interface> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  const Drivers drivers;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const auto address = Address::from_socket(one->ifa_addr);
    if (!address || (one->ifa_flags & IFF_UP) == 0 || !has_carrier(*one)) continue;
    auto interface = std::find_if(found.begin(), found.end(), [one](const Interface& each) {
      return each.name == one->ifa_name;
    });
    if (interface == found.end()) {
      found.push_back({.name = one->ifa_name,
                       .index = if_nametoindex(one->ifa_name),
                       .kind = drivers.kind_of(one->ifa_name, one->ifa_flags),
                       .rate_mbits = drivers.rate(one->ifa_name)});
      interface = found.end() - 1;
    }
    interface->addresses.push_back({*address, bits_of(one->ifa_netmask)});
  }
  freeifaddrs(all);
  return found;
}

namespace {

bool can_bind(const Address& address) {
  const int descriptor = socket(address.is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return true;  // binding will say why
  sockaddr_storage here;
  const socklen_t size = address.with_port(0).to_socket(here);
  const bool is_refused =
      bind(descriptor, reinterpret_cast<sockaddr*>(&here), size) != 0 && errno == EADDRNOTAVAIL;
  close(descriptor);
  return !is_refused;
}

// A line of the file has the address, numbers in hexadecimal (interface, bits, scope, flags) and
// the interface's name.
bool is_tentative(const Address& own) {
  if (!own.is_v6) return false;
  std::string wanted;
  for (const std::uint8_t byte : own.ip) {
    constexpr const char* kDigits = "0123456789abcdef";
    wanted += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  std::ifstream file("/proc/self/net/if_inet6");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string address;
    unsigned index = 0, bits = 0, scope = 0, flags = 0;
    words >> address >> std::hex >> index >> bits >> scope >> flags;
    if (address != wanted || (own.scope != 0 && own.scope != index)) continue;
    return (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_DADFAILED) == 0;
  }
  return false;
}

}  // namespace

bool await_address(const Address& own, std::chrono::steady_clock::time_point until) {
  while (!can_bind(own)) {
    // It may have become usable just now.
    if (!is_tentative(own) || std::chrono::steady_clock::now() > until) return can_bind(own);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

const Interface* interface_of(const Address& address, const std::vector<Interface>& interfaces) {
  for (const Interface& interface : interfaces) {
    if (address.scope != 0 && address.scope == interface.index) return &interface;
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address.with_port(0) == address.with_port(0)) return &interface;
      // All of 127.0.0.0/8 is this host's.
      if (own.address.is_loopback() && own.has_on_link(address)) return &interface;
    }
  }
  return nullptr;
}

std::string route_to(const Address& address, const std::vector<Interface>& interfaces) {
  // Connecting a datagram socket sends nothing; it finds the source address of the route.
  const int descriptor = socket(address.is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return {};
  sockaddr_storage there, here = {};
  const socklen_t size = address.with_port(address.port == 0 ? 9 : address.port).to_socket(there);
  socklen_t room = sizeof here;
  const bool is_routed = connect(descriptor, reinterpret_cast<sockaddr*>(&there), size) == 0 &&
                         getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &room) == 0;
  close(descriptor);
  const auto own = Address::from_socket(reinterpret_cast<sockaddr*>(&here));
  if (!is_routed || !own) return {};
  const Interface* const interface = interface_of(*own, interfaces);
  return interface == nullptr ? "" : interface->name;
}

std::string error_words(int error) {
  std::string words = std::strerror(error);
  if (!words.empty()) {
    words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  }
  return words;
}

std::uint64_t network_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat space = {};
  if (!std::getline(file, boot) || stat("/proc/self/ns/net", &space) != 0) return 0;
  const std::uint64_t id =
      digest_u64(digest_bytes(kDigestSeed, boot.data(), boot.size()), space.st_ino);
  return id == 0 ? 1 : id;
}

}  // namespace espalier::network
