// Start-up code and the handler of processor faults.

#include "boards/cortex-m/startup.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "boards/cortex-m/processor.h"
#include "firmware/bare/board.h"
#include "firmware/bare/text.h"

extern "C" {
extern char bss_begin[], bss_end[], stack_top[];
int main();

[[noreturn]] void reset() {
  // No interrupt is ever taken. A pending interrupt ends `wfi` all the same.
  asm volatile("cpsid i");
#ifdef __ARM_FP
  enable_fpu();
#endif
  espalier::processor::begin();
  memset(bss_begin, 0, static_cast<std::size_t>(bss_end - bss_begin));
  espalier::startup::begin_console();
  espalier::startup::stop(main());
}

// `frame`: what the processor stored when it stopped: r0 to r3, r12, lr, pc and the state. Null: it
// had no room. boards/cortex-m/fault.py says what the numbers mean.
[[noreturn, gnu::used]] void report_fault(const std::uint32_t* frame) {
  using espalier::bare::Hex;
  espalier::bare::Text text;
  text << "fault: the processor stopped\n";
  if (frame != nullptr) {
    text << "fault: pc " << Hex{frame[6]} << ", lr " << Hex{frame[5]} << "\n";
  }
#if __ARM_ARCH >= 7
  using espalier::processor::at;
  constexpr std::uint32_t kReason = 0xe000ed28, kMpuAddress = 0xe000ed34, kBusAddress = 0xe000ed38;
  constexpr std::uint32_t kHasMpuAddress = 1 << 7, kHasBusAddress = 1 << 15;
  const std::uint32_t reason = at(kReason);
  text << "fault: reason " << Hex{reason};
  if ((reason & kHasMpuAddress) != 0) text << ", address " << Hex{at(kMpuAddress)};
  if ((reason & kHasBusAddress) != 0) text << ", address " << Hex{at(kBusAddress)};
  text << "\n";
#endif
  espalier::startup::stop(3);
}

// The stack may be the fault: without 1 KiB between it and the variables, a new one is used.
[[gnu::naked]] void fault() {
  asm volatile(
      "mov r0, sp\n"
      "ldr r1, =stack_top\n"
      "cmp r0, r1\n"
      "bhs 1f\n"
      "ldr r2, =bss_end + 1024\n"
      "cmp r0, r2\n"
      "bhs 2f\n"
      "1: mov sp, r1\n"
      "movs r0, #0\n"
      "2: ldr r1, =report_fault\n"
      "bx r1\n"
      ".ltorg");
}

extern const void* const vectors[16];
[[gnu::section(".vectors"), gnu::used]] const void* const vectors[16] = {
    stack_top,
    reinterpret_cast<const void*>(&reset),
    reinterpret_cast<const void*>(&fault),
    reinterpret_cast<const void*>(&fault),
    reinterpret_cast<const void*>(&fault),
    reinterpret_cast<const void*>(&fault),
    reinterpret_cast<const void*>(&fault),
};

// No pure virtual function is ever called, but the tables of abstract classes refer to this
// function.
[[noreturn]] void __cxa_pure_virtual() { report_fault(nullptr); }
}
