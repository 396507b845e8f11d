// One loop per operator, type and version, which the compiler vectorises. For boards:
// operators_compact.cc.

#include "espalier/internal/base/limits.h"
#if !ESPALIER_COMPACT_OPERATORS

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include "collectives/machine/float_environment.h"
#include "collectives/machine/half.h"
#include "collectives/machine/half_lanes.h"
#include "collectives/machine/operator_versions.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

// `into` is equal to a or b or does not overlap them, so the elements are independent.
#if defined(__clang__)
#define ESPALIER_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ESPALIER_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace espalier {
namespace {

#ifdef __aarch64__
constexpr bool kBaselineHasF16Lanes = true;
#else
constexpr bool kBaselineHasF16Lanes = false;
#endif

// A (value, index) pair, as stored in memory.
template <typename Value, typename Index>
struct Loc {
  Value value;
  Index index;
};

// Arithmetic of a type. Integers wrap. NaN results are the canonical NaN. min and max are NaN if
// either operand is; -0 is less than +0.
template <typename T>
struct Arithmetic {
  // At least `unsigned`, because a product of two 16-bit numbers overflows int.
  using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  static T sum(T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); }
  static T product(T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); }
  static T min(T a, T b) { return b < a ? b : a; }
  static T max(T a, T b) { return a < b ? b : a; }
};

template <typename T, typename Bits, Bits kNan>
struct FloatArithmetic {
  static T canonical(T x) { return x == x ? x : std::bit_cast<T>(kNan); }
  static T sum(T a, T b) { return canonical(a + b); }
  static T product(T a, T b) { return canonical(a * b); }
  // Each comparison is one minimum (maximum) instruction. Equal operands differ at most in the sign
  // of a zero: their bitwise or is -0, their and is +0.
  static T min(T a, T b) { return number(a, b, bits(a < b ? a : b) | bits(b < a ? b : a)); }
  static T max(T a, T b) { return number(a, b, bits(a > b ? a : b) & bits(b > a ? b : a)); }

 private:
  static Bits bits(T x) { return std::bit_cast<Bits>(x); }
  static T number(T a, T b, Bits result) {
    return std::bit_cast<T>(__builtin_isunordered(a, b) ? kNan : result);
  }
};
template <>
struct Arithmetic<float> : FloatArithmetic<float, std::uint32_t, kNanF32> {};
template <>
struct Arithmetic<double> : FloatArithmetic<double, std::uint64_t, kNanF64> {};

constexpr F16 narrow(F16, float value) { return narrow_f16(value); }
constexpr Bf16 narrow(Bf16, float value) { return narrow_bf16(value); }

// f16 and bf16 compute in f32; a NaN of f32 becomes their canonical NaN. min and max need no f32:
// ordered() maps numbers to integers of the same order, -0 directly before +0, and back.
template <typename Half, std::int16_t kInfinity, std::uint16_t kNan>
struct HalfArithmetic {
  static Half sum(Half a, Half b) { return narrow(Half{}, widen(a) + widen(b)); }
  static Half product(Half a, Half b) { return narrow(Half{}, widen(a) * widen(b)); }
  static Half min(Half a, Half b) {
    const std::int16_t x = ordered(bits(a));
    const std::int16_t y = ordered(bits(b));
    return number(a, b, x < y ? x : y);
  }
  static Half max(Half a, Half b) {
    const std::int16_t x = ordered(bits(a));
    const std::int16_t y = ordered(bits(b));
    return number(a, b, x > y ? x : y);
  }

 private:
  static std::int16_t bits(Half x) { return static_cast<std::int16_t>(x.bits); }
  static std::int16_t ordered(std::int16_t x) {
    return static_cast<std::int16_t>(x ^ ((x >> 15) & 0x7fff));
  }
  static bool is_nan(std::int16_t x) { return (x & 0x7fff) > kInfinity; }
  static Half number(Half a, Half b, std::int16_t result) {
    const auto number = static_cast<std::uint16_t>(ordered(result));
    return {is_nan(bits(a)) || is_nan(bits(b)) ? kNan : number};
  }
};
template <>
struct Arithmetic<F16> : HalfArithmetic<F16, 0x7c00, kNanF16> {};
template <>
struct Arithmetic<Bf16> : HalfArithmetic<Bf16, 0x7f80, kNanBf16> {};

template <typename T>
bool same(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else {
    return a == b;
  }
}

// Returns the pair whose value is the min (max) of both. If the values are equal, or both are NaN,
// the index is the smaller one.
template <typename Pair, bool kMin>
Pair locate(Pair a, Pair b) {
  using Value = decltype(Pair::value);
  using Values = Arithmetic<Value>;
  const Value best = kMin ? Values::min(a.value, b.value) : Values::max(a.value, b.value);
  bool from_a = same(best, a.value);
  bool from_b = same(best, b.value);
  if constexpr (std::is_floating_point_v<Value>) {
    from_a = from_a || a.value != a.value;
    from_b = from_b || b.value != b.value;
  }
  if (from_a && from_b) return {best, b.index < a.index ? b.index : a.index};
  return {best, from_a ? a.index : b.index};
}

template <Op kOp, typename T>
T apply(T a, T b) {
  if constexpr (kOp == Op::kSum) return Arithmetic<T>::sum(a, b);
  if constexpr (kOp == Op::kProduct) return Arithmetic<T>::product(a, b);
  if constexpr (kOp == Op::kMin) return Arithmetic<T>::min(a, b);
  if constexpr (kOp == Op::kMax) return Arithmetic<T>::max(a, b);
  if constexpr (kOp == Op::kAnd) return static_cast<T>(a & b);
  if constexpr (kOp == Op::kOr) return static_cast<T>(a | b);
  if constexpr (kOp == Op::kXor) return static_cast<T>(a ^ b);
  if constexpr (kOp == Op::kMinLoc) return locate<T, true>(a, b);
  if constexpr (kOp == Op::kMaxLoc) return locate<T, false>(a, b);
}

// The number of numbers of an element.
template <typename T>
inline constexpr std::size_t kNumbers = 1;
template <typename Value, typename Index>
inline constexpr std::size_t kNumbers<Loc<Value, Index>> = 2;

// Elements are little-endian on every target: converts one that was loaded, or is stored next.
template <typename T>
T little_element(T element) {
  constexpr std::size_t kBytes = sizeof(T) / kNumbers<T>;
  if constexpr (kIsLittleEndian || kBytes == 1) return element;
  using Pair = std::array<std::array<std::uint8_t, kBytes>, kNumbers<T>>;
  auto numbers = std::bit_cast<Pair>(element);
  for (auto& bytes : numbers) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(numbers);
}

// Two bf16 per 32-bit number. Each is in the upper half of an f32 before and after the operation,
// so the halves are neither unpacked nor packed.
template <Op kOp>
std::uint32_t bf16_result(std::uint32_t a, std::uint32_t b) {
  const auto x = std::bit_cast<float>(a);
  const auto y = std::bit_cast<float>(b);
  const float result = kOp == Op::kSum ? x + y : x * y;
  const auto bits = std::bit_cast<std::uint32_t>(result);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1);  // as in narrow_bf16()
  return result == result ? rounded : kNanF32;
}

template <Op kOp>
std::uint32_t combine_bf16_pair(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t upper = bf16_result<kOp>(a & 0xffff0000u, b & 0xffff0000u);
  const std::uint32_t lower = bf16_result<kOp>(a << 16, b << 16);
  return (upper & 0xffff0000u) | lower >> 16;
}

template <Op kOp>
[[gnu::always_inline]] inline void bf16_loop(Bf16* into, const Bf16* a, const Bf16* b,
                                             std::size_t count) {
  const std::size_t pairs = count / 2;
  ESPALIER_INDEPENDENT
  for (std::size_t i = 0; i < pairs; ++i) {
    std::uint32_t left;
    std::uint32_t right;
    std::memcpy(&left, a + 2 * i, sizeof left);
    std::memcpy(&right, b + 2 * i, sizeof right);
    const std::uint32_t pair = combine_bf16_pair<kOp>(left, right);
    std::memcpy(into + 2 * i, &pair, sizeof pair);
  }
  if (count % 2 != 0) into[count - 1] = apply<kOp>(a[count - 1], b[count - 1]);
}

template <Op kOp>
[[gnu::always_inline]] inline void f16_loop(F16* into, const F16* a, const F16* b,
                                            std::size_t count) {
  std::size_t i = 0;
  for (; i + kF16Lanes <= count; i += kF16Lanes) combine_f16_lanes<kOp>(into + i, a + i, b + i);
  if (i == count) return;
  F16 last[3][kF16Lanes] = {};
  const std::size_t bytes = (count - i) * sizeof(F16);
  std::memcpy(last[0], a + i, bytes);
  std::memcpy(last[1], b + i, bytes);
  combine_f16_lanes<kOp>(last[2], last[0], last[1]);
  std::memcpy(into + i, last[2], bytes);
}

// The loop of all versions, which is compiled anew in each.
template <Op kOp, typename T, bool kHasF16Lanes>
[[gnu::always_inline]] inline void loop(void* into, const void* a, const void* b,
                                        std::uint64_t count) {
  auto* to = static_cast<T*>(into);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  const auto size = static_cast<std::size_t>(count);
  constexpr bool kRounds = kOp == Op::kSum || kOp == Op::kProduct;
  if constexpr (std::is_same_v<T, Bf16> && kRounds && kIsLittleEndian) {
    bf16_loop<kOp>(to, left, right, size);
  } else if constexpr (std::is_same_v<T, F16> && kRounds && kHasF16Lanes && kIsLittleEndian) {
    f16_loop<kOp>(to, left, right, size);
  } else {
    ESPALIER_INDEPENDENT
    for (std::size_t i = 0; i < size; ++i) {
      to[i] = little_element(apply<kOp, T>(little_element(left[i]), little_element(right[i])));
    }
  }
}

struct Baseline {
  template <Op kOp, typename T>
  static void run(void* into, const void* a, const void* b, std::uint64_t count, void*) {
    loop<kOp, T, kBaselineHasF16Lanes>(into, a, b, count);
  }
  template <Op kOp, typename T>
  static constexpr CombineFn function() {
    return run<kOp, T>;
  }
};

#ifdef __x86_64__
// Functions have a target, not the file: functions that other files share stay baseline.
struct V3 {
  template <Op kOp, typename T>
  [[gnu::target("avx2,f16c")]] static void run(void* into, const void* a, const void* b,
                                               std::uint64_t count, void*) {
    loop<kOp, T, true>(into, a, b, count);
  }
  template <Op kOp, typename T>
  static constexpr CombineFn function() {
    return run<kOp, T>;
  }
};

// Whether V4 is faster than V3 on processors that have both. For the other types it is equal, or
// slower: for min and max of f16, bf16, f32 and f64.
template <Op kOp, typename T>
constexpr bool gains_from_v4() {
  constexpr bool kRounds = kOp == Op::kSum || kOp == Op::kProduct;
  constexpr bool kSelects = kOp == Op::kMin || kOp == Op::kMax;
  if (std::is_same_v<T, Bf16>) return kRounds;
  if (std::is_integral_v<T> && sizeof(T) == 8) return kOp == Op::kProduct || kSelects;
  return std::is_same_v<T, Loc<std::int32_t, std::int32_t>> ||
         std::is_same_v<T, Loc<std::int64_t, std::int64_t>>;
}

struct V4 {
  template <Op kOp, typename T>
  [[gnu::target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]] static void run(
      void* into, const void* a, const void* b, std::uint64_t count, void*) {
    loop<kOp, T, true>(into, a, b, count);
  }
  template <Op kOp, typename T>
  static constexpr CombineFn function() {
    if constexpr (gains_from_v4<kOp, T>()) return run<kOp, T>;
    return V3::function<kOp, T>();
  }
};
#endif

template <typename V, typename T>
CombineFn arithmetic_function(Op op) {
  switch (op) {
    case Op::kSum: return V::template function<Op::kSum, T>();
    case Op::kProduct: return V::template function<Op::kProduct, T>();
    case Op::kMin: return V::template function<Op::kMin, T>();
    case Op::kMax: return V::template function<Op::kMax, T>();
    default: return nullptr;
  }
}

// Sums, products and bit operations are the same for signed and unsigned numbers. One function
// serves both, to save flash.
template <typename V, typename T>
CombineFn integer_function(Op op) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case Op::kSum: return V::template function<Op::kSum, Unsigned>();
    case Op::kProduct: return V::template function<Op::kProduct, Unsigned>();
    case Op::kMin: return V::template function<Op::kMin, T>();
    case Op::kMax: return V::template function<Op::kMax, T>();
    case Op::kAnd: return V::template function<Op::kAnd, Unsigned>();
    case Op::kOr: return V::template function<Op::kOr, Unsigned>();
    case Op::kXor: return V::template function<Op::kXor, Unsigned>();
    default: return nullptr;
  }
}

template <typename V, typename Value, typename Index>
CombineFn loc_function(Op op) {
  if (op == Op::kMinLoc) return V::template function<Op::kMinLoc, Loc<Value, Index>>();
  if (op == Op::kMaxLoc) return V::template function<Op::kMaxLoc, Loc<Value, Index>>();
  return nullptr;
}

template <typename V>
CombineFn function_of(const Operator& op) {
  switch (op.type) {
    case Type::kI8: return integer_function<V, std::int8_t>(op.op);
    case Type::kU8: return integer_function<V, std::uint8_t>(op.op);
    case Type::kI16: return integer_function<V, std::int16_t>(op.op);
    case Type::kU16: return integer_function<V, std::uint16_t>(op.op);
    case Type::kI32: return integer_function<V, std::int32_t>(op.op);
    case Type::kU32: return integer_function<V, std::uint32_t>(op.op);
    case Type::kI64: return integer_function<V, std::int64_t>(op.op);
    case Type::kU64: return integer_function<V, std::uint64_t>(op.op);
    case Type::kF16: return arithmetic_function<V, F16>(op.op);
    case Type::kBf16: return arithmetic_function<V, Bf16>(op.op);
    case Type::kF32: return arithmetic_function<V, float>(op.op);
    case Type::kF64: return arithmetic_function<V, double>(op.op);
    case Type::kI32Loc: return loc_function<V, std::int32_t, std::int32_t>(op.op);
    case Type::kF32Loc: return loc_function<V, float, std::int32_t>(op.op);
    case Type::kI64Loc: return loc_function<V, std::int64_t, std::int64_t>(op.op);
    case Type::kF64Loc: return loc_function<V, double, std::int64_t>(op.op);
    case Type::kBytes:
    case Type::kCustom: return nullptr;
  }
  return nullptr;
}

#ifdef __x86_64__
// Not every compiler knows the feature F16C by name.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

Version detect_version() {
  __builtin_cpu_init();
  // These ask for the operating system's support, too.
  if (__builtin_cpu_supports("avx2") == 0 || !has_f16c()) return Version::kBaseline;
  const bool has_avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  return has_avx512 ? Version::kV4 : Version::kV3;
}

// Detected by the first call, so that nothing runs before main(): firmware in C may link this, too.
Version best() {
  constinit static std::atomic<std::uint8_t> known{0};  // 1 + the version; 0: not known
  std::uint8_t value = known.load(std::memory_order_relaxed);
  if (value == 0) {
    value = static_cast<std::uint8_t>(1 + static_cast<std::uint8_t>(detect_version()));
    known.store(value, std::memory_order_relaxed);
  }
  return static_cast<Version>(value - 1);
}
#else
constexpr Version best() { return Version::kBaseline; }
#endif

CombineFn function_of([[maybe_unused]] Version version, const Operator& op) {
#ifdef __x86_64__
  if (version == Version::kV4) return function_of<V4>(op);
  if (version == Version::kV3) return function_of<V3>(op);
#endif
  return function_of<Baseline>(op);
}

}  // namespace

const char* version_name(Version version) {
  constexpr const char* kNames[] = {"baseline", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<std::size_t>(version)];
}

Version best_version() { return best(); }

void combine_by(Version version, const Operator& op, void* into, const void* a, const void* b,
                std::uint64_t count) {
  ESPALIER_ASSERT(can_combine(op) && op.op != Op::kCustom && version <= best());
  const FloatEnvironment environment;
  function_of(version, op)(into, a, b, count, nullptr);
}

void combine(const Operator& op, void* into, const void* a, const void* b, std::uint64_t count) {
  ESPALIER_ASSERT(can_combine(op));
  const FloatEnvironment environment;
  if (op.op == Op::kCustom) return op.custom(into, a, b, count, op.context);
  function_of(best(), op)(into, a, b, count, nullptr);
}

}  // namespace espalier

#endif
