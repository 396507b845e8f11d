// One loop per operator and type, which the compiler vectorises. For boards: operators_compact.cc.

#include "espalier/base/limits.h"
#if !ESPALIER_COMPACT_OPERATORS

#include <type_traits>

#include "collectives/machine/half.h"
#include "espalier/base/assert.h"
#include "espalier/collectives/machine/operators.h"

// `into` is equal to a or b or does not overlap them, so the elements are independent.
#if defined(__clang__)
#define ESPALIER_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ESPALIER_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace espalier {
namespace {

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
  // Equal operands differ at most in the sign of a zero: their bitwise or is -0, their and is +0.
  static T min(T a, T b) {
    const T equal = std::bit_cast<T>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));
    return pick(a < b, a, b, equal);
  }
  static T max(T a, T b) {
    const T equal = std::bit_cast<T>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));
    return pick(b < a, a, b, equal);
  }

 private:
  static T pick(bool take_a, T a, T b, T equal) {
    const T unequal = take_a ? a : b;
    const T number = a == b ? equal : unequal;
    return ((a == a) & (b == b)) ? number : std::bit_cast<T>(kNan);
  }
};
template <>
struct Arithmetic<float> : FloatArithmetic<float, std::uint32_t, kNanF32> {};
template <>
struct Arithmetic<double> : FloatArithmetic<double, std::uint64_t, kNanF64> {};

// f16 and bf16 compute in f32; a NaN of f32 becomes their canonical NaN.
template <>
struct Arithmetic<F16> {
  using Single = Arithmetic<float>;
  static F16 sum(F16 a, F16 b) { return narrow_f16(widen(a) + widen(b)); }
  static F16 product(F16 a, F16 b) { return narrow_f16(widen(a) * widen(b)); }
  static F16 min(F16 a, F16 b) { return narrow_f16(Single::min(widen(a), widen(b))); }
  static F16 max(F16 a, F16 b) { return narrow_f16(Single::max(widen(a), widen(b))); }
};
template <>
struct Arithmetic<Bf16> {
  using Single = Arithmetic<float>;
  static Bf16 sum(Bf16 a, Bf16 b) { return narrow_bf16(widen(a) + widen(b)); }
  static Bf16 product(Bf16 a, Bf16 b) { return narrow_bf16(widen(a) * widen(b)); }
  static Bf16 min(Bf16 a, Bf16 b) { return narrow_bf16(Single::min(widen(a), widen(b))); }
  static Bf16 max(Bf16 a, Bf16 b) { return narrow_bf16(Single::max(widen(a), widen(b))); }
};

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

template <Op kOp, typename T>
void loop(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  auto* to = static_cast<T*>(into);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  const auto size = static_cast<std::size_t>(count);
  ESPALIER_INDEPENDENT
  for (std::size_t i = 0; i < size; ++i) to[i] = apply<kOp, T>(left[i], right[i]);
}

template <typename T>
CombineFn arithmetic_function(Op op) {
  switch (op) {
    case Op::kSum: return loop<Op::kSum, T>;
    case Op::kProduct: return loop<Op::kProduct, T>;
    case Op::kMin: return loop<Op::kMin, T>;
    case Op::kMax: return loop<Op::kMax, T>;
    default: return nullptr;
  }
}

// Sums, products and bit operations are the same for signed and unsigned numbers. One function
// serves both, to save flash.
template <typename T>
CombineFn integer_function(Op op) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case Op::kSum: return loop<Op::kSum, Unsigned>;
    case Op::kProduct: return loop<Op::kProduct, Unsigned>;
    case Op::kMin: return loop<Op::kMin, T>;
    case Op::kMax: return loop<Op::kMax, T>;
    case Op::kAnd: return loop<Op::kAnd, Unsigned>;
    case Op::kOr: return loop<Op::kOr, Unsigned>;
    case Op::kXor: return loop<Op::kXor, Unsigned>;
    default: return nullptr;
  }
}

template <typename Value, typename Index>
CombineFn loc_function(Op op) {
  if (op == Op::kMinLoc) return loop<Op::kMinLoc, Loc<Value, Index>>;
  if (op == Op::kMaxLoc) return loop<Op::kMaxLoc, Loc<Value, Index>>;
  return nullptr;
}

CombineFn function_of(const Operator& op) {
  switch (op.type) {
    case Type::kI8: return integer_function<std::int8_t>(op.op);
    case Type::kU8: return integer_function<std::uint8_t>(op.op);
    case Type::kI16: return integer_function<std::int16_t>(op.op);
    case Type::kU16: return integer_function<std::uint16_t>(op.op);
    case Type::kI32: return integer_function<std::int32_t>(op.op);
    case Type::kU32: return integer_function<std::uint32_t>(op.op);
    case Type::kI64: return integer_function<std::int64_t>(op.op);
    case Type::kU64: return integer_function<std::uint64_t>(op.op);
    case Type::kF16: return arithmetic_function<F16>(op.op);
    case Type::kBf16: return arithmetic_function<Bf16>(op.op);
    case Type::kF32: return arithmetic_function<float>(op.op);
    case Type::kF64: return arithmetic_function<double>(op.op);
    case Type::kI32Loc: return loc_function<std::int32_t, std::int32_t>(op.op);
    case Type::kF32Loc: return loc_function<float, std::int32_t>(op.op);
    case Type::kI64Loc: return loc_function<std::int64_t, std::int64_t>(op.op);
    case Type::kF64Loc: return loc_function<double, std::int64_t>(op.op);
    case Type::kBytes:
    case Type::kCustom: return nullptr;
  }
  return nullptr;
}

}  // namespace

void combine(const Operator& op, void* into, const void* a, const void* b, std::uint64_t count) {
  ESPALIER_ASSERT(can_combine(op));
  const CombineFn function = op.op == Op::kCustom ? op.custom : function_of(op);
  function(into, a, b, count, op.context);
}

}  // namespace espalier

#endif
