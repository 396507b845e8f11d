// Start-up code and the handler of processor faults.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "semihost.h"
#include "uart.h"

extern "C" {
extern char bss_begin[], bss_end[], stack_top[];
int main();

[[noreturn]] void reset() {
  // No interrupt is ever taken. A pending interrupt ends `wfi` all the same.
  asm volatile("cpsid i");
  memset(bss_begin, 0, static_cast<std::size_t>(bss_end - bss_begin));
  espalier::kConsole.begin();
  espalier::semihost::exit(main());
}

[[noreturn]] void fault() {
  espalier::kConsole.print("fault: the processor stopped\n");
  espalier::semihost::exit(3);
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
[[noreturn]] void __cxa_pure_virtual() { fault(); }
}
