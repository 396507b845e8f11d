#pragma once
// The carriers of a Linux host. Host only; throws nothing.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/hal/serial/byte_carrier.h"

namespace espalier {

class HostCarrier : public Carrier {
 public:
  virtual ~HostCarrier() = default;
  // What to poll for reading; it may change with any call. -1: nothing, for good.
  [[nodiscard]] virtual int fd() const = 0;
  // Whether something has been read from it and not taken yet: then poll says nothing.
  [[nodiscard]] virtual bool pending() const { return false; }
};

// Opens what `spec` says. Null: `error` is one line that says what is wrong, and nothing was left
// behind.
//   unix:LOCAL,REMOTE     Ethernet frames as datagrams between two unix sockets, as qemu speaks
//   them
//                         with -netdev dgram,id=N,local.type=unix,local.path=REMOTE,
//                         remote.type=unix,remote.path=LOCAL. Binds LOCAL (a socket that is left
//                         there is replaced); REMOTE may come and go.
//   udp:LOCALPORT,HOST:PORT  frames as UDP datagrams; HOST is a name or an IPv4 address. LOCALPORT
//                         0: any.
//   tty:PATH,BAUD         a byte stream over a serial device, 8 bits, no parity, no flow control
//   stream:PATH           a byte stream over a unix socket: listens at PATH; the device joins
//                         (qemu: -serial unix:PATH), one at a time, and may leave and join again.
[[nodiscard]] std::unique_ptr<HostCarrier> open_carrier(const std::string& spec,
                                                        std::string& error);

// The same, but the board's end of `unix:` (kBoardAddress): nodes that run on the host as boards
// do.
[[nodiscard]] std::unique_ptr<HostCarrier> open_board_carrier(const std::string& spec,
                                                              std::string& error);

// The monotonic clock; waits for the carriers it was told of, all of which outlive it.
class HostClock final : public Clock {
 public:
  void add(const HostCarrier& carrier) { carriers_.push_back(&carrier); }
  [[nodiscard]] std::uint64_t now() override;
  void wait(std::uint64_t until) override;

 private:
  std::vector<const HostCarrier*> carriers_;
};

}  // namespace espalier
