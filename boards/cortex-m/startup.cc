// Start-up code and the handler of processor faults.

#include "boards/cortex-m/startup.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "boards/cortex-m/processor.h"
#include "firmware/bare/board.h"

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

[[noreturn, gnu::used]] void report_fault() {
  espalier::board::print("fault: the processor stopped\n");
  espalier::startup::stop(3);
}

// The stack may be the fault.
[[gnu::naked]] void fault() {
  asm volatile(
      "ldr r0, =stack_top\n"
      "mov sp, r0\n"
      "ldr r0, =report_fault\n"
      "bx r0\n"
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
[[noreturn]] void __cxa_pure_virtual() { report_fault(); }
}
