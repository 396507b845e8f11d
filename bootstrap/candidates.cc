#include "bootstrap/candidates.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "base/process/variables.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::bootstrap {
namespace {

using network::Address;
using network::Interface;
using network::InterfaceAddress;
using network::InterfaceKind;

// A ticket begins with this letter; then follow, in base64: the secret, the network, the port, and
// each address after a byte that tells its kind.
constexpr char kTicket = 'A';
constexpr int kBase64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
constexpr std::size_t kMaxTicketBytes = 299;  // 400 characters
constexpr std::size_t kHeadBytes = sizeof(JobSecret) + 8 + 2;
enum AddressKind : std::uint8_t { kV4 = 4, kV6 = 6, kLinkLocal = 10 };

std::size_t bytes_of(std::uint8_t kind) { return kind == kV4 ? 4 : kind == kV6 ? 16 : 8; }

// The address at which the launcher's ssh reached this host: the third word of the variable.
std::optional<Address> called_at() {
  const char* const text = raw_value(Variable::kSshConnection);
  if (text == nullptr) return {};
  const std::string words = text;
  std::size_t begin = 0;
  for (int word = 0; word < 2; ++word) {
    const std::size_t space = words.find(' ', begin);
    if (space == std::string::npos) return {};
    begin = space + 1;
  }
  return network::parse_ip(words.substr(begin, words.find(' ', begin) - begin));
}

// The lower, the sooner an address is tried.
int place_of(const Address& address, InterfaceKind kind) {
  if (kind == InterfaceKind::kLoopback) return 4;
  if (address.is_link_local()) return 3;
  return kind == InterfaceKind::kPointToPoint ? 2 : kind == InterfaceKind::kBridge ? 1 : 0;
}

}  // namespace

Candidates own_candidates(const std::vector<Interface>& interfaces, std::uint16_t port) {
  struct Found {
    int place;
    Address address;
  };
  std::vector<Found> found;
  const auto called = called_at();
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      const bool is_called = called && called->bare() == own.address.bare();
      const int place = is_called ? -1 : place_of(own.address, interface.kind);
      found.push_back({place, own.address.with_port(port)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.place < b.place; });
  Candidates candidates{.network = network::network_id()};
  for (const Found& each : found) candidates.addresses.push_back(each.address);
  return candidates;
}

std::vector<Target> targets_of(const Candidates& server, const std::vector<Interface>& interfaces) {
  const bool is_here = server.network != 0 && server.network == network::network_id();
  std::vector<Target> near, far, last;
  for (const Address& address : server.addresses) {
    if (address.is_loopback()) {
      if (is_here) last.push_back({address});
      continue;
    }
    if (address.needs_scope()) {
      for (const Interface& interface : interfaces) {
        Target scoped{address};
        scoped.address.scope = interface.index;
        if (interface.kind != InterfaceKind::kLoopback) last.push_back(scoped);
      }
      continue;
    }
    bool is_own = false, is_near = false;
    for (const Interface& interface : interfaces) {
      for (const InterfaceAddress& own : interface.addresses) {
        is_own = is_own || own.address.bare() == address.bare();
        is_near = is_near || own.has_on_link(address);
      }
    }
    if (is_own && !is_here) {
      last.push_back({address, "an address of this host, too"});
    } else {
      (is_near ? near : far).push_back({address});
    }
  }
  near.insert(near.end(), far.begin(), far.end());
  near.insert(near.end(), last.begin(), last.end());
  return near;
}

std::string encode_ticket(const Ticket& ticket) {
  std::vector<std::uint8_t> bytes(kHeadBytes);
  std::copy(ticket.secret.begin(), ticket.secret.end(), bytes.begin());
  store_u32(bytes.data() + sizeof(JobSecret), static_cast<std::uint32_t>(ticket.server.network));
  store_u32(bytes.data() + sizeof(JobSecret) + 4,
            static_cast<std::uint32_t>(ticket.server.network >> 32));
  const auto& addresses = ticket.server.addresses;
  const std::uint16_t port = addresses.empty() ? 0 : addresses.front().port;
  bytes[kHeadBytes - 2] = static_cast<std::uint8_t>(port);
  bytes[kHeadBytes - 1] = static_cast<std::uint8_t>(port >> 8);
  for (const Address& each : addresses) {
    const std::uint8_t kind = !each.is_v6 ? kV4 : each.needs_scope() ? kLinkLocal : kV6;
    const std::size_t size = bytes_of(kind);
    if (bytes.size() + 1 + size > kMaxTicketBytes) break;
    bytes.push_back(kind);
    const std::uint8_t* const first = each.ip.data() + (kind == kLinkLocal ? 8 : 0);
    bytes.insert(bytes.end(), first, first + size);
  }
  std::string text(sodium_base64_encoded_len(bytes.size(), kBase64), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kBase64);
  return kTicket + std::string(text.c_str());
}

std::optional<Ticket> decode_ticket(const std::string& text) {
  if (text.empty() || text.front() != kTicket) return {};
  std::vector<std::uint8_t> bytes(text.size());
  std::size_t size = 0;
  const char* end = nullptr;
  if (sodium_base642bin(bytes.data(), bytes.size(), text.data() + 1, text.size() - 1, nullptr,
                        &size, &end, kBase64) != 0 ||
      end != text.data() + text.size() || size < kHeadBytes) {
    return {};
  }
  Ticket ticket;
  std::copy_n(bytes.begin(), sizeof(JobSecret), ticket.secret.begin());
  ticket.server.network = load_u64(bytes.data() + sizeof(JobSecret));
  const auto port = static_cast<std::uint16_t>(bytes[kHeadBytes - 2] | bytes[kHeadBytes - 1] << 8);
  for (std::size_t at = kHeadBytes; at < size;) {
    const std::uint8_t kind = bytes[at++];
    const std::size_t length = bytes_of(kind);
    if ((kind != kV4 && kind != kV6 && kind != kLinkLocal) || length > size - at) return {};
    Address address{.is_v6 = kind != kV4, .port = port};
    if (kind == kLinkLocal) address.ip = {0xfe, 0x80};
    std::memcpy(address.ip.data() + (kind == kLinkLocal ? 8 : 0), bytes.data() + at, length);
    if (address.is_group()) return {};
    ticket.server.addresses.push_back(address);
    at += length;
  }
  if (ticket.server.addresses.empty()) return {};
  return ticket;
}

}  // namespace espalier::bootstrap
