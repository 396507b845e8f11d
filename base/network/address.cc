#include "base/network/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>

#include "base/network/interfaces.h"
#include "base/one_line.h"
#include "base/parse_number.h"
#include "base/try.h"

namespace espalier::network {
namespace {

std::string without_brackets(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return text;
  return text.substr(1, text.size() - 2);
}

// The number of the interface of this name or number; 0: none.
std::uint32_t scope_of(const std::string& name) {
  if (const unsigned number = if_nametoindex(name.c_str()); number != 0) return number;
  std::uint32_t number = 0;
  char found[IF_NAMESIZE];
  const bool is_one = parse_number(name, number) && if_indextoname(number, found) != nullptr;
  return is_one ? number : 0;
}

// Adds `address`, or if it needs a scope and has none, one for each interface.
void add(const Address& address, std::vector<Address>& all) {
  const auto add_once = [&all](const Address& each) {
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  };
  if (!address.needs_scope() || address.scope != 0) return add_once(address);
  for (const Interface& interface : running_interfaces()) {
    if (interface.kind == InterfaceKind::kLoopback) continue;
    Address scoped = address;
    scoped.scope = interface.index;
    add_once(scoped);
  }
}

}  // namespace

bool Address::is_loopback() const {
  if (!is_v6) return ip[0] == 127;
  return std::all_of(ip.begin(), ip.end() - 1, [](auto byte) { return byte == 0; }) && ip[15] == 1;
}

bool Address::is_wildcard() const {
  return std::all_of(ip.begin(), ip.end(), [](auto byte) { return byte == 0; });
}

bool Address::is_link_local() const {
  if (is_v6) return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
  return ip[0] == 169 && ip[1] == 254;
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  (void)inet_ntop(is_v6 ? AF_INET6 : AF_INET, ip.data(), text, sizeof text);
  if (scope == 0) return text;
  char name[IF_NAMESIZE];
  const bool is_known = if_indextoname(scope, name) != nullptr;
  return std::string(text) + "%" + (is_known ? name : std::to_string(scope));
}

std::string Address::text() const { return join(host(), port); }

Address Address::with_port(std::uint16_t number) const {
  Address changed = *this;
  changed.port = number;
  return changed;
}

Address Address::prefix(unsigned bits) const {
  Address first{.is_v6 = is_v6};
  for (unsigned byte = 0; byte < ip_bytes() && 8 * byte < bits; ++byte) {
    const unsigned kept = std::min(8U, bits - 8 * byte);
    first.ip[byte] = static_cast<std::uint8_t>(ip[byte] & (0xff00U >> kept));
  }
  return first;
}

socklen_t Address::to_socket(sockaddr_storage& socket) const {
  socket = {};
  if (!is_v6) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, ip.data(), sizeof v4.sin_addr);
    std::memcpy(&socket, &v4, sizeof v4);
    return sizeof v4;
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_scope_id = scope;
  std::memcpy(&v6.sin6_addr, ip.data(), sizeof v6.sin6_addr);
  std::memcpy(&socket, &v6, sizeof v6);
  return sizeof v6;
}

std::optional<Address> Address::from_socket(const sockaddr* socket) {
  if (socket == nullptr) return {};
  Address address;
  if (socket->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, socket, sizeof v4);
    std::memcpy(address.ip.data(), &v4.sin_addr, sizeof v4.sin_addr);
    address.port = ntohs(v4.sin_port);
    return address;
  }
  if (socket->sa_family != AF_INET6) return {};
  sockaddr_in6 v6;
  std::memcpy(&v6, socket, sizeof v6);
  address.port = ntohs(v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    std::memcpy(address.ip.data(), v6.sin6_addr.s6_addr + 12, 4);
    return address;
  }
  address.is_v6 = true;
  std::memcpy(address.ip.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  if (address.is_link_local()) address.scope = v6.sin6_scope_id;
  return address;
}

Address loopback_v4() { return {.ip = {127, 0, 0, 1}}; }

Address wildcard(bool is_v6) { return {.is_v6 = is_v6}; }

std::optional<Address> parse_ip(const std::string& text) {
  const std::string bare = without_brackets(text);
  const std::size_t percent = bare.find('%');
  const std::string number = bare.substr(0, percent);
  Address address;
  if (inet_pton(AF_INET, number.c_str(), address.ip.data()) == 1) {
    if (percent != std::string::npos || bare != text) return {};
    return address;
  }
  address.is_v6 = true;
  if (inet_pton(AF_INET6, number.c_str(), address.ip.data()) != 1) return {};
  if (percent == std::string::npos) return address;
  address.scope = scope_of(bare.substr(percent + 1));
  if (address.scope == 0 || !address.is_link_local()) return {};
  return address;
}

Result<HostAndPort> split(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HostAndPort parts;
  if (colon != std::string::npos) parts.host = without_brackets(text.substr(0, colon));
  // A host with colons is an address, or a part of one: "::1" has no port.
  in6_addr bytes{};
  const std::string number = parts.host.substr(0, parts.host.find('%'));
  const bool is_host = !parts.host.empty() && (number.find(':') == std::string::npos ||
                                               inet_pton(AF_INET6, number.c_str(), &bytes) == 1);
  const bool is_right = is_host && text.size() - colon <= 6 &&
                        parse_number(std::string_view(text).substr(colon + 1), parts.port);
  if (is_right) return parts;
  return fail("'" + one_line(text) +
              "' is not an address; expected HOST:PORT, with a port up to 65535");
}

std::string join(const std::string& host, std::uint16_t port) {
  const bool is_bare = host.find(':') != std::string::npos && host.front() != '[';
  return (is_bare ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<std::vector<Address>> resolve(const std::string& text) {
  ESPALIER_TRY_TO(const HostAndPort parts, split(text));
  std::vector<Address> all;
  if (const auto given = parse_ip(parts.host)) {
    add(given->with_port(parts.port), all);
    if (!all.empty()) return all;
    return fail("'" + one_line(parts.host) +
                "' needs an interface, and none is up and running; expected ADDRESS%INTERFACE");
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return fail("host '" + one_line(parts.host) + "' is unknown: " + gai_strerror(error));
  }
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const auto address = Address::from_socket(each->ai_addr);
    if (address) add(address->with_port(parts.port), all);
  }
  freeaddrinfo(found);
  if (!all.empty()) return all;
  return fail("host '" + one_line(parts.host) + "' has no IP address");
}

}  // namespace espalier::network
