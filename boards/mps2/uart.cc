#include "boards/mps2/uart.h"

namespace espalier {
namespace {

constexpr std::uint32_t kData = 0x00, kState = 0x04, kControl = 0x08, kInterrupts = 0x0c,
                        kDivider = 0x10;
constexpr std::uint32_t kFull = 1, kWaiting = 2;                         // in kState
constexpr std::uint32_t kSend = 1, kReceive = 2, kReceiveInterrupt = 8;  // in kControl
constexpr std::uint32_t kFastest = 16;

}  // namespace

void Uart::begin() const {
  at(kDivider) = kFastest;
  at(kControl) = kSend | kReceive | kReceiveInterrupt;
}

bool Uart::put(std::uint8_t byte) const {
  if ((at(kState) & kFull) != 0) return false;
  at(kData) = byte;
  return true;
}

bool Uart::get(std::uint8_t& byte) const {
  if ((at(kState) & kWaiting) == 0) {
    at(kInterrupts) = 2;  // the receiver's
    return false;
  }
  byte = static_cast<std::uint8_t>(at(kData));
  return true;
}

void Uart::print(const char* text) const {
  for (; *text != '\0'; ++text) {
    while (!put(static_cast<std::uint8_t>(*text))) {
    }
  }
}

}  // namespace espalier
