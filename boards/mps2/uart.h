#pragma once
// The UART of Arm's Cortex-M System Design Kit (CMSDK).

#include <cstdint>

#include "espalier/hal/serial/carrier.h"

namespace espalier {

class Uart {
 public:
  explicit constexpr Uart(std::uint32_t base) : base_(base) {}
  // Enables both directions at the highest rate. From then on the interrupt is pending after a byte
  // arrived.
  void begin() const;
  [[nodiscard]] bool put(std::uint8_t byte) const;
  [[nodiscard]] bool get(std::uint8_t& byte) const;
  // Writes `text`; waits for room.
  void print(const char* text) const;

 private:
  [[nodiscard]] volatile std::uint32_t& at(std::uint32_t offset) const {
    return *reinterpret_cast<volatile std::uint32_t*>(base_ + offset);
  }
  std::uint32_t base_;
};

inline constexpr Uart kConsole(0x40004000);  // UART0
inline constexpr Uart kUart1(0x40005000);

class Uart1Stream final : public ByteStream {
 public:
  [[nodiscard]] bool put(std::uint8_t byte) override { return kUart1.put(byte); }
  [[nodiscard]] bool get(std::uint8_t& byte) override { return kUart1.get(byte); }
};

}  // namespace espalier
