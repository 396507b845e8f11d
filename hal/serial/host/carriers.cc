#include "hal/serial/host/carriers.h"

#include <poll.h>

#include <charconv>
#include <ctime>

#include "base/network/address.h"
#include "hal/serial/host/open_carriers.h"

namespace espalier {
namespace {

constexpr const char* kForms =
    "expected unix:LOCAL,REMOTE or udp:LOCALPORT,HOST:PORT or tty:PATH,BAUD or stream:PATH";

// Splits at the last `mark`. False: there is none, or one side is empty.
[[nodiscard]] bool split(const std::string& text, char mark, std::string& before,
                         std::string& after) {
  const std::size_t position = text.rfind(mark);
  if (position == std::string::npos || position == 0 || position + 1 == text.size()) return false;
  before = text.substr(0, position);
  after = text.substr(position + 1);
  return true;
}

[[nodiscard]] bool number(const std::string& text, std::uint32_t most, std::uint32_t& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc() && stopped == end && value <= most;
}

[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_kind(const std::string& spec,
                                                             const EthernetAddress& own,
                                                             const EthernetAddress& other) {
  const std::size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  std::string first, second;
  if (kind == "unix" && split(rest, ',', first, second)) {
    return open_unix(first, second, own, other);
  }
  if (kind == "udp" && split(rest, ',', first, second)) {
    std::uint32_t local = 0;
    if (!number(first, 65535, local)) {
      return fail("the local port is '" + first + "'; expected a number up to 65535");
    }
    const auto remote = network::split(second);
    if (!remote || remote->port == 0) {
      return fail("the other end is '" + second +
                  "'; expected HOST:PORT with a port from 1 to 65535, as in [::1]:4000");
    }
    return open_udp(static_cast<std::uint16_t>(local), second);
  }
  if (kind == "tty" && split(rest, ',', first, second)) {
    std::uint32_t baud = 0;
    if (!number(second, UINT32_MAX, baud)) {
      return fail("the baud rate is '" + second + "'; expected a number");
    }
    return open_tty(first, baud);
  }
  if (kind == "stream" && !rest.empty()) return open_stream(rest);
  return fail(kForms);
}

[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_end(const std::string& spec,
                                                            const EthernetAddress& own,
                                                            const EthernetAddress& other) {
  auto carrier = open_kind(spec, own, other);
  if (!carrier) return fail("device '" + spec + "': " + carrier.error().message);
  return carrier;
}

}  // namespace

Result<std::unique_ptr<HostCarrier>> open_carrier(const std::string& spec) {
  return open_end(spec, kGatewayAddress, kBoardAddress);
}

Result<std::unique_ptr<HostCarrier>> open_board_carrier(const std::string& spec) {
  return open_end(spec, kBoardAddress, kGatewayAddress);
}

std::uint64_t HostClock::now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void HostClock::wait(std::uint64_t until) {
  std::vector<pollfd> waited;
  for (const HostCarrier* carrier : carriers_) {
    if (carrier->pending()) return;
    if (carrier->fd() >= 0) waited.push_back({carrier->fd(), POLLIN, 0});
  }
  const std::uint64_t time = now();
  if (until <= time) return;
  const std::uint64_t left = until - time;
  const timespec most = {static_cast<time_t>(left / 1'000'000'000),
                         static_cast<long>(left % 1'000'000'000)};
  static_cast<void>(ppoll(waited.data(), waited.size(), &most, nullptr));
}

}  // namespace espalier
