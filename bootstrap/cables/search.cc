#include "bootstrap/cables/search.h"

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/counted.h"
#include "base/network/filter.h"
#include "base/network/links.h"
#include "base/try.h"
#include "bootstrap/cables/discovery.h"
#include "bootstrap/stream.h"

namespace espalier::cables {
namespace {

using bootstrap::Socket;
using network::Address;
using network::Link;
using network::LinkLocal;

constexpr Time kScanTime = std::chrono::milliseconds(200);  // between looks at the interfaces
// An interface whose address is not usable after this time is searched no longer.
constexpr Time kAddressTime = std::chrono::seconds(6);
constexpr Time kQuietTime = std::chrono::milliseconds(300);  // with a known number of hosts
constexpr Time kLongQuietTime = std::chrono::seconds(2);     // without
// Packets of one interface that are read before it is the next one's turn: a flood on one cable
// does not keep the others from being heard.
constexpr int kTurn = 32;
constexpr int kHopLimit = 255;  // a packet that a router passed on has less

Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

Error failed(const std::string& what, const std::string& name) {
  return {"cannot " + what + " on " + name + ": " + std::strerror(errno)};
}

// The socket of one interface: it receives packets of that interface only.
Result<Socket> open_socket(const Link& link, std::uint16_t port) {
  Socket opened(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (opened.get() < 0) return fail(failed("open a UDP socket of IPv6", link.name));
  const auto set = [&opened](int level, int option, int value) {
    return setsockopt(opened.get(), level, option, &value, sizeof value) == 0;
  };
  if (setsockopt(opened.get(), SOL_SOCKET, SO_BINDTODEVICE, link.name.data(),
                 static_cast<socklen_t>(link.name.size())) != 0) {
    return fail(failed("receive only what arrives", link.name).message +
                "; expected Linux 5.7 or newer, or CAP_NET_RAW");
  }
  if (!set(IPPROTO_IPV6, IPV6_V6ONLY, 1) || !set(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0) ||
      !set(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kHopLimit) ||
      !set(IPPROTO_IPV6, IPV6_UNICAST_HOPS, kHopLimit) ||
      !set(IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)) {
    return fail(failed("set up a UDP socket", link.name));
  }
  sockaddr_storage at = {};
  const socklen_t size = network::wildcard(true).with_port(port).to_socket(at);
  if (bind(opened.get(), reinterpret_cast<sockaddr*>(&at), size) == 0) return opened;
  const std::string what = "use UDP port " + std::to_string(port);
  const bool is_taken = errno == EADDRINUSE;
  return fail(failed(what, link.name).message +
              (is_taken ? "; expected one search at a time, or another port" : ""));
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

class Search {
 public:
  Search(const SearchOptions& options, network::InterfaceFilter filter, const std::string& name)
      : options_(options),
        filter_(std::move(filter)),
        discovery_({.host = random_number(), .network = network::network_id(), .name = name},
                   key_of(options.secret), random_number) {}

  [[nodiscard]] Result<SearchResult> run();

 private:
  static std::uint64_t random_number() {
    std::uint64_t number = 0;
    randombytes_buf(&number, sizeof number);
    return number;
  }
  // Looks at the interfaces, and opens and closes sockets.
  [[nodiscard]] Result<void> scan(Time at);
  [[nodiscard]] PortState state_of(const Link& link, Time at);
  void send(const std::vector<Discovery::Outgoing>& packets);
  void wait_and_receive(Time until);
  void receive();
  [[nodiscard]] bool is_settled(Time at) const;

  const SearchOptions& options_;
  network::InterfaceFilter filter_;
  Discovery discovery_;
  std::map<std::uint32_t, Socket> sockets_;  // by number of the interface
  bool has_scanned_ = false;
  std::map<std::uint32_t, Time> without_since_;  // interfaces without a usable address
};

PortState Search::state_of(const Link& link, Time at) {
  if (!link.has_carrier) return PortState::kNoCarrier;
  if (link.link_local == LinkLocal::kOff) return PortState::kNoIpv6;
  if (link.link_local == LinkLocal::kUsable) return PortState::kReady;
  const Time since = without_since_.emplace(link.index, at).first->second;
  const bool is_hopeless = link.link_local == LinkLocal::kFailed || at - since > kAddressTime;
  return is_hopeless ? PortState::kNoAddress : PortState::kBeginning;
}

Result<void> Search::scan(Time at) {
  auto all = network::links_up(filter_);
  // An interface that was named is down now: it was not at the start.
  if (!all && has_scanned_) return {};
  ESPALIER_TRY_TO(std::vector<Link> found, std::move(all));
  if (found.empty() && !has_scanned_) {
    return fail(std::string("no interface to search is up") +
                (filter_.is_empty() ? "" : " among those that are named") +
                ", except the loopback; expected one with a cable, set up by ip link set NAME up");
  }
  has_scanned_ = true;
  if (found.size() > kMaxPorts) {
    return fail("this host has " + counted(found.size(), "interface") +
                " to search; expected at most " + std::to_string(kMaxPorts) +
                ", or names of some (ESPALIER_INTERFACE, espalier cables --interface)");
  }
  std::vector<Port> ports;
  std::map<std::uint32_t, Socket> sockets;
  for (const Link& link : found) {
    const PortState state = state_of(link, at);
    ports.push_back({link.index, name_from(link.name), link.rate_mbits, link.mtu, state});
    if (state != PortState::kReady) continue;
    without_since_.erase(link.index);
    const auto old = sockets_.find(link.index);
    if (old != sockets_.end()) {
      sockets.emplace(link.index, std::move(old->second));
      continue;
    }
    auto opened = open_socket(link, options_.port);
    if (opened) {
      sockets.emplace(link.index, *std::move(opened));
    } else if (if_nametoindex(link.name.c_str()) == link.index) {
      return fail(std::move(opened.error()));
    } else {
      ports.pop_back();  // the interface was removed meanwhile
    }
  }
  sockets_ = std::move(sockets);
  discovery_.set_ports(ports, at);
  return {};
}

// A packet that cannot be sent is lost like one on the cable.
void Search::send(const std::vector<Discovery::Outgoing>& packets) {
  for (const Discovery::Outgoing& packet : packets) {
    const auto socket = sockets_.find(packet.port);
    if (socket == sockets_.end()) continue;
    const Address to = packet.to.value_or(all_nodes(packet.port, options_.port));
    sockaddr_storage at = {};
    const socklen_t size = to.to_socket(at);
    (void)sendto(socket->second.get(), packet.bytes.data(), packet.bytes.size(), 0,
                 reinterpret_cast<sockaddr*>(&at), size);
  }
}

void Search::receive() {
  for (const auto& [interface, socket] : sockets_) {
    for (int i = 0; i < kTurn; ++i) {
      const auto arrived = take_packet(socket);
      if (!arrived) break;
      if (arrived->from) discovery_.receive(interface, *arrived->from, arrived->bytes, now());
    }
  }
}

void Search::wait_and_receive(Time until) {
  std::vector<pollfd> polled;
  for (const auto& [interface, socket] : sockets_) polled.push_back({socket.get(), POLLIN, 0});
  const auto left = std::max(until - now(), Time(0));
  const timespec time{static_cast<time_t>(left.count() / 1'000'000'000),
                      static_cast<long>(left.count() % 1'000'000'000)};
  if (ppoll(polled.data(), polled.size(), &time, nullptr) > 0) receive();
}

bool Search::is_settled(Time at) const {
  const std::size_t hosts = discovery_.hosts().size();
  if (discovery_.is_beginning() || hosts < std::max(options_.hosts, 2u)) return false;
  return at - discovery_.changed_at() >= (options_.hosts != 0 ? kQuietTime : kLongQuietTime);
}

Result<SearchResult> Search::run() {
  const Time end = now() + options_.wait;
  SearchResult result;
  for (Time scan_at = now(); !result.is_settled && now() < end;) {
    if (now() >= scan_at) {
      ESPALIER_TRY(scan(now()));
      scan_at = now() + kScanTime;
    }
    send(discovery_.take_due(now()));
    wait_and_receive(std::min({discovery_.next_due(), scan_at, end}));
    const bool is_content = is_settled(now());
    discovery_.set_content(is_content, now());
    // A host that has left saw all others content with this graph, or had no more time.
    result.is_settled = is_content && (discovery_.all_content() || discovery_.has_any_left());
  }
  send(discovery_.leave(now()));
  result.graph = graph_of(discovery_.hosts(), options_.hosts);
  result.refused = discovery_.refused();
  return result;
}

}  // namespace

Result<SearchResult> search(const SearchOptions& options) {
  if (sodium_init() < 0) return fail("libsodium cannot be initialized");
  ESPALIER_TRY_TO(auto filter, network::interface_filter(options.interfaces, "--interface"));
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
    return fail("this host has no name; expected one, set by hostname");
  }
  return Search(options, std::move(filter), name_from(name.data())).run();
}

}  // namespace espalier::cables
