#include "espalier/collectives/machine/operators.h"

namespace espalier {
namespace {

constexpr const char* kTypeNames[] = {"bytes", "i8",     "u8",     "i16",    "u16",    "i32",
                                      "u32",   "i64",    "u64",    "f16",    "bf16",   "f32",
                                      "f64",   "i32loc", "f32loc", "i64loc", "f64loc", "custom"};
constexpr std::uint8_t kTypeBytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 8, 16, 16};
constexpr const char* kOpNames[] = {"none", "sum", "product", "min",    "max",   "and",
                                    "or",   "xor", "minloc",  "maxloc", "custom"};

bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

// Finds the position of `name` in the table; false if it is not there.
template <typename Enum, std::size_t kSize>
bool parse(const char* const (&names)[kSize], const char* name, Enum& value) {
  for (std::size_t index = 0; index < kSize; ++index) {
    if (!equal(names[index], name)) continue;
    value = static_cast<Enum>(index);
    return true;
  }
  return false;
}

template <typename Enum, std::size_t kSize>
const char* name_of(const char* const (&names)[kSize], Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kSize ? names[index] : "unknown";
}

}  // namespace

std::uint32_t element_bytes(const Operator& op) {
  if (op.type == Type::kCustom) return op.element_bytes;
  const auto index = static_cast<std::size_t>(op.type);
  return index < sizeof kTypeBytes ? kTypeBytes[index] : 0;
}

bool can_combine(const Operator& op) {
  if (element_bytes(op) == 0) return false;
  if (op.op == Op::kCustom) return op.custom != nullptr;
  const auto bits = [](Op first, Op last) {
    return (2u << static_cast<unsigned>(last)) - (1u << static_cast<unsigned>(first));
  };
  std::uint32_t good = 0;
  if (op.type >= Type::kI8 && op.type <= Type::kU64) good = bits(Op::kSum, Op::kXor);
  if (op.type >= Type::kF16 && op.type <= Type::kF64) good = bits(Op::kSum, Op::kMax);
  if (op.type >= Type::kI32Loc && op.type <= Type::kF64Loc) good = bits(Op::kMinLoc, Op::kMaxLoc);
  return op.op <= Op::kMaxLoc && (good >> static_cast<unsigned>(op.op) & 1) != 0;
}

const char* type_name(Type type) { return name_of(kTypeNames, type); }
const char* op_name(Op op) { return name_of(kOpNames, op); }
bool parse_type(const char* name, Type& type) { return parse(kTypeNames, name, type); }
bool parse_op(const char* name, Op& op) { return parse(kOpNames, name, op); }

}  // namespace espalier
