// The campaign's own parts: its brute force against the interpreter under timing skew, and on
// schedules made wrong by hand; its rows against their formula.

#include "tests/random/brute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/testing/results.h"
#include "collectives/verify/testing/program_builder.h"
#include "tests/mutation/formulas.h"
#include "tests/mutation/interpreter.h"
#include "tests/random/breaks.h"
#include "tests/random/encode.h"
#include "tests/random/far.h"
#include "tests/random/plan.h"
#include "tests/random/rows.h"

namespace espalier::random {
namespace {

using verify::chain_broadcast;
using verify::chain_reduce;

std::string check(const topology::Topology& topology, const Programs& programs, std::int64_t blocks,
                  InPlace in_place = InPlace::kNo) {
  return Brute(topology, programs, true).check(blocks, in_place);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Brute, FindsNothingInSoundSchedules) {
  const auto topology = or_throw(topology::parse("complete:4"));
  for (const std::int64_t blocks : {1, 2, 7, 40}) {
    EXPECT_EQ(check(*topology, chain_broadcast(*topology), blocks), "");
    EXPECT_EQ(check(*topology, chain_reduce(*topology, 3, 4), blocks), "");
  }
}

// Four slots: a window of three steps, and the step between.
TEST(Brute, HoldsBackWhatWouldBeOverwritten) {
  const auto topology = or_throw(topology::parse("complete:4"));
  EXPECT_EQ(check(*topology, chain_reduce(*topology, 3, 3), 2), "");
  const std::string wrong = check(*topology, chain_reduce(*topology, 3, 3), 4);
  EXPECT_TRUE(has(wrong, "uses the same memory")) << wrong;
  Programs late = chain_broadcast(*topology);
  late[1].actions[1].after = 0;
  EXPECT_TRUE(has(check(*topology, late, 1), "does not wait for action 0")) << "a send too early";
}

TEST(Brute, SeesInputInTheOutputsMemory) {
  const auto topology = or_throw(topology::parse("complete:2"));
  // An exchange by both ranks: in place, each would send the data that it has received.
  Programs programs;
  for (std::uint32_t me = 0; me < 2; ++me) {
    verify::ProgramBuilder builder(*topology, Collective::kAllToAll, me, 2);
    builder.program.segments = 2;
    const auto own = static_cast<std::int32_t>(me), other = 1 - own;
    builder.send(0, 1 - me, builder.operand(Buffer::kInput, other), 0);
    builder.receive(0, 1 - me, builder.operand(Buffer::kOutput, other));
    builder.copy(0, builder.operand(Buffer::kOutput, own), builder.operand(Buffer::kInput, own));
    programs.push_back(builder.finish(1, 0, 1, 0));
  }
  EXPECT_EQ(check(*topology, programs, 3, InPlace::kNo), "");
  EXPECT_NE(check(*topology, programs, 3, InPlace::kYes), "");
}

// Instances that do not exist count: a machine steps through them.
TEST(Brute, LooksAtEveryInstanceOfAPace) {
  const auto topology = or_throw(topology::parse("complete:3"));
  Programs programs = chain_broadcast(*topology);
  Program& last = programs[2];
  last.indices[last.indices_count] = {0, 1, 0, 0, 0, 0, 0};
  last.actions[0].pace_ref = static_cast<std::uint8_t>(last.indices_count++);
  EXPECT_EQ(check(*topology, programs, 3), "");
  last.counts[last.actions[0].instances_ref].a = 1;  // one more, of a block beyond N
  EXPECT_TRUE(has(check(*topology, programs, 3), "stalls"));
  const mutation::Play play = mutation::unroll(*topology, programs, 3);
  EXPECT_TRUE(has(mutation::interpret(play, 1), "stalls")) << "by the interpreter, too";
}

TEST(Brute, ChecksClaims) {
  const auto topology = or_throw(topology::parse("complete:3"));
  Programs programs = chain_broadcast(*topology);
  for (Program& program : programs) program.counts[program.steps_ref].a += 1;
  EXPECT_TRUE(has(check(*topology, programs, 2), "claims other steps"));
  for (Program& program : programs) program.counts[program.phases[0].steps_ref].a += 1;
  EXPECT_TRUE(has(check(*topology, programs, 2), "claims other steps"));
}

// The change below leaves the schedule right for all N that can be run, but not near 2^29.
TEST(Brute, LooksNearTheMostBlocks) {
  const auto topology = or_throw(topology::parse("complete:3"));
  Programs programs = chain_reduce(*topology, 3, 4);
  Dice dice(1);
  const auto far = [&] {
    std::string wrong;
    for (int k = 0; k < 20 && wrong.empty(); ++k) {
      Brute brute(*topology, programs, true);
      wrong = check_far(programs, brute, dice);
    }
    return wrong;
  };
  EXPECT_EQ(far(), "");
  // Slots that turn as they did, until a product leaves 64 bits: the product of rank 1, in its own
  // row.
  Program& inner = programs[1];
  Index& slots = inner.indices[inner.actions[0].into.slot_ref];
  ASSERT_EQ(slots.mod, 4u);
  inner.terms[0] = {};
  inner.terms[0].coef = (1 << 30) - 3;  // 1 modulo 4
  inner.terms[0].mul = (1 << 28) + 1;
  inner.terms_count = 1;
  slots.coef = 0;
  slots.terms = 1;
  slots.mod = 4;
  EXPECT_EQ(check(*topology, programs, 20), "");
  EXPECT_EQ(far(), "");  // 2^64 is whole turns of 4 slots
  slots.mod = 5;
  for (Program& program : programs) program.scratch_blocks = 5;
  inner.terms[0].coef = (1 << 30) - 3;  // 1 modulo 5
  inner.terms[0].mul = (1 << 28) / 5 * 5 + 1;
  EXPECT_TRUE(has(far(), "wraps"));
}

// Each error that skews find in a random program is also found in lock step or by holding back,
// which find more.
TEST(Brute, FindsWhatSkewsFind) {
  int wrong = 0, more = 0, right = 0;
  for (std::uint64_t seed = 1; seed <= 480; ++seed) {
    Dice dice(seed);
    const std::optional<Plan> plan = make_plan(dice);
    if (!plan) continue;
    const std::optional<Encoded> encoded = encode(*plan, dice);
    if (!encoded) continue;
    for (int k = 0; k < 4; ++k) {
      Programs broken = encoded->programs;
      if (k > 0) (void)break_one(broken, dice);
      const auto loads = [](const Program& one) { return check_program(one) == Status::kOk; };
      if (!std::all_of(broken.begin(), broken.end(), loads)) continue;
      Brute brute(*plan->topology, broken, plan->links);
      for (const std::int64_t blocks : {1, 3, 6}) {
        if (!allows(*plan, blocks)) continue;
        const std::string found = brute.check(blocks, InPlace::kNo);
        const mutation::Play play = mutation::unroll(*plan->topology, broken, blocks);
        const std::string skewed = mutation::interpret(play, 4);
        ASSERT_TRUE(skewed.empty() || !found.empty()) << "seed " << seed << ": " << skewed;
        ASSERT_TRUE(k > 0 || found.empty()) << "seed " << seed << ": " << found;
        ++(!skewed.empty() ? wrong : !found.empty() ? more : right);
      }
    }
  }
  std::printf("%d wrong, %d found by brute force alone, %d right\n", wrong, more, right);
  EXPECT_GT(wrong, 200);
  EXPECT_GT(more, 0);
  EXPECT_GT(right, 400);
}

TEST(Rows, GiveTheirValues) {
  std::uint32_t written = 0, terms = 0, reversed = 0, tables = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Dice dice(seed);
    Choice choice(seed, seed, 0);
    RowShape shape;
    shape.q = dice.number(1, 9);
    shape.slope = dice.one_in(2) ? dice.number(0, 6) : 0;
    shape.far = dice.one_in(3);
    shape.ring = !shape.far && dice.one_in(3) ? dice.number(1, 7) : 0;
    const std::int64_t rounds = !shape.far && shape.ring == 0 && dice.one_in(3) ? 3 : 1;
    const bool line = dice.one_in(2);
    for (std::int64_t k = 0; k < shape.q * rounds; ++k) {
      shape.values.push_back(line ? 2 * k : static_cast<std::int64_t>(dice.number(0, 30)) - 10);
    }
    for (std::int64_t j = 0; j < shape.q; ++j) shape.alive.push_back(j == 0 || dice.one_in(2));
    shape.base = shape.ring > 0 ? dice.number(0, 9) : 0;
    Programs programs;
    programs.emplace_back();
    OwnedProgram& program = programs[0];
    RowWriter rows(program, choice);
    const std::uint8_t at = rows.index(shape);
    if (rows.failed()) continue;
    ++written;
    if (!rows.table().empty()) program.set_table(rows.table());
    for (std::uint32_t k = 0; k < program.terms_count; ++k) {
      ++terms;
      if (program.terms[k].digits > 1) ++reversed;
      if (program.terms[k].table != 0) ++tables;
    }
    for (std::int64_t i = 0; i < 60; ++i) {
      const auto slot = static_cast<std::size_t>(i % shape.q);
      const auto position = static_cast<std::size_t>(i % (shape.q * rounds));
      std::int64_t wanted = shape.slope * (i / shape.q) + shape.values[position];
      if (shape.ring > 0) wanted -= mutation::down(wanted, shape.ring) * shape.ring;
      const std::int64_t value = mutation::index_at(program, at, i);
      if (shape.alive[slot]) {
        ASSERT_EQ(value, shape.base + wanted) << "seed " << seed << ", instance " << i;
      } else if (shape.far) {
        ASSERT_LT(value, -(std::int64_t{1} << 29)) << "seed " << seed << ", instance " << i;
      }
    }
  }
  EXPECT_GT(written, 3500u);
  EXPECT_GT(terms, 1000u);
  EXPECT_GT(reversed, 20u);
  EXPECT_GT(tables, 500u);
}

TEST(Counts, AreFoundOrNot) {
  const std::vector<bool> all(20, true);
  const auto values = [](const auto& value) {
    std::vector<std::int64_t> values;
    for (std::int64_t blocks = 1; blocks <= 20; ++blocks) values.push_back(value(blocks));
    return values;
  };
  const auto fits = [&](const auto& value, std::int64_t divisor) {
    const auto count = fit_count(values(value), all, divisor);
    if (!count) return false;
    for (std::int64_t blocks = 1; blocks <= 20; ++blocks) {
      EXPECT_EQ(mutation::count_at(*count, blocks), value(blocks));
    }
    return true;
  };
  EXPECT_TRUE(fits([](std::int64_t n) { return 3 * n - 2; }, 1));
  EXPECT_TRUE(fits([](std::int64_t n) { return 5 + n + 4 * ((n + 2) / 3); }, 3));
  EXPECT_TRUE(fits([](std::int64_t n) { return 7 * (n / 2); }, 2));
  EXPECT_FALSE(fits([](std::int64_t n) { return n * n; }, 6));
  EXPECT_FALSE(fits([](std::int64_t n) { return n % 3 == 0 ? n + 1 : n; }, 3));
}

}  // namespace
}  // namespace espalier::random
