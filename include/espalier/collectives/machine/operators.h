#pragma once
// The operators and element types of reductions. Freestanding. Results are bitwise the same on
// every target: no fused multiply-add, no flush to zero, every NaN result is the canonical quiet
// NaN.

#include <cstddef>
#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

enum class Type : std::uint8_t {
  kBytes = 0,  // one byte, without arithmetic: for broadcast and other collectives that only move
  kI8 = 1,
  kU8 = 2,
  kI16 = 3,
  kU16 = 4,
  kI32 = 5,
  kU32 = 6,
  kI64 = 7,
  kU64 = 8,
  kF16 = 9,
  kBf16 = 10,
  kF32 = 11,
  kF64 = 12,
  // (value, index) pairs for minloc and maxloc: {i32 value, i32 index}, {f32, i32}, {i64, i64},
  // {f64, i64}.
  kI32Loc = 13,
  kF32Loc = 14,
  kI64Loc = 15,
  kF64Loc = 16,
  kCustom = 17,  // the caller's own type, of Operator.element_bytes bytes
};

enum class Op : std::uint8_t {
  kNone = 0,  // no reduction
  kSum = 1,
  kProduct = 2,
  kMin = 3,
  kMax = 4,
  kAnd = 5,
  kOr = 6,
  kXor = 7,
  kMinLoc = 8,
  kMaxLoc = 9,
  kCustom = 10,
};

// Computes into[0..count) = a[0..count) (+) b[0..count), in this order. `into` may be equal to a or
// b, but may not overlap them otherwise. Pointers are aligned for the element if the caller's
// buffers are; no other alignment is guaranteed.
using CombineFn = void (*)(void* into, const void* a, const void* b, std::uint64_t count,
                           void* context);

struct Operator {
  Op op = Op::kNone;
  Type type = Type::kBytes;
  bool commutes = true;             // Op::kCustom only: whether `custom` commutes
  std::uint32_t element_bytes = 0;  // Type::kCustom only
  std::uint32_t custom_id = 0;      // Op::kCustom only: any number, the same on all ranks
  CombineFn custom = nullptr;       // Op::kCustom only; must be associative
  void* context = nullptr;          // passed to `custom`
};

// Returns the bytes of one element; 0 if the type is unknown, or custom without a size.
[[nodiscard]] std::uint32_t element_bytes(const Operator& op);

// Whether operator and type match (and, or, xor do not match floats, ...). A custom operator must
// also have a function.
[[nodiscard]] bool can_combine(const Operator& op);

// Computes into[0..count) = a[0..count) (+) b[0..count), by the contract of CombineFn. Requires
// can_combine(op).
void combine(const Operator& op, void* into, const void* a, const void* b, std::uint64_t count);

// Return names such as "f32" and "sum".
[[nodiscard]] const char* type_name(Type type);
[[nodiscard]] const char* op_name(Op op);
// Find the type or operator with this name; return false if there is none.
[[nodiscard]] bool parse_type(const char* name, Type& type);
[[nodiscard]] bool parse_op(const char* name, Op& op);

}  // namespace espalier
