// Start-up code and the handler of traps.

#include "boards/startup.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "boards/riscv/processor.h"
#include "firmware/bare/text.h"

extern "C" {
extern char bss_begin[], bss_end[];
int main();

// The program's first instructions. No interrupt is ever taken. Harts other than 0 do nothing.
[[gnu::naked, gnu::section(".vectors"), gnu::used]] void entry() {
  asm volatile(
      "csrci mstatus, 8\n"
      "la t0, fault\n"
      "csrw mtvec, t0\n"
      "csrr t0, mhartid\n"
      "1: beqz t0, 2f\n"
      "wfi\n"
      "j 1b\n"
      "2: la sp, stack_top\n"
      "j reset");
}

[[noreturn, gnu::used]] void reset() {
  espalier::processor::begin();
  memset(bss_begin, 0, static_cast<std::size_t>(bss_end - bss_begin));
  espalier::startup::begin_console();
  espalier::startup::stop(main());
}

// ra: the register when the processor stopped. boards/fault.py says what the numbers mean.
[[noreturn, gnu::used]] void report_fault(std::uint32_t ra) {
  using espalier::bare::Hex;
  // Causes of which mtval is the address: fetch, load and store, misaligned or without access.
  constexpr std::uint32_t kHaveAddress = 0xf3;
  std::uint32_t pc = 0, cause = 0, address = 0;
  asm volatile(
      "csrr %0, mepc\n"
      "csrr %1, mcause\n"
      "csrr %2, mtval"
      : "=r"(pc), "=r"(cause), "=r"(address));
  espalier::bare::Text text;
  text << "fault: the processor stopped\n";
  text << "fault: pc " << Hex{pc} << ", ra " << Hex{ra} << "\n";
  text << "fault: cause " << Hex{cause};
  if (cause < 8 && (kHaveAddress >> cause & 1) != 0) text << ", address " << Hex{address};
  text << "\n";
  espalier::startup::stop(3);
}

// The stack may be the fault: a new one is used.
[[gnu::naked, gnu::aligned(4)]] void fault() {
  asm volatile(
      "mv a0, ra\n"
      "la sp, stack_top\n"
      "j report_fault");
}

// No pure virtual function is ever called, but the tables of abstract classes refer to this
// function.
[[noreturn]] void __cxa_pure_virtual() { __builtin_trap(); }
}
