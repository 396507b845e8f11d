#pragma once
// The processor's own registers (The RISC-V Instruction Set Manual, volume II, chapter 3).

#include <cstdint>

namespace espalier::processor {

[[nodiscard]] inline volatile std::uint32_t& at(std::uint32_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
[[nodiscard]] inline volatile std::uint8_t& byte_at(std::uint32_t address) {
  return *reinterpret_cast<volatile std::uint8_t*>(address);
}

// Enables physical memory protection: memory is not executable, and the stack ends the program
// before it grows into variables.
void begin();

// Returns when the timer's interrupt or a device's is pending. No interrupt is ever taken. The
// caller clears it.
void sleep();

}  // namespace espalier::processor
