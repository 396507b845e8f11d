#pragma once
// Carriers over streams of bytes, and over datagram sockets. Host only.

#include <memory>
#include <string>

#include "hal/serial/ethernet.h"
#include "hal/serial/host/carriers.h"

namespace espalier {

// Opens the serial device at `path`.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_tty(const std::string& path,
                                                            std::uint32_t baud);
// Listens at `path`.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_stream(const std::string& path);

// `own` and `other` are the addresses in the Ethernet frames.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_unix(const std::string& local,
                                                             const std::string& remote,
                                                             const EthernetAddress& own,
                                                             const EthernetAddress& other);
// `remote`: HOST:PORT, of either family; an IPv6 address has brackets.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_udp(std::uint16_t local_port,
                                                            const std::string& remote);

}  // namespace espalier
