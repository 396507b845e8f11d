#pragma once
// The UART of Arm's Cortex-M System Design Kit (CMSDK).

#include <cstdint>

#include "hal/serial/byte_carrier.h"

namespace espalier {

class Uart final : public ByteStream {
 public:
  explicit constexpr Uart(std::uint32_t base) : base_(base) {}
  // Both directions on, at the fastest rate; the receiver's interrupt is pending while a byte waits.
  void begin();
  [[nodiscard]] bool put(std::uint8_t byte) override;
  [[nodiscard]] bool get(std::uint8_t& byte) override;
  // Waits for room.
  void print(const char* text);

 private:
  [[nodiscard]] volatile std::uint32_t& at(std::uint32_t offset) const {
    return *reinterpret_cast<volatile std::uint32_t*>(base_ + offset);
  }
  std::uint32_t base_;
};

Uart& console();  // UART0

}  // namespace espalier
