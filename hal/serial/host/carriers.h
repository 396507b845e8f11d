#pragma once
// The carriers of a Linux host. Host only; throws nothing.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/hal/serial/carrier.h"
#include "espalier/internal/hal/serial/serial_port.h"

namespace espalier {

class HostCarrier : public Carrier {
 public:
  virtual ~HostCarrier() = default;
  // The descriptor to poll for reading; any call may change it. -1: none, permanently.
  [[nodiscard]] virtual int fd() const = 0;
  // Whether data was read from it and not yet taken; poll() does not report this.
  [[nodiscard]] virtual bool pending() const { return false; }
  // SerialPortConfig::resend_ns of a port over this carrier.
  [[nodiscard]] virtual std::uint64_t resend_ns() const { return SerialPortConfig().resend_ns; }
};

// Opens the carrier that `spec` describes. On error leaves nothing behind.
//   unix:LOCAL,REMOTE     Ethernet frames as datagrams between two unix sockets, as in qemu with
//                         -netdev dgram,id=N,local.type=unix,local.path=REMOTE,
//                         remote.type=unix,remote.path=LOCAL. Binds LOCAL and replaces a socket
//                         left there; REMOTE may appear and disappear.
//   udp:LOCALPORT,HOST:PORT  frames as UDP datagrams; HOST is a name or an IP, an IPv6
//                         one in brackets. LOCALPORT 0: any port.
//   tty:PATH,BAUD         a byte stream over a serial device, 8 bits, no parity, no flow control
//   stream:PATH           a byte stream over a unix socket: listens at PATH. The device connects
//                         (qemu: -serial unix:PATH), one at a time, and may leave and reconnect.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_carrier(const std::string& spec);

// Opens the board's end of `unix:` (kBoardAddress): for nodes that run on the host as boards do.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_board_carrier(const std::string& spec);

// The monotonic clock. It waits for the carriers registered with it, which must outlive it.
class HostClock final : public Clock {
 public:
  void add(const HostCarrier& carrier) { carriers_.push_back(&carrier); }
  [[nodiscard]] std::uint64_t now() override;
  void wait(std::uint64_t until) override;

 private:
  std::vector<const HostCarrier*> carriers_;
};

}  // namespace espalier
