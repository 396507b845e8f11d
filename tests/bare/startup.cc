// Start-up code has enabled what the compiler was told to use and what the processor has: the
// floating-point unit, the MPU. A stack that grows into variables ends the program before it
// changes them.

#include "boards/startup.h"

#include "boards/cortex-m/processor.h"
#include "tests/bare/check.h"

extern "C" {
extern char bss_end[];
}

namespace espalier {
namespace {

using processor::at;

constexpr std::uint32_t kVtor = 0xe000ed08, kCpacr = 0xe000ed88, kMpuType = 0xe000ed90,
                        kMpuCtrl = 0xe000ed94, kMpuRnr = 0xe000ed98, kMpuRasr = 0xe000eda0;
constexpr std::uint32_t kNeverExecute = 1u << 28;

alignas(128) const void* handlers[16];
std::uint32_t lowest = 0;  // the lowest address of the stack that was used

void check_fpu() {
#ifdef __ARM_FP
  CHECK_EQ(at(kCpacr) >> 20 & 0xf, 0xfu);
  bare::Text() << "the floating-point unit is on\n";
#else
  bare::Text() << "compiled without a floating-point unit\n";
#endif
}

#if __ARM_ARCH >= 7
// Uses up the stack.
[[gnu::noinline]] std::uint32_t overflow(std::uint32_t depth) {
  volatile std::uint32_t room[16];
  room[0] = depth;
  if (room[0] == 0) return 0;  // never
  lowest = reinterpret_cast<std::uint32_t>(&room[0]);
  return overflow(depth | 1) + room[0];
}

[[noreturn]] void after_fault() {
  asm volatile(
      "ldr r0, =stack_top\n"
      "mov sp, r0" ::
          : "r0");
  const auto end = reinterpret_cast<std::uint32_t>(bss_end);
  CHECK(lowest >= end && lowest < end + 512);
  bare::Text() << "the stack ended " << lowest - end << " bytes above the variables\n";
  startup::stop(checks::finish());
}

void check_mpu() {
  if ((at(kMpuType) >> 8 & 0xff) < 2) {
    bare::Text() << "the processor has no MPU\n";
    return;
  }
  CHECK_EQ(at(kMpuCtrl), 5u);
  at(kMpuRnr) = 0;
  CHECK((at(kMpuRasr) & kNeverExecute) != 0 && (at(kMpuRasr) & 1) != 0);
  for (const void*& handler : handlers) handler = reinterpret_cast<const void*>(&after_fault);
  at(kVtor) = reinterpret_cast<std::uint32_t>(handlers);
  asm volatile("dsb\n isb" ::: "memory");
  (void)overflow(1);
  CHECK(false && "the stack has no end");
}
#else
void check_mpu() { bare::Text() << "the architecture has no such MPU\n"; }
#endif

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  check_fpu();
  check_mpu();
  CHECK(true);
  return checks::finish();
}
