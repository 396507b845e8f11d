#pragma once
// What drivers say of this host's interfaces. Host only.

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/network/interfaces.h"

namespace espalier::network {

// Asks drivers. /sys/class/net may show another network's interfaces: a container's, for example.
class Drivers {
 public:
  Drivers() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~Drivers() {
    if (socket_ >= 0) close(socket_);
  }
  Drivers(const Drivers&) = delete;
  Drivers& operator=(const Drivers&) = delete;

  // Mbit/s; 0: unknown.
  [[nodiscard]] std::uint32_t rate(const std::string& name) const {
    ethtool_cmd settings = {};
    settings.cmd = ETHTOOL_GSET;
    if (!ask(name, &settings)) return 0;
    const std::uint32_t rate = ethtool_cmd_speed(&settings);
    return rate > INT32_MAX ? 0 : rate;
  }
  // MTU, bytes; 0: unknown.
  [[nodiscard]] std::uint32_t mtu(const std::string& name) const {
    ifreq request = {};
    if (!fill(name, request) || ioctl(socket_, SIOCGIFMTU, &request) != 0) return 0;
    return static_cast<std::uint32_t>(std::max(request.ifr_mtu, 0));
  }
  // `flags`: those of the interface, IFF_....
  [[nodiscard]] InterfaceKind kind_of(const std::string& name, unsigned flags) const {
    if ((flags & IFF_LOOPBACK) != 0) return InterfaceKind::kLoopback;
    if ((flags & IFF_POINTOPOINT) != 0) return InterfaceKind::kPointToPoint;
    return is(name, "bridge") ? InterfaceKind::kBridge : InterfaceKind::kNetwork;
  }

 private:
  // Whether the driver is the one of this name.
  [[nodiscard]] bool is(const std::string& name, std::string_view driver) const {
    ethtool_drvinfo about = {};
    about.cmd = ETHTOOL_GDRVINFO;
    return ask(name, &about) && driver == about.driver;
  }

  [[nodiscard]] bool ask(const std::string& name, void* data) const {
    ifreq request = {};
    if (!fill(name, request)) return false;
    request.ifr_data = static_cast<char*>(data);
    return ioctl(socket_, SIOCETHTOOL, &request) == 0;
  }
  [[nodiscard]] bool fill(const std::string& name, ifreq& request) const {
    if (socket_ < 0 || name.size() >= sizeof request.ifr_name) return false;
    std::memcpy(request.ifr_name, name.data(), name.size());
    return true;
  }

  int socket_;
};

}  // namespace espalier::network
