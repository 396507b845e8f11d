#include "boards/cortex-m/processor.h"

extern "C" {
// From the linker script; the address of ram_bits is its value.
extern char bss_end[], ram_begin[], ram_bits[];
}

namespace espalier::processor {
namespace {

// Register names are those of Arm's architecture reference manuals.
constexpr std::uint32_t kAircr = 0xe000ed0c, kResetNow = 0x05fa0004;
constexpr std::uint32_t kSysTickControl = 0xe000e010, kSysTickLoad = 0xe000e014,
                        kSysTickValue = 0xe000e018, kIcsr = 0xe000ed04;
constexpr std::uint32_t kSysTickOn = 7;  // with an interrupt, at the processor's clock
constexpr std::uint32_t kSysTickPending = 1u << 25;

#if __ARM_ARCH >= 7
constexpr std::uint32_t kCcr = 0xe000ed14, kClidr = 0xe000ed78, kCcsidr = 0xe000ed80,
                        kCsselr = 0xe000ed84, kIciallu = 0xe000ef50, kDcisw = 0xe000ef60;
constexpr std::uint32_t kMpuType = 0xe000ed90, kMpuCtrl = 0xe000ed94, kMpuRbar = 0xe000ed9c,
                        kMpuRasr = 0xe000eda0;

void barrier() { asm volatile("dsb\n isb" ::: "memory"); }

// What the caches hold after a reset is not defined.
void enable_caches() {
  if ((at(kClidr) & 7) == 0) return;
  at(kIciallu) = 0;
  at(kCsselr) = 0;  // the data cache of level 1
  barrier();
  const std::uint32_t shape = at(kCcsidr);
  const std::uint32_t last_set = shape >> 13 & 0x7fff, last_way = shape >> 3 & 0x3ff;
  const std::uint32_t line_shift = (shape & 7) + 4;
  const auto way_shift = static_cast<std::uint32_t>(__builtin_clz(last_way | 1));
  for (std::uint32_t set = 0; set <= last_set; ++set) {
    for (std::uint32_t way = 0; way <= last_way; ++way) {
      at(kDcisw) = way << way_shift | set << line_shift;
    }
  }
  barrier();
  at(kCcr) = at(kCcr) | 1u << 17 | 1u << 16;  // instructions, data
  barrier();
}

// Region 0: all memory, not executable, otherwise as without an MPU. Region 1: between variables
// and the stack, without access; longer than most frames, of which only a part may be written.
void enable_mpu() {
  constexpr std::uint32_t kValid = 1u << 4, kOn = 1, kNeverExecute = 1u << 28;
  constexpr std::uint32_t kAllAccess = 3u << 24, kCached = 1u << 19 | 3u << 16;
  constexpr std::uint32_t kGuardBytes = 256, kGuardBits = 8;
  if ((at(kMpuType) >> 8 & 0xff) < 2) return;
  const auto bits = reinterpret_cast<std::uint32_t>(ram_bits);
  at(kMpuRbar) = reinterpret_cast<std::uint32_t>(ram_begin) | kValid | 0;
  at(kMpuRasr) = kNeverExecute | kAllAccess | kCached | (bits - 1) << 1 | kOn;
  const std::uint32_t guard =
      (reinterpret_cast<std::uint32_t>(bss_end) + kGuardBytes - 1) & ~(kGuardBytes - 1);
  at(kMpuRbar) = guard | kValid | 1;
  at(kMpuRasr) = kNeverExecute | kCached | (kGuardBits - 1) << 1 | kOn;
  at(kMpuCtrl) = 1u << 2 | kOn;  // the rest of the address space as without an MPU
  barrier();
}
#endif

}  // namespace

void begin() {
#if __ARM_ARCH >= 7
  enable_caches();
  enable_mpu();
#endif
}

void sleep(std::uint32_t ticks) {
  if (ticks == 0) return;  // SysTick would never end the sleep
  at(kSysTickLoad) = ticks;
  at(kSysTickValue) = 0;
  at(kSysTickControl) = kSysTickOn;
  asm volatile("dsb\n wfi" ::: "memory");
  at(kSysTickControl) = 0;
  at(kIcsr) = kSysTickPending;
}

void restart() {
  at(kAircr) = kResetNow;
  for (;;) {
  }
}

}  // namespace espalier::processor

#ifdef __ARM_FP
void enable_fpu() {
  constexpr std::uint32_t kCpacr = 0xe000ed88, kCoprocessors10And11 = 0xfu << 20;
  espalier::processor::at(kCpacr) = espalier::processor::at(kCpacr) | kCoprocessors10And11;
  asm volatile("dsb\n isb" ::: "memory");
}
#endif
