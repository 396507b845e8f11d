#pragma once
// Frames of hal/serial inside Ethernet frames, for the board's driver and the host's carrier.
// Freestanding. After the header follow the frame, at most kEthernetMtu bytes, and zeros up to
// kEthernetMinBytes in all. The frame check sequence that follows is left to the device.

#include <cstdint>
#include <cstring>

#include "espalier/internal/hal/serial/frame.h"

namespace espalier {

// Keeps the frame that follows word-aligned.
inline constexpr std::uint32_t kEthernetHeaderBytes = 16;
// Bytes of a serial frame, without this header.
inline constexpr std::uint32_t kEthernetMtu = 1500 - 2;
// Sizes of an Ethernet frame in bytes, without its frame check sequence: kEthernetMinBytes and
// kEthernetMaxBytes.
inline constexpr std::uint32_t kEthernetMinBytes = 60;
inline constexpr std::uint32_t kEthernetMaxBytes = kEthernetHeaderBytes + kEthernetMtu;

// A MAC address, in the order of its bytes on the wire.
struct EthernetAddress {
  std::uint8_t bytes[6];
};
// kGatewayAddress and kBoardAddress: locally administered addresses. A physical link has one
// gateway and one board.
inline constexpr EthernetAddress kGatewayAddress = {{0x02, 'E', 's', 'p', 'l', 0x00}};
inline constexpr EthernetAddress kBoardAddress = {{0x02, 'E', 's', 'p', 'l', 0x01}};

// The fields of the header.
namespace ethernet_header {
inline constexpr serial::Field kDestination = {0, 6};  // an EthernetAddress
inline constexpr serial::Field kSource = {6, 6};       // an EthernetAddress
inline constexpr serial::Field kType = {12, 2};  // the EtherType, here as a little-endian number
// Bytes of the frame that follows; Ethernet pads it.
inline constexpr serial::Field kBytes = {14, 2};
}  // namespace ethernet_header
// 0x88B5, IEEE 802's first EtherType for local experiments, in the order of its bytes on the wire.
inline constexpr std::uint16_t kEthernetType = 0xb588;

// Writes the kEthernetHeaderBytes before a frame of `size` bytes.
inline void write_ethernet_header(std::uint8_t* header, const EthernetAddress& to,
                                  const EthernetAddress& from, std::uint32_t size) {
  using namespace ethernet_header;
  std::memcpy(header + kDestination.offset, to.bytes, kDestination.bytes);
  std::memcpy(header + kSource.offset, from.bytes, kSource.bytes);
  serial::set<kType>(header, kEthernetType);
  serial::set<kBytes>(header, size);
}

// Returns the size in bytes of an Ethernet frame, header and padding included, that carries a frame
// of `size` bytes.
[[nodiscard]] constexpr std::uint32_t ethernet_bytes(std::uint32_t size) {
  const std::uint32_t all = kEthernetHeaderBytes + size;
  return all < kEthernetMinBytes ? kEthernetMinBytes : all;
}

// Returns the size in bytes of the serial frame inside an Ethernet frame that begins with `header`
// and has `all` bytes, with or without its frame check sequence. Returns 0 if the Ethernet frame is
// not addressed to `to`, has another EtherType, or is truncated.
[[nodiscard]] inline std::uint32_t read_ethernet_header(const std::uint8_t* header,
                                                        std::uint32_t all,
                                                        const EthernetAddress& to) {
  using namespace ethernet_header;
  if (all < kEthernetHeaderBytes ||
      std::memcmp(header + kDestination.offset, to.bytes, kDestination.bytes) != 0 ||
      serial::get<kType>(header) != kEthernetType) {
    return 0;
  }
  const std::uint32_t size = serial::get<kBytes>(header);
  return size <= all - kEthernetHeaderBytes && size <= kEthernetMtu ? size : 0;
}

}  // namespace espalier
