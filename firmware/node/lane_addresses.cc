#include "firmware/node/lane_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/network/address.h"
#include "base/one_line.h"
#include "base/try.h"

namespace espalier::node {
namespace {

constexpr long kPauseNs = 20'000'000;

// Asks the system about one interface.
class InterfaceState {
 public:
  explicit InterfaceState(const std::string& name)
      : name_(name), socket_(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~InterfaceState() {
    if (socket_ >= 0) close(socket_);
  }
  InterfaceState(const InterfaceState&) = delete;
  InterfaceState& operator=(const InterfaceState&) = delete;

  // Errors: there is no such interface, it is down, it has another MTU.
  [[nodiscard]] Result<void> check(std::uint32_t mtu);
  [[nodiscard]] bool has_carrier() const { return (flags_ & IFF_RUNNING) != 0; }
  // Returns the link-local address that a socket can bind; nothing: there is none, or not yet.
  [[nodiscard]] std::optional<std::string> address() const;

 private:
  [[nodiscard]] bool ask(unsigned long what, ifreq& request) const {
    request = {};
    if (name_.size() >= sizeof request.ifr_name) return false;
    std::memcpy(request.ifr_name, name_.data(), name_.size());
    return ioctl(socket_, what, &request) == 0;
  }

  std::string name_;
  int socket_;
  int flags_ = 0;
};

Result<void> InterfaceState::check(std::uint32_t mtu) {
  const std::string who = "interface " + one_line(name_);
  if (socket_ < 0) {
    return fail(who + ": this host has no IPv6 (" + std::strerror(errno) +
                "), and cables are used by link-local IPv6 addresses; expected IPv6");
  }
  ifreq request;
  if (!ask(SIOCGIFFLAGS, request)) {
    return fail(who + " does not exist on this host; expected the cable's interface here");
  }
  flags_ = request.ifr_flags;
  if ((flags_ & IFF_UP) == 0) {
    return fail(who + " is down; expected it up (ip link set " + one_line(name_) + " up)");
  }
  if (mtu == 0 || !ask(SIOCGIFMTU, request)) return {};
  if (static_cast<std::uint32_t>(request.ifr_mtu) == mtu) return {};
  return fail(who + " has an MTU of " + std::to_string(request.ifr_mtu) + " bytes; expected " +
              std::to_string(mtu) + ", as the cables' file says");
}

std::optional<std::string> InterfaceState::address() const {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  std::optional<std::string> found;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    const auto address = network::Address::from_socket(one->ifa_addr);
    if (name_ != one->ifa_name || !address || !address->needs_scope()) continue;
    // The system refuses an address that another host may have until it has asked for it.
    sockaddr_storage name;
    const socklen_t size = address->with_port(0).to_socket(name);
    const int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe >= 0 && bind(probe, reinterpret_cast<const sockaddr*>(&name), size) == 0) {
      found = address->host();
    }
    if (probe >= 0) close(probe);
  }
  freeifaddrs(all);
  return found;
}

Result<std::string> address_of(const Link::Interface& interface, std::uint64_t until_ns) {
  while (true) {
    InterfaceState state(interface.name);
    ESPALIER_TRY(state.check(interface.mtu));
    if (auto address = state.address()) return *std::move(address);
    if (monotonic_ns() >= until_ns) {
      const std::string who = "interface " + one_line(interface.name);
      if (!state.has_carrier()) {
        return fail(who + " has no carrier; expected a cable to a host whose interface is up");
      }
      return fail(who + " has no link-local IPv6 address that can be used; expected fe80::...");
    }
    const timespec pause = {0, kPauseNs};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Result<std::vector<std::string>> lane_addresses(const std::vector<Link>& links,
                                                std::uint64_t patience_ns) {
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  std::vector<std::string> addresses;
  for (const Link& link : links) {
    for (const Link::Interface& interface : link.interfaces) {
      auto address = address_of(interface, until_ns);
      if (!address) {
        return fail("the cable to node " + std::to_string(link.peer) + ": " +
                    address.error().message);
      }
      addresses.push_back(*std::move(address));
    }
  }
  return addresses;
}

}  // namespace espalier::node
