// Operators give the same bits in every floating-point environment of the caller, and leave the
// environment as it was.

#include "collectives/machine/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <string>
#include <vector>

#include "collectives/machine/testing/operator_numbers.h"
#include "espalier/collectives/machine/operators.h"

#ifdef ESPALIER_HAS_FLOAT_ENVIRONMENT

namespace espalier {
namespace {

using Bits = FloatRegister::Bits;
using Bytes = std::vector<std::uint8_t>;

struct Environment {
  std::string name;
  Bits bits;
};

// Environments that the processor has: rounding, subnormal numbers as zeros, traps.
std::vector<Environment> environments() {
  const Bits before = FloatRegister::read();
  std::vector<Environment> all = {{"default", FloatRegister::kDefault}};
  const auto add = [&](const std::string& name, Bits bits) {
    FloatRegister::write(bits);
    const Bits kept = FloatRegister::read();
    FloatRegister::write(before);
    if (kept != FloatRegister::kDefault) all.push_back({name, kept});
  };
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    FloatRegister::write(FloatRegister::kDefault);
    std::fesetround(rounding);
    const Bits bits = FloatRegister::read();
    FloatRegister::write(before);
    add("rounding " + std::to_string(rounding), bits);
  }
#if defined(__x86_64__)
  add("flush to zero", 0x9f80);
  add("subnormal numbers are zero", 0x1fc0);
  add("as -ffast-math sets it", 0x9fc0);
  add("traps", 0x0000);
  add("traps and flags", 0x803f);
#elif defined(__aarch64__)
  add("flush to zero", Bits{1} << 56);
  add("default NaN", Bits{1} << 57);
  add("all half precision is alternative", Bits{1} << 58);
  add("halves are flushed", Bits{1} << 51);
  add("traps", Bits{0x9f00} << 32);
  add("flags", 0x9f);
#elif defined(__arm__)
  add("flush to zero", 1u << 24);
  add("default NaN", 1u << 25);
  add("flags", 0x9f);
#endif
  return all;
}

Bytes result_in(Bits environment, const Operator& op, const Bytes& left, const Bytes& right) {
  Bytes into(left.size());
  const Bits before = FloatRegister::read();
  FloatRegister::write(environment);
  combine(op, into.data(), left.data(), right.data(), left.size() / element_bytes(op));
  const Bits after = FloatRegister::read();
  FloatRegister::write(before);
  EXPECT_EQ(after, environment) << "the caller's environment";
  return into;
}

TEST(FloatEnvironment, EveryOperatorHasTheSameBits) {
  constexpr std::size_t kBytes = std::size_t{1} << 15;
  Bytes left(kBytes), right(kBytes);
  fill_operand(left.data(), kBytes, 0);
  fill_operand(right.data(), kBytes, 1);
  const auto all = environments();
  EXPECT_GE(all.size(), 4u);
  for (std::uint8_t type = 0; type < static_cast<std::uint8_t>(Type::kCustom); ++type) {
    for (std::uint8_t op = 1; op < static_cast<std::uint8_t>(Op::kCustom); ++op) {
      const Operator one = {.op = static_cast<Op>(op), .type = static_cast<Type>(type)};
      if (!can_combine(one)) continue;
      const Bytes wanted = result_in(FloatRegister::kDefault, one, left, right);
      for (const Environment& environment : all) {
        EXPECT_EQ(result_in(environment.bits, one, left, right), wanted)
            << op_name(one.op) << " " << type_name(one.type) << ": " << environment.name;
      }
    }
  }
}

void add_doubles(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const volatile double left = static_cast<const double*>(a)[i];
    static_cast<double*>(into)[i] = left + static_cast<const double*>(b)[i];
  }
}

TEST(FloatEnvironment, OperatorsOfTheProgramHaveTheDefault) {
  const Operator op = {
      .op = Op::kCustom, .type = Type::kF64, .custom_id = 1, .custom = add_doubles};
  Bytes left(16), right(16);
  const double ones[] = {1, 0x1p-1060}, others[] = {0x1p-60, 0x1p-1060};
  std::memcpy(left.data(), ones, 16);
  std::memcpy(right.data(), others, 16);
  const double sums[] = {1, 0x1p-1059};
  Bytes wanted(16);
  std::memcpy(wanted.data(), sums, 16);
  for (const Environment& environment : environments()) {
    EXPECT_EQ(result_in(environment.bits, op, left, right), wanted) << environment.name;
  }
}

// Shows that this test can fail: without the operators' own environment the sums differ.
TEST(FloatEnvironment, MattersOnThisProcessor) {
  const volatile double one = 1, small = 0x1p-60;
  const Bits before = FloatRegister::read();
  FloatRegister::write(FloatRegister::kDefault);
  std::fesetround(FE_UPWARD);
  const volatile double sum = one + small;
  FloatRegister::write(before);
  EXPECT_GT(sum, 1);
}

}  // namespace
}  // namespace espalier

#endif
