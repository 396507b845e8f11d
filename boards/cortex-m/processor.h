#pragma once
// The processor's own registers, which all Cortex-M have at the same addresses.

#include <cstdint>

namespace espalier::processor {

[[nodiscard]] inline volatile std::uint32_t& at(std::uint32_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}

// Enables the caches, and the MPU: memory is not executable, and the stack ends the program before
// it grows into variables. Each of them where there is one.
void begin();

// Sleeps until an interrupt is pending or `ticks` of the processor's clock have passed, at most
// kMaxSleepTicks. The caller clears the interrupts of its devices. Not on processors without
// SysTick.
inline constexpr std::uint32_t kMaxSleepTicks = 0xffffff;
void sleep(std::uint32_t ticks);

// Resets the board.
[[noreturn]] void restart();

}  // namespace espalier::processor

#ifdef __ARM_FP
// Enables the floating-point unit. The start-up code of a processor with such a unit must define
// this function and call it before anything else. firmware/bare/meson.build links no program that
// is compiled for a floating-point unit without this function.
extern "C" void enable_fpu();
#endif
