#include "tools/launch/neighbours.h"

#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include "base/network/address.h"
#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/network/links.h"
#include "base/parse_number.h"
#include "base/try.h"
#include "tools/common/find_program.h"

namespace espalier::launch {
namespace {

using network::Address;
using network::Link;
using network::LinkLocal;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kBetween{50};       // requests
constexpr milliseconds kAfterAnswer{150};  // for a second neighbour: there is a switch
constexpr milliseconds kWithout{1000};     // an answer
constexpr milliseconds kAddressTime{4000};
constexpr const char* kAllNodes = "ff02::1";

struct Echo {
  icmp6_hdr head = {};
  std::array<std::uint8_t, 8> nonce = {};
};
static_assert(sizeof(Echo) == 16);

// A socket for echo requests: of the kind that systems may allow to all users, or a raw one.
class Requests {
 public:
  Requests() {
    for (const int kind : {SOCK_DGRAM, SOCK_RAW}) {
      file_ = socket(AF_INET6, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6);
      if (file_ >= 0) break;
    }
    const int off = 0;
    icmp6_filter replies;
    ICMP6_FILTER_SETBLOCKALL(&replies);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &replies);
    if (file_ < 0) return;
    setsockopt(file_, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof off);
    setsockopt(file_, IPPROTO_ICMPV6, ICMP6_FILTER, &replies, sizeof replies);
    randombytes_buf(nonce_.data(), nonce_.size());
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() {
    if (file_ >= 0) close(file_);
  }
  [[nodiscard]] bool are_allowed() const { return file_ >= 0; }
  // A request that cannot be sent is lost like one on the cable.
  void send(std::uint32_t interface) {
    Echo echo{.head = {}, .nonce = nonce_};
    echo.head.icmp6_type = ICMP6_ECHO_REQUEST;
    echo.head.icmp6_seq = htons(sequence_++);
    sockaddr_in6 to = {};
    to.sin6_family = AF_INET6;
    to.sin6_scope_id = interface;
    inet_pton(AF_INET6, kAllNodes, &to.sin6_addr);
    (void)sendto(file_, &echo, sizeof echo, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  // Waits for this time. Returns the senders of the answers that came.
  [[nodiscard]] std::vector<Address> receive(milliseconds time) const {
    pollfd polled{file_, POLLIN, 0};
    std::vector<Address> senders;
    if (poll(&polled, 1, static_cast<int>(time.count())) <= 0) return senders;
    Echo echo;
    sockaddr_storage from = {};
    socklen_t size = sizeof from;
    while (recvfrom(file_, &echo, sizeof echo, 0, reinterpret_cast<sockaddr*>(&from), &size) ==
           sizeof echo) {
      const auto sender = Address::from_socket(reinterpret_cast<const sockaddr*>(&from));
      size = sizeof from;
      if (echo.head.icmp6_type != ICMP6_ECHO_REPLY || echo.nonce != nonce_) continue;
      if (sender && sender->needs_scope()) senders.push_back(*sender);
    }
    return senders;
  }

 private:
  int file_ = -1;
  std::uint16_t sequence_ = 1;
  std::array<std::uint8_t, 8> nonce_ = {};
};

// One look at all interfaces.
class Look {
 public:
  explicit Look(network::InterfaceFilter filter) : filter_(std::move(filter)) {}
  [[nodiscard]] Result<Surroundings> take();

 private:
  struct Port {
    Clock::time_point since = {};  // it has a usable address
    std::vector<Neighbour> found = {};
    Clock::time_point answered_at = {};
  };
  // Sends requests at all interfaces that can. Returns whether every interface is done.
  [[nodiscard]] Result<bool> ask();
  void take_answers();
  void list_own();
  [[nodiscard]] Result<Surroundings> result();
  [[nodiscard]] Result<void> ask_by_ping();

  network::InterfaceFilter filter_;
  Requests requests_;
  const Clock::time_point begin_ = Clock::now();
  std::map<std::uint32_t, std::string> names_;
  std::map<std::string, Port> ports_;
  Surroundings found_;
};

Result<bool> Look::ask() {
  ESPALIER_TRY_TO(const auto links, network::links_up(filter_));
  const Clock::time_point now = Clock::now();
  bool is_done = true;
  for (const Link& link : links) {
    if (!link.has_carrier || link.name.find('\'') != std::string::npos) continue;
    names_[link.index] = link.name;
    if (link.link_local == LinkLocal::kNotYet) is_done &= now - begin_ > kAddressTime;
    if (link.link_local != LinkLocal::kUsable) continue;
    const Port& port = ports_.emplace(link.name, Port{.since = now}).first->second;
    if (!requests_.are_allowed()) continue;
    requests_.send(link.index);
    is_done &=
        port.found.empty() ? now - port.since > kWithout : now - port.answered_at > kAfterAnswer;
  }
  return is_done;
}

void Look::take_answers() {
  for (const Address& sender : requests_.receive(kBetween)) {
    const auto name = names_.find(sender.scope);
    const auto port = name == names_.end() ? ports_.end() : ports_.find(name->second);
    if (port == ports_.end()) continue;
    const Neighbour neighbour{name->second, sender.bare().host()};
    std::vector<Neighbour>& found = port->second.found;
    if (std::find(found.begin(), found.end(), neighbour) != found.end()) continue;
    found.push_back(neighbour);
    port->second.answered_at = Clock::now();
  }
}

// Systems that allow no sockets for this have a `ping` that may.
Result<void> Look::ask_by_ping() {
  if (ports_.empty()) return {};
  if (tools::find_program("ping").empty()) {
    return fail(
        "it may not send echo requests, and has no 'ping'; expected net.ipv4.ping_group_range "
        "with this user's group, the right CAP_NET_RAW, or the program ping of iputils");
  }
  std::string words = "for name in";
  for (const auto& [name, port] : ports_) words += " '" + name + "'";
  words += "; do ping -6 -n -c 4 -i 0.2 -w 2 -I \"$name\" ";
  words += kAllNodes;
  words += " 2>/dev/null & done; wait";
  FILE* const pipe = popen(words.c_str(), "re");
  if (pipe == nullptr) return fail(std::string("cannot run ping: ") + std::strerror(errno));
  std::string output;
  char buffer[4096];
  for (std::size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    output.append(buffer, count);
  }
  pclose(pipe);
  for (Neighbour& each : read_ping(output)) {
    const auto port = ports_.find(each.interface);
    if (port != ports_.end()) port->second.found.push_back(std::move(each));
  }
  return {};
}

void Look::list_own() {
  for (const network::Interface& interface : network::running_interfaces()) {
    for (const network::InterfaceAddress& each : interface.addresses) {
      if (!each.address.needs_scope()) continue;
      found_.own.push_back({interface.name, each.address.bare().host()});
    }
  }
}

Result<Surroundings> Look::take() {
  while (true) {
    ESPALIER_TRY_TO(const bool is_done, ask());
    if (is_done) break;
    if (requests_.are_allowed()) {
      take_answers();
    } else {
      usleep(static_cast<useconds_t>(1000 * kBetween.count()));
    }
  }
  if (!requests_.are_allowed()) ESPALIER_TRY(ask_by_ping());
  list_own();
  for (const auto& [name, port] : ports_) {
    for (const Neighbour& each : port.found) {
      // A cable from the host to itself.
      const bool is_own =
          std::any_of(found_.own.begin(), found_.own.end(),
                      [&each](const Neighbour& own) { return own.address == each.address; });
      if (!is_own) found_.found.push_back(each);
    }
  }
  std::sort(found_.found.begin(), found_.found.end());
  return std::move(found_);
}

void add(Fields& fields, const std::vector<Neighbour>& neighbours) {
  for (const Neighbour& each : neighbours) {
    fields.push_back(each.interface);
    fields.push_back(each.address);
  }
}

}  // namespace

Result<Surroundings> look_around(const std::string& interfaces) {
  if (sodium_init() < 0) return fail("libsodium cannot be initialized");
  ESPALIER_TRY_TO(auto filter, network::interface_filter(interfaces, "--interface"));
  return Look(std::move(filter)).take();
}

std::vector<Neighbour> read_ping(const std::string& output) {
  std::vector<Neighbour> found;
  std::istringstream words(output);
  std::string before;
  for (std::string word; words >> word; before = word) {
    const std::size_t scope = word.find('%');
    if (before != "from" || scope == std::string::npos || word.back() != ':') continue;
    const Neighbour each{word.substr(scope + 1, word.size() - scope - 2), word.substr(0, scope)};
    const auto address = network::parse_ip(each.address);
    if (!address || !address->needs_scope()) continue;
    if (std::find(found.begin(), found.end(), each) == found.end()) found.push_back(each);
  }
  return found;
}

Fields to_fields(const Surroundings& surroundings) {
  Fields fields{"neighbours", std::to_string(surroundings.own.size())};
  add(fields, surroundings.own);
  add(fields, surroundings.found);
  return fields;
}

std::optional<Surroundings> read_surroundings(const Fields& message) {
  const auto own = message.size() < 2 ? std::nullopt : read_number(message[1]);
  if (!own || message[0] != "neighbours" || message.size() % 2 != 0) return {};
  Surroundings surroundings;
  for (std::size_t i = 2; i < message.size(); i += 2) {
    Neighbour each{message[i], message[i + 1]};
    const auto address = network::parse_ip(each.address);
    if (!address || !address->needs_scope()) return {};
    const bool is_own = surroundings.own.size() < *own;
    (is_own ? surroundings.own : surroundings.found).push_back(std::move(each));
  }
  if (surroundings.own.size() != *own) return {};
  return surroundings;
}

}  // namespace espalier::launch
