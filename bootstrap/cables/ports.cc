#include "bootstrap/cables/ports.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/counted.h"
#include "base/try.h"

namespace espalier::cables {
namespace {

using bootstrap::Socket;
using network::Address;
using network::Link;
using network::LinkLocal;

// An interface whose address is not usable after this time is searched no longer.
constexpr Time kAddressTime = std::chrono::seconds(6);
// Packets of one interface that are read before it is the next one's turn: a flood on one cable
// does not keep the others from being heard.
constexpr int kTurn = 32;
constexpr int kHopLimit = 255;  // a packet that a router passed on has less

Error failed(const std::string& what, const std::string& name) {
  return {"cannot " + what + " on " + name + ": " + std::strerror(errno)};
}

bool set(const Socket& socket, int level, int option, int value) {
  return setsockopt(socket.get(), level, option, &value, sizeof value) == 0;
}

bool bind_to(const Socket& socket, const Address& address) {
  sockaddr_storage at = {};
  const socklen_t size = address.to_socket(at);
  return bind(socket.get(), reinterpret_cast<sockaddr*>(&at), size) == 0;
}

// A socket that receives packets of one interface only. Not bound yet.
Result<Socket> make_socket(const Link& link) {
  Socket opened(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (opened.get() < 0) return fail(failed("open a UDP socket of IPv6", link.name));
  if (setsockopt(opened.get(), SOL_SOCKET, SO_BINDTODEVICE, link.name.data(),
                 static_cast<socklen_t>(link.name.size())) != 0) {
    return fail(failed("receive only what arrives", link.name).message +
                "; expected Linux 5.7 or newer, or CAP_NET_RAW");
  }
  if (!set(opened, IPPROTO_IPV6, IPV6_V6ONLY, 1) ||
      !set(opened, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0) ||
      !set(opened, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kHopLimit) ||
      !set(opened, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kHopLimit) ||
      !set(opened, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)) {
    return fail(failed("set up a UDP socket", link.name));
  }
  return opened;
}

// A packet with its sender; nothing: none is left.
struct Arrived {
  std::string bytes = {};
  std::optional<Address> from = {};  // nothing: it is not from this link
};
std::optional<Arrived> take_packet(const Socket& socket) {
  static thread_local std::array<char, kMaxPacketBytes + 1> room;
  sockaddr_storage from = {};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{room.data(), room.size()};
  msghdr message = {};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket.get(), &message, 0);
  if (count < 0) return {};
  Arrived arrived{.bytes = std::string(room.data(), static_cast<std::size_t>(count))};
  int hops = 0;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_HOPLIMIT) {
      std::memcpy(&hops, CMSG_DATA(each), sizeof hops);
    }
  }
  const auto address = Address::from_socket(reinterpret_cast<sockaddr*>(&from));
  if (hops == kHopLimit && address && address->needs_scope()) arrived.from = address;
  return arrived;
}

Address all_nodes(std::uint32_t interface, std::uint16_t port) {
  Address address{.is_v6 = true, .port = port, .scope = interface};
  address.ip[0] = 0xff;
  address.ip[1] = 0x02;
  address.ip[15] = 1;
  return address;
}

}  // namespace

Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::uint64_t random_number() {
  std::uint64_t number = 0;
  randombytes_buf(&number, sizeof number);
  return number;
}

Result<std::string> own_name() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
    return fail("this host has no name; expected one, set by hostname");
  }
  return name_from(name.data());
}

Result<Ports::Sockets> Ports::make_sockets(const Link& link) const {
  Sockets sockets;
  ESPALIER_TRY_TO(sockets.own, make_socket(link));
  const std::string what = "use UDP port " + std::to_string(options_.port);
  if (!options_.is_shared) {
    if (bind_to(sockets.own, network::wildcard(true).with_port(options_.port))) return sockets;
    const bool is_taken = errno == EADDRINUSE;
    return fail(failed(what, link.name).message +
                (is_taken ? "; expected one search at a time, or another port" : ""));
  }
  ESPALIER_TRY(network::take_port(options_.own_ports, "cannot use a UDP port on " + link.name,
                                  [&sockets](std::uint16_t port) {
                                    const Address any = network::wildcard(true).with_port(port);
                                    return bind_to(sockets.own, any) ? 0 : errno;
                                  }));
  ESPALIER_TRY_TO(sockets.group, make_socket(link));
  if (!set(sockets.group, SOL_SOCKET, SO_REUSEADDR, 1) ||
      !bind_to(sockets.group, all_nodes(link.index, options_.port))) {
    const bool is_taken = errno == EADDRINUSE;
    return fail(failed(what, link.name).message +
                (is_taken ? "; expected no espalier cables on this host while a job joins" : ""));
  }
  return sockets;
}

PortState Ports::state_of(const Link& link, Time at) {
  if (!link.has_carrier) return PortState::kNoCarrier;
  if (link.link_local == LinkLocal::kOff) return PortState::kNoIpv6;
  if (link.link_local == LinkLocal::kUsable) return PortState::kReady;
  const Time since = without_since_.emplace(link.index, at).first->second;
  const bool is_hopeless = link.link_local == LinkLocal::kFailed || at - since > kAddressTime;
  return is_hopeless ? PortState::kNoAddress : PortState::kBeginning;
}

Result<std::vector<Port>> Ports::scan(Time at) {
  auto all = network::links_up(options_.filter);
  // An interface that was named is down now: it was not at the start.
  if (!all && has_scanned_) return std::vector<Port>();
  ESPALIER_TRY_TO(std::vector<Link> found, std::move(all));
  if (found.empty() && !has_scanned_ && options_.needs_one) {
    return fail(std::string("no interface to search is up") +
                (options_.filter.is_empty() ? "" : " among those that are named") +
                ", except the loopback; expected one with a cable, set up by ip link set NAME up");
  }
  has_scanned_ = true;
  if (found.size() > kMaxPorts) {
    return fail("this host has " + counted(found.size(), "interface") +
                " to search; expected at most " + std::to_string(kMaxPorts) +
                ", or names of some (ESPALIER_INTERFACE, espalier cables --interface)");
  }
  std::vector<Port> ports;
  std::map<std::uint32_t, Sockets> sockets;
  for (const Link& link : found) {
    const PortState state = state_of(link, at);
    ports.push_back(
        {link.index, name_from(link.name), link.rate_mbits, link.mtu, state, link.address.ip});
    if (state != PortState::kReady) continue;
    without_since_.erase(link.index);
    const auto old = sockets_.find(link.index);
    if (old != sockets_.end()) {
      sockets.emplace(link.index, std::move(old->second));
      continue;
    }
    auto opened = make_sockets(link);
    if (opened) {
      sockets.emplace(link.index, *std::move(opened));
    } else if (if_nametoindex(link.name.c_str()) == link.index) {
      return fail(std::move(opened.error()));
    } else {
      ports.pop_back();  // the interface was removed meanwhile
    }
  }
  sockets_ = std::move(sockets);
  return ports;
}

void Ports::send(const Discovery::Outgoing& packet) {
  const auto socket = sockets_.find(packet.port);
  if (socket == sockets_.end()) return;
  const Address to = packet.to.value_or(all_nodes(packet.port, options_.port));
  sockaddr_storage at = {};
  const socklen_t size = to.to_socket(at);
  (void)sendto(socket->second.own.get(), packet.bytes.data(), packet.bytes.size(), 0,
               reinterpret_cast<sockaddr*>(&at), size);
}

void Ports::receive(const Take& take) {
  for (const auto& [interface, sockets] : sockets_) {
    for (const Socket* const socket : {&sockets.own, &sockets.group}) {
      for (int i = 0; i < kTurn && socket->get() >= 0; ++i) {
        const auto arrived = take_packet(*socket);
        if (!arrived) break;
        if (arrived->from) take(interface, *arrived->from, arrived->bytes);
      }
    }
  }
}

void Ports::add_to(std::vector<pollfd>& polled) const {
  for (const auto& [interface, sockets] : sockets_) {
    polled.push_back({sockets.own.get(), POLLIN, 0});
    if (sockets.group.get() >= 0) polled.push_back({sockets.group.get(), POLLIN, 0});
  }
}

}  // namespace espalier::cables
