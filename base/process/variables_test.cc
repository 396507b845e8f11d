#include "base/process/variables.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/testing/results.h"

namespace espalier {
namespace {

class Variables : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (raw_value(variable_) != nullptr) before_ = raw_value(variable_);
  }
  void TearDown() override {
    before_ ? setenv(row_.name, before_->c_str(), 1) : unsetenv(row_.name);
  }
  // "": the value is taken.
  [[nodiscard]] std::string refusal(const std::string& value) const {
    setenv(row_.name, value.c_str(), 1);
    return row_.kind == VariableKind::kNumber ? message_of(read_number(variable_, 1, 9))
                                              : message_of(read_text(variable_));
  }

  const Variable variable_ = static_cast<Variable>(GetParam());
  const VariableRow& row_ = row_of(variable_);
  std::optional<std::string> before_;
};

TEST_P(Variables, RefusalsQuoteTheValue) {
  const bool is_number = row_.kind == VariableKind::kNumber;
  if (!is_number && row_.kind != VariableKind::kText) {
    EXPECT_STREQ(row_.expected, "") << "no value is refused";
    return;
  }
  const std::string expected =
      std::string("'; expected ") + (is_number ? "a whole number from 1 to 9" : row_.expected);
  EXPECT_GT(expected.size(), 14u);
  const auto quoted = [&](const std::string& value) {
    return row_.name + ("='" + value) + expected;
  };
  EXPECT_EQ(refusal(""), quoted(""));
  EXPECT_EQ(refusal("3\n"), quoted("3\\x0a"));
  EXPECT_EQ(refusal("\x1b[2J"), quoted("\\x1b[2J"));
  EXPECT_EQ(refusal("3\r4"), quoted("3\\x0d4"));
  EXPECT_EQ(refusal(std::string(100'000, '\t')).find('\n'), std::string::npos);
  EXPECT_LT(refusal(std::string(100'000, '\t')).size(), 2000u);
  EXPECT_EQ(refusal("3"), "");
  unsetenv(row_.name);
  EXPECT_FALSE(is_number ? or_throw(read_number(variable_, 1, 9)).has_value()
                         : or_throw(read_text(variable_)).has_value());
  if (!is_number) return;
  for (const char* value : {"0", "10", "-1", "+3", " 3", "3 ", "0x3", "3.", "12345678901"}) {
    EXPECT_EQ(refusal(value), quoted(value));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Variables, ::testing::Range(std::size_t{0}, variables().size()),
                         [](const auto& each) { return variables()[each.param].name; });

}  // namespace
}  // namespace espalier
