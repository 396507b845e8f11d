#pragma once
// An IP address of either family, with a port. Host only.

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::network {

struct Address {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> ip = {};  // as on the wire; IPv4: the first 4 bytes
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // number of this host's interface; of a link-local IPv6 address only

  auto operator<=>(const Address&) const = default;
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_wildcard() const;    // 0.0.0.0 or ::
  [[nodiscard]] bool is_link_local() const;  // fe80::/10 or 169.254.0.0/16
  [[nodiscard]] bool is_group() const;       // multicast or 255.255.255.255
  // Whether it means nothing without a scope: fe80::/10.
  [[nodiscard]] bool needs_scope() const { return is_v6 && is_link_local(); }
  [[nodiscard]] std::string host() const;  // "10.0.0.1", "fe80::1%eth0"
  [[nodiscard]] std::string text() const;  // "10.0.0.1:4000", "[fe80::1%eth0]:4000"
  [[nodiscard]] Address with_port(std::uint16_t number) const;
  [[nodiscard]] Address bare() const { return {.is_v6 = is_v6, .ip = ip}; }  // no port, no scope
  // The first `bits` bits of the address, all others 0, without port and scope.
  [[nodiscard]] Address prefix(unsigned bits) const;
  [[nodiscard]] unsigned ip_bytes() const { return is_v6 ? 16 : 4; }

  // A socket address, and its length.
  [[nodiscard]] socklen_t to_socket(sockaddr_storage& socket) const;
  // Nothing: of another family. An IPv4 address that is mapped into IPv6 becomes IPv4.
  [[nodiscard]] static std::optional<Address> from_socket(const sockaddr* socket);
};

[[nodiscard]] Address loopback_v4();
[[nodiscard]] Address wildcard(bool is_v6);

// Returns an address without a port: "10.0.0.1", "fe80::1", "fe80::1%eth0", each also in brackets.
// Nothing: it is a name or malformed, or this host has no such interface.
[[nodiscard]] std::optional<Address> parse_ip(const std::string& text);

// "HOST:PORT" in its two parts. The host is a name or an address. An IPv6 address needs no brackets
// unless that leaves the port unclear: what follows the last colon is the port.
struct HostAndPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
// Error: not of this form, or the port is above 65535.
[[nodiscard]] Result<HostAndPort> split(const std::string& text);
// Whether the text may be a host without a port: a name, or an address, also in brackets.
[[nodiscard]] bool is_host(const std::string& text);
// Returns HOST:PORT, with brackets around an IPv6 address.
[[nodiscard]] std::string join(const std::string& host, std::uint16_t port);

// Checks that a host can have the address, so that a process can listen there or connect to it.
// Error, one line: it is multicast or broadcast.
[[nodiscard]] Result<void> check_host_address(const Address& address);
// The same of a host that users write: an address, also in brackets and with an interface of any
// host. A name is right.
[[nodiscard]] Result<void> check_host(const std::string& host);

}  // namespace espalier::network
