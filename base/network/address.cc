#include "base/network/address.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>

#include "base/one_line.h"
#include "base/parse_number.h"

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

// A host with colons is an address, or a part of one: "::1" has no port.
bool is_bare_host(const std::string& text) {
  const std::string number = text.substr(0, text.find('%'));
  in6_addr bytes{};
  if (number.find_first_of(":[]") == std::string::npos) return !text.empty();
  return inet_pton(AF_INET6, number.c_str(), &bytes) == 1;
}

}  // namespace

bool Address::is_loopback() const {
  if (!is_v6) return ip[0] == 127;
  return std::all_of(ip.begin(), ip.end() - 1, [](auto byte) { return byte == 0; }) && ip[15] == 1;
}

bool Address::is_wildcard() const {
  return std::all_of(ip.begin(), ip.end(), [](auto byte) { return byte == 0; });
}

bool Address::is_group() const {
  // An IPv4 address may be mapped into IPv6.
  const bool is_mapped =
      is_v6 && ip[10] == 0xff && ip[11] == 0xff &&
      std::all_of(ip.begin(), ip.begin() + 10, [](auto byte) { return byte == 0; });
  if (is_v6 && !is_mapped) return ip[0] == 0xff;
  const std::uint8_t* const v4 = ip.data() + (is_mapped ? 12 : 0);
  return (v4[0] & 0xf0) == 0xe0 || std::all_of(v4, v4 + 4, [](auto byte) { return byte == 0xff; });
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

bool is_host(const std::string& text) {
  const std::string bare = without_brackets(text);
  return is_bare_host(bare) && (bare == text || bare.find(':') != std::string::npos);
}

Result<HostAndPort> split(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HostAndPort parts;
  if (colon != std::string::npos) parts.host = without_brackets(text.substr(0, colon));
  const bool is_right = is_bare_host(parts.host) && text.size() - colon <= 6 &&
                        parse_number(std::string_view(text).substr(colon + 1), parts.port);
  if (is_right) return parts;
  return fail("'" + one_line(text) +
              "' is not an address; expected HOST:PORT, with a port up to 65535");
}

std::string join(const std::string& host, std::uint16_t port) {
  const bool is_bare = host.find(':') != std::string::npos && host.front() != '[';
  return (is_bare ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<void> check_host_address(const Address& address) {
  if (!address.is_group()) return {};
  const bool is_broadcast = !address.is_v6 && address.ip[0] == 255;
  return fail("'" + address.host() + "' is a " + (is_broadcast ? "broadcast" : "multicast") +
              " address; expected the address of one host");
}

Result<void> check_host(const std::string& host) {
  const std::string bare = without_brackets(host);
  const auto address = parse_ip(bare.substr(0, bare.find('%')));
  return address ? check_host_address(*address) : Result<void>();
}

}  // namespace espalier::network
