#include "espalier/internal/collectives/schedule/index_cursor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

#include "collectives/schedule/testing/sample_program.h"

namespace espalier {
namespace {

constexpr std::uint32_t kEntries = 50;

// 50 positive and negative entries.
const std::uint8_t* entries() {
  static const auto bytes = [] {
    std::array<std::uint8_t, 2 * kEntries> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(97 * i);
    return bytes;
  }();
  return bytes.data();
}

Term any_term() {
  Term term{};
  term.coef = *rc::gen::inRange(-50, 51);
  term.mul = *rc::gen::oneOf(rc::gen::inRange(-9, 10), rc::gen::inRange(-100000, 100001));
  term.add = *rc::gen::inRange(-1000, 1001);
  term.div = *rc::gen::oneOf(rc::gen::inRange(0u, 9u), rc::gen::inRange(1u, 100000u));
  if (*rc::gen::arbitrary<bool>()) {
    term.base = *rc::gen::inRange(2u, 12u);
    term.digits = *rc::gen::inRange(1u, 8u);
    term.mod = 1;
    for (std::uint32_t digit = 0; digit < term.digits; ++digit) term.mod *= term.base;
  } else {
    term.mod = *rc::gen::inRange(0u, 20u);
    if (term.mod > 0) term.table = *rc::gen::inRange(0u, kEntries + 1 - term.mod);
  }
  return term;
}

OwnedProgram any_program() {
  Program program{};
  program.table.bytes = entries();
  program.table.size = 2 * kEntries;
  program.terms_count = 8;
  for (Term& term : program.terms) term = any_term();
  Index& index = program.indices[0];
  program.indices_count = 1;
  index.base = *rc::gen::inRange(-100, 101);
  index.coef = *rc::gen::oneOf(rc::gen::inRange(-5, 6), rc::gen::inRange(-1000000, 1000001));
  index.off = *rc::gen::inRange(-1000, 1001);
  index.div = *rc::gen::oneOf(rc::gen::inRange(0u, 9u), rc::gen::inRange(1u, 1000000000u));
  index.mod = *rc::gen::oneOf(rc::gen::inRange(0u, 9u), rc::gen::inRange(1u, 1000000000u));
  index.terms = *rc::gen::inRange<std::uint8_t>(0, 9);
  index.first_term = *rc::gen::inRange<std::uint8_t>(0, static_cast<std::uint8_t>(9 - index.terms));
  return program;
}

TEST(IndexCursor, StepsAsTheFormulaSays) {
  const bool holds = rc::check("cursor equals index_value", [] {
    const OwnedProgram program = any_program();
    const std::int64_t first = *rc::gen::inRange<std::int64_t>(0, 100000);
    std::array<TermCursor, 8> terms;
    IndexCursor cursor;
    cursor.start(program, 0, first, terms.data());
    for (std::int64_t i = first; i < first + 300; ++i) {
      RC_ASSERT(cursor.value() == index_value(program, 0, i));
      cursor.advance(program);
    }
  });
  EXPECT_TRUE(holds);
}

TEST(IndexCursor, WalksTheLongestReversalThatFits) {
  Program program{};
  program.terms_count = program.indices_count = 1;
  program.terms[0] = Term{1, 536870909, -7, 3, 1u << 30, 2, 30, 0};
  program.indices[0].terms = 1;
  TermCursor term;
  IndexCursor cursor;
  cursor.start(program, 0, 0, &term);
  for (std::int64_t i = 0; i < 1000; ++i, cursor.advance(program)) {
    ASSERT_EQ(cursor.value(), index_value(program, 0, i)) << i;
  }
}

// Digit reversal by hand: 3 base-2 digits.
TEST(IndexValue, ReversesDigits) {
  Program program{};
  program.terms_count = program.indices_count = 1;
  program.terms[0] = Term{1, 1, 0, 0, 8, 2, 3, 0};
  program.indices[0].terms = 1;
  const int expected[] = {0, 4, 2, 6, 1, 5, 3, 7, 0};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(index_value(program, 0, i), expected[i]);
}

// table[1 + i mod 3] by hand, and a table with negative entries.
TEST(IndexValue, ReadsTables) {
  OwnedProgram program = sample_program_with_table();
  const int expected[] = {0, 2, 1, 0, 2, 1, 0};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(index_value(program, 4, i), expected[i]);
  program.terms[0] = {10, -1, 1, 0, 2, 0, 0, 5};
  const int wide[] = {-20, 3000, -20, 3000};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(index_value(program, 4, i), wide[i]);
}

TEST(IndexValue, FloorsAndWrapsWithEitherSign) {
  Program program{};
  program.indices_count = 1;
  program.indices[0] = Index{10, -1, 0, 2, 3, 0, 0};  // 10 + floor(-i / 2) mod 3
  const int expected[] = {10, 12, 12, 11, 11, 10, 10, 12};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(index_value(program, 0, i), expected[i]);
}

}  // namespace
}  // namespace espalier
