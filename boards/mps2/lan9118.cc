#include "boards/mps2/lan9118.h"

#include <cstring>

namespace espalier {
namespace {

constexpr std::uint32_t kRxData = 0x00, kTxData = 0x20, kRxStatus = 0x40, kTxStatus = 0x48,
                        kIrqCfg = 0x54, kIntSts = 0x58, kIntEn = 0x5c, kFifoInt = 0x68,
                        kRxCfg = 0x6c, kTxCfg = 0x70, kHwCfg = 0x74, kRxDpCtrl = 0x78,
                        kRxFifoInf = 0x7c, kTxFifoInf = 0x80, kMacCsrCmd = 0xa4, kMacCsrData = 0xa8;
constexpr std::uint32_t kMacBusy = 1u << 31, kMacReadIt = 1u << 30;
constexpr std::uint32_t kMacCr = 1;
constexpr std::uint32_t kMacReceive = 1u << 2, kMacSend = 1u << 3, kMacPromiscuous = 1u << 18;
constexpr std::uint32_t kReset = 1;
constexpr std::uint32_t kReceived = 1u << 3;  // in kIntSts: the receive status FIFO is not empty
constexpr std::uint32_t kCheckBytes = 4;      // the frame check sequence, as received

std::uint32_t words(std::uint32_t bytes) { return (bytes + 3) / 4; }

}  // namespace

std::uint32_t Lan9118::mac_read(std::uint32_t which) const {
  at(kMacCsrCmd) = kMacBusy | kMacReadIt | which;
  while ((at(kMacCsrCmd) & kMacBusy) != 0) {
  }
  return at(kMacCsrData);
}

void Lan9118::mac_write(std::uint32_t which, std::uint32_t value) {
  at(kMacCsrData) = value;
  at(kMacCsrCmd) = kMacBusy | which;
  while ((at(kMacCsrCmd) & kMacBusy) != 0) {
  }
}

void Lan9118::begin() {
  at(kHwCfg) = kReset;
  while ((at(kHwCfg) & kReset) != 0) {
  }
  at(kHwCfg) =
      1u << 20 | 5u << 16;  // store and forward; 5 KiB of send FIFO, the rest for receiving
  at(kTxCfg) = 1u << 1;
  at(kFifoInt) = 0;  // any received status raises the interrupt
  at(kIntSts) = 0xffffffff;
  at(kIntEn) = kReceived;
  at(kIrqCfg) = 1u << 8 | 1u << 4 | 1;  // on, active high, push-pull
  mac_write(kMacCr, mac_read(kMacCr) | kMacReceive | kMacSend | kMacPromiscuous);
}

// Writes whole words; fills the last one with zeros.
void Lan9118::put(const std::uint8_t* bytes, std::uint32_t size) {
  for (std::uint32_t word = 0; size > 0; word = 0) {
    const std::uint32_t part = size < 4 ? size : 4;
    std::memcpy(&word, bytes, part);
    at(kTxData) = word;
    bytes += part;
    size -= part;
  }
}

void Lan9118::get(std::uint8_t* bytes, std::uint32_t size) {
  while (size > 0) {
    const std::uint32_t word = at(kRxData);
    const std::uint32_t part = size < 4 ? size : 4;
    std::memcpy(bytes, &word, part);
    bytes += part;
    size -= part;
  }
}

Status Lan9118::send(const std::uint8_t* frame, std::uint32_t size) {
  while ((at(kTxFifoInf) >> 16 & 0xff) != 0) drop(kTxStatus);  // of earlier frames
  const std::uint32_t frame_bytes = ethernet_bytes(size);
  if ((at(kTxFifoInf) & 0xffff) < 8 + 4 * words(frame_bytes)) return Status::kTryAgain;
  at(kTxData) = 1u << 13 | 1u << 12 | frame_bytes;  // the first and last part of a frame
  at(kTxData) = frame_bytes;
  std::uint8_t header[kEthernetHeaderBytes];
  write_ethernet_header(header, kGatewayAddress, kBoardAddress, size);
  put(header, sizeof header);
  put(frame, size);
  for (std::uint32_t k = words(kEthernetHeaderBytes + size); k < words(frame_bytes); ++k)
    at(kTxData) = 0;
  return Status::kOk;
}

std::uint32_t Lan9118::receive(std::uint8_t* frame) {
  if ((at(kRxFifoInf) >> 16 & 0xff) == 0) return 0;
  const std::uint32_t status = at(kRxStatus);
  const std::uint32_t frame_bytes = status >> 16 & 0x3fff;
  std::uint32_t remaining = words(frame_bytes);
  std::uint32_t size = 0;
  if ((status & 1u << 15) == 0 && frame_bytes >= kEthernetHeaderBytes + kCheckBytes) {
    std::uint8_t header[kEthernetHeaderBytes];
    get(header, sizeof header);
    size = read_ethernet_header(header, frame_bytes - kCheckBytes, kBoardAddress);
    get(frame, size);
    remaining -= words(kEthernetHeaderBytes) + words(size);
  }
  for (; remaining > 0; --remaining) drop(kRxData);  // padding, or a frame for another address
  return size;
}

void Lan9118::clear_interrupt() { at(kIntSts) = kReceived; }

}  // namespace espalier
