#include "boards/riscv/processor.h"

extern "C" {
// From the linker script; the address of ram_bits is its value.
extern char bss_end[], ram_begin[], ram_bits[];
}

namespace espalier::processor {
namespace {

// Entries of the PMP. Locked ones hold for machine mode too, until the next reset.
constexpr std::uint32_t kRead = 1, kWrite = 2, kPowerOfTwo = 3u << 3, kLocked = 1u << 7;

// The address register of an entry for `bytes`, a power of two, at a multiple of that.
std::uint32_t region(std::uint32_t begin, std::uint32_t bytes) {
  return begin >> 2 | (bytes / 8 - 1);
}

}  // namespace

// The first entry that has an address counts. Entry 0: between variables and the stack, without
// access; longer than most frames, of which only a part may be written. Entry 1: all memory, not
// executable. Machine mode has access to all other addresses.
void begin() {
  constexpr std::uint32_t kGuardBytes = 256;
  const std::uint32_t guard =
      (reinterpret_cast<std::uint32_t>(bss_end) + kGuardBytes - 1) & ~(kGuardBytes - 1);
  const std::uint32_t ram_bytes = 1u << reinterpret_cast<std::uint32_t>(ram_bits);
  asm volatile(
      "csrw pmpaddr0, %0\n"
      "csrw pmpaddr1, %1\n"
      "csrw pmpcfg0, %2"
      :
      : "r"(region(guard, kGuardBytes)),
        "r"(region(reinterpret_cast<std::uint32_t>(ram_begin), ram_bytes)),
        "r"(kLocked | kPowerOfTwo | (kLocked | kPowerOfTwo | kRead | kWrite) << 8)
      : "memory");
}

void sleep() {
  constexpr std::uint32_t kTimer = 1u << 7, kDevices = 1u << 11;
  asm volatile(
      "csrw mie, %0\n"
      "wfi"
      :
      : "r"(kTimer | kDevices)
      : "memory");
}

}  // namespace espalier::processor
