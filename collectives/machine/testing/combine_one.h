#pragma once
// Test helper: combines one element with a built-in operator.

#include <gtest/gtest.h>

#include "espalier/collectives/machine/operators.h"

namespace espalier {

template <typename T>
T combine_one(Op op, Type type, T a, T b) {
  Operator oper;
  oper.op = op;
  oper.type = type;
  EXPECT_TRUE(can_combine(oper)) << op_name(op) << " " << type_name(type);
  T into{};
  combine(oper, &into, &a, &b, 1);
  return into;
}

}  // namespace espalier
