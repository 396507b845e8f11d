#pragma once
// The floating-point environment of operators. Freestanding.

#include <cstdint>

namespace espalier {

// The processor's control and status of floating-point arithmetic. kDefault: rounds to nearest,
// keeps subnormal numbers, traps nothing. kControl: the bits that affect results or trap; the
// others are flags.
#if defined(__x86_64__)

#define ESPALIER_HAS_FLOAT_ENVIRONMENT 1
struct FloatRegister {
  using Bits = std::uint32_t;  // MXCSR
  static constexpr Bits kControl = 0xffc0, kDefault = 0x1f80;
  static Bits read() {
    Bits bits;
    __asm__ volatile("stmxcsr %0" : "=m"(bits) : : "memory");
    return bits;
  }
  static void write(Bits bits) { __asm__ volatile("ldmxcsr %0" : : "m"(bits) : "memory"); }
};

#elif defined(__aarch64__)

#define ESPALIER_HAS_FLOAT_ENVIRONMENT 1
struct FloatRegister {
  using Bits = std::uint64_t;  // FPCR above FPSR
  static constexpr Bits kControl = Bits{0xffffffff} << 32, kDefault = 0;
  static Bits read() {
    std::uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status) : : "memory");
    return control << 32 | (status & 0xffffffff);
  }
  static void write(Bits bits) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1"
                     :
                     : "r"(bits >> 32), "r"(bits & 0xffffffff)
                     : "memory");
  }
};

#elif defined(__arm__) && defined(__ARM_FP)

#define ESPALIER_HAS_FLOAT_ENVIRONMENT 1
struct FloatRegister {
  using Bits = std::uint32_t;  // FPSCR
  static constexpr Bits kControl = 0x07ff9f00, kDefault = 0;
  static Bits read() {
    Bits bits;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(bits) : : "memory");
    return bits;
  }
  static void write(Bits bits) { __asm__ volatile("vmsr fpscr, %0" : : "r"(bits) : "memory"); }
};

#elif defined(__riscv_flen)

#define ESPALIER_HAS_FLOAT_ENVIRONMENT 1
struct FloatRegister {
  using Bits = std::uintptr_t;  // fcsr
  static constexpr Bits kControl = 0xe0, kDefault = 0;
  static Bits read() {
    Bits bits;
    __asm__ volatile("frcsr %0" : "=r"(bits) : : "memory");
    return bits;
  }
  static void write(Bits bits) { __asm__ volatile("fscsr %0" : : "r"(bits) : "memory"); }
};

#elif defined(__s390x__)

#define ESPALIER_HAS_FLOAT_ENVIRONMENT 1
struct FloatRegister {
  using Bits = std::uint32_t;  // FPC
  static constexpr Bits kControl = 0xf8000007, kDefault = 0;
  static Bits read() {
    Bits bits;
    __asm__ volatile("efpc %0" : "=d"(bits) : : "memory");
    return bits;
  }
  static void write(Bits bits) { __asm__ volatile("sfpc %0" : : "d"(bits) : "memory"); }
};

#endif

#ifdef ESPALIER_HAS_FLOAT_ENVIRONMENT

// Sets the default environment while it lives. Then the caller's is as it was, with its flags. Most
// callers have the default: then the register is only read. To be called around code that the
// compiler cannot move: a function that it does not see.
class FloatEnvironment {
 public:
  FloatEnvironment() : callers_(FloatRegister::read()) {
    if ((callers_ & FloatRegister::kControl) != FloatRegister::kDefault) {
      FloatRegister::write(FloatRegister::kDefault);
    }
  }
  ~FloatEnvironment() {
    if (FloatRegister::read() != callers_) FloatRegister::write(callers_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  FloatRegister::Bits callers_;
};

#else

// Processors without a floating-point unit have no environment.
class FloatEnvironment {
 public:
  FloatEnvironment() {}
  ~FloatEnvironment() {}
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};

#endif

}  // namespace espalier
