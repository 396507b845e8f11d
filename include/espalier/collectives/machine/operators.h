#pragma once
// The operators and element types of reductions. Freestanding. Results are bitwise the same on
// every target: no fused multiply-add, no flush to zero, every NaN result is the canonical quiet
// NaN. Operators, also those of the program, run in the default floating-point environment: they
// round to nearest, keep subnormal numbers, and trap nothing. The caller's environment, with its
// exception flags, is the same after a call.

#include <cstddef>
#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

// The type of an element. Its numbers are little-endian in memory on every target, so that nodes
// with either byte order can be in one cluster (little_endian.h). Sums and products
// of integers wrap around.
enum class Type : std::uint8_t {
  kBytes = 0,  // one byte, without arithmetic: for broadcast and other collectives that only move
  kI8 = 1,     // signed integer, 8 bits
  kU8 = 2,     // unsigned integer, 8 bits
  kI16 = 3,    // signed integer, 16 bits
  kU16 = 4,    // unsigned integer, 16 bits
  kI32 = 5,    // signed integer, 32 bits
  kU32 = 6,    // unsigned integer, 32 bits
  kI64 = 7,    // signed integer, 64 bits
  kU64 = 8,    // unsigned integer, 64 bits
  kF16 = 9,    // IEEE 754 binary16
  kBf16 = 10,  // bfloat16: the upper 16 bits of an IEEE 754 binary32
  kF32 = 11,   // IEEE 754 binary32
  kF64 = 12,   // IEEE 754 binary64
  // (value, index) pairs for minloc and maxloc.
  kI32Loc = 13,  // {i32 value, i32 index}
  kF32Loc = 14,  // {f32 value, i32 index}
  kI64Loc = 15,  // {i64 value, i64 index}
  kF64Loc = 16,  // {f64 value, i64 index}
  kCustom = 17,  // the caller's own type, of Operator.element_bytes bytes
};

// The operation of a reduction, (+) below. It takes a from the left operand and b from the right
// one.
enum class Op : std::uint8_t {
  kNone = 0,     // no reduction
  kSum = 1,      // a + b; integers and floats
  kProduct = 2,  // a * b; integers and floats
  kMin = 3,      // the smaller one, NaN if any is NaN; integers and floats
  kMax = 4,      // the larger one, NaN if any is NaN; integers and floats
  kAnd = 5,      // bitwise; integers
  kOr = 6,       // bitwise; integers
  kXor = 7,      // bitwise; integers
  kMinLoc = 8,   // the pair with the smaller value; if they are equal, the smaller index
  kMaxLoc = 9,   // the pair with the larger value; if they are equal, the smaller index
  kCustom = 10,  // Operator::custom; any type
};

// Computes into[0..count) = a[0..count) (+) b[0..count), in this order. `into` may be equal to a or
// b, but may not overlap them otherwise. Pointers are aligned for the element if the caller's
// buffers are; no other alignment is guaranteed. A function that a communicator calls may throw
// (espalier/communicator.h); one that a Machine calls must not. Neither may leave by longjmp().
using CombineFn = void (*)(void* into, const void* a, const void* b, std::uint64_t count,
                           void* context);

// The operation and element type of a collective, the same on all ranks.
struct Operator {
  Op op = Op::kNone;
  Type type = Type::kBytes;
  bool commutes = true;             // Op::kCustom only: whether `custom` commutes
  std::uint32_t element_bytes = 0;  // Type::kCustom only
  std::uint32_t custom_id = 0;      // Op::kCustom, barriers: any number, the same on all ranks
  CombineFn custom = nullptr;       // Op::kCustom only; must be associative
  void* context = nullptr;          // passed to `custom`
};

// Whether the operator commutes; a built-in one does.
[[nodiscard]] constexpr bool commutes(const Operator& op) {
  return op.op != Op::kCustom || op.commutes;
}

// Returns the bytes of one element; 0 if the type is unknown, or custom without a size.
[[nodiscard]] std::uint32_t element_bytes(const Operator& op);

// Whether operator and type match (and, or, xor do not match floats, ...). A custom operator must
// also have a function.
[[nodiscard]] bool can_combine(const Operator& op);

// Computes into[0..count) = a[0..count) (+) b[0..count), by the contract of CombineFn. Requires
// can_combine(op).
void combine(const Operator& op, void* into, const void* a, const void* b, std::uint64_t count);

// type_name() and op_name() return names such as "f32" and "sum"; otherwise "unknown".
[[nodiscard]] const char* type_name(Type type);
[[nodiscard]] const char* op_name(Op op);
// parse_type() and parse_op() find the type or operator with this name; false if there is none.
[[nodiscard]] bool parse_type(const char* name, Type& type);
[[nodiscard]] bool parse_op(const char* name, Op& op);

}  // namespace espalier
