// The port models, each with transfers that it allows and transfers that it does not, and the
// claims for all N. Both are checked for every N at once and exhaustively.

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {
namespace {

class Ports : public ::testing::Test {
 protected:
  void expect_valid(const std::vector<OwnedProgram>& programs) const {
    const Verdict at_once = verdict_by(Method::kPeriodic, programs);
    EXPECT_TRUE(at_once.valid) << at_once.counterexample.message;
    EXPECT_TRUE(at_once.for_all);
    const Verdict exhaustive = verdict_by(Method::kExhaustive, programs);
    EXPECT_TRUE(exhaustive.valid) << exhaustive.counterexample.message;
  }
  // Expects both methods to refuse N = `blocks` for this property, by lines that contain all
  // `words`.
  void expect_refused(const std::vector<OwnedProgram>& programs, Property property,
                      std::int64_t blocks, const std::vector<std::string>& words) const {
    for (const Method method : {Method::kPeriodic, Method::kExhaustive}) {
      const Verdict verdict = verdict_by(method, programs);
      ASSERT_FALSE(verdict.valid);
      const Counterexample& wrong = verdict.counterexample;
      EXPECT_STREQ(property_name(wrong.property), property_name(property)) << wrong.message;
      EXPECT_EQ(wrong.blocks, blocks) << wrong.message;
      for (const std::string& word : words) {
        EXPECT_NE(wrong.message.find(word), std::string::npos)
            << "no '" << word << "' in: " << wrong.message;
      }
    }
  }
  [[nodiscard]] Verdict verdict_by(Method method, const std::vector<OwnedProgram>& programs) const {
    return verdict_of(*topology, programs, {.method = method});
  }
  static std::vector<OwnedProgram> with(PortModel model, std::vector<OwnedProgram> programs) {
    for (Program& program : programs) program.port_model = model;
    return programs;
  }

  std::unique_ptr<topology::Topology> topology = or_throw(topology::parse("complete:4"));
};

// A chain broadcast of that period: a rank's receive of block i and its send are a step apart.
std::vector<OwnedProgram> chain(const topology::Topology& topology, std::uint32_t period) {
  const auto b = static_cast<std::int32_t>(period);
  return by_rank(
      topology, Collective::kBroadcast, 4, {period, 3 - b, b, 1}, [&](auto& builder, auto me) {
        const auto step = static_cast<std::int32_t>(me);
        if (me > 0) builder.receive(step - 1, me - 1, builder.output());
        if (me < 3)
          builder.send(step, me + 1, me == 0 ? builder.input() : builder.output(), me == 0 ? 0 : 1);
      });
}

TEST_F(Ports, DuplexSendsAndReceivesAtOnce) {
  expect_valid(with(PortModel::kOnePortDuplex, chain(*topology, 1)));
}

TEST_F(Ports, SimplexDoesEitherInAStep) {
  expect_refused(with(PortModel::kSimplex, chain(*topology, 1)), Property::kPorts, 2,
                 {"rank 1", "receives block 1", "sends block 0"});
  expect_valid(with(PortModel::kSimplex, chain(*topology, 2)));
}

// Ranks 1 and 2 send to rank 0 in the same step.
std::vector<OwnedProgram> star_reduce(const topology::Topology& topology) {
  return by_rank(topology, Collective::kReduce, 2, {1, 0, 1, 0}, [&](auto& builder, auto me) {
    if (me > 0) {
      builder.send(0, 0, builder.input(), 0);
    } else {
      builder.program.scratch_blocks = 4;
      const Operand one = builder.slot(0, 2), two = builder.slot(2, 2), sum = builder.output();
      builder.receive(0, 1, one);
      builder.receive(0, 2, two);
      builder.combine(0, sum, builder.input(), one);
      builder.combine(0, sum, sum, two);
    }
  });
}

TEST_F(Ports, SingleSendReceivesWithoutLimit) {
  topology = or_throw(topology::parse("complete:3"));
  expect_valid(with(PortModel::kSingleSend, star_reduce(*topology)));
  expect_refused(with(PortModel::kOnePortDuplex, star_reduce(*topology)), Property::kPorts, 1,
                 {"rank 0", "from node 1", "from node 2"});
}

// Rank 0 sends to ranks 1 and 2 in steps `second` apart, which arrive `latency` - 1 steps later.
std::vector<OwnedProgram> star_broadcast(const topology::Topology& topology, std::int32_t second,
                                         std::uint32_t period, std::int32_t latency,
                                         std::int32_t bound_a, std::int32_t bound_b) {
  std::vector<OwnedProgram> programs;
  for (std::uint32_t me = 0; me < 3; ++me) {
    ProgramBuilder builder(topology, Collective::kBroadcast, me, 4);
    if (me == 0) builder.send(0, 1, builder.input(), 0);
    if (me == 0) builder.send(second, 2, builder.input(), 0);
    if (me == 1) builder.receive(latency - 1, 0, builder.output());
    if (me == 2) builder.receive(second + latency - 1, 0, builder.output());
    const auto b = static_cast<std::int32_t>(period);
    OwnedProgram program = builder.finish(period, second + latency - b, b, 0);
    program.counts[program.bound_ref] = {bound_a, bound_b, 0, 0, 0};
    programs.push_back(program);
  }
  return programs;
}

TEST_F(Ports, MultiportSendsOverAllLinks) {
  topology = or_throw(topology::parse("complete:3"));
  const auto programs = star_broadcast(*topology, 0, 1, 1, 1, 0);
  expect_valid(with(PortModel::kMultiport, programs));
  expect_refused(with(PortModel::kSingleSend, programs), Property::kPorts, 1, {"rank 0"});
}

class Postal : public Ports {
 protected:
  // S = 2, L = 3: a block is at both others after 5 steps, the next two steps later.
  std::vector<OwnedProgram> programs_of(std::int32_t second, std::uint32_t period,
                                        std::uint32_t window = 4) {
    topology = or_throw(topology::parse("complete:3"));
    std::vector<OwnedProgram> programs = star_broadcast(*topology, second, period, 3, 3, 2);
    for (Program& program : programs) {
      program.send_ticks = 2;
      program.latency_ticks = 3;
      program.window = window;
    }
    return programs;
  }
};

TEST_F(Postal, IsValid) {
  expect_valid(programs_of(2, 4));
  const Verdict verdict = verdict_by(Method::kAuto, programs_of(2, 4));
  EXPECT_EQ(verdict.steps_at_one, 5);
  ASSERT_FALSE(verdict.lower_bounds.empty());
  EXPECT_EQ(verdict.lower_bounds[1].a, 3) << verdict.lower_bounds[1].reason;
  EXPECT_EQ(verdict.lower_bounds[1].b, 2) << verdict.lower_bounds[1].reason;
}

TEST_F(Postal, ASendHoldsItsPort) {
  std::vector<OwnedProgram> programs = programs_of(1, 4);
  for (Program& program : programs) program.counts[program.bound_ref] = {1, 0, 0, 0, 0};
  expect_refused(programs, Property::kPorts, 1, {"rank 0", "step 1", "node 1", "node 2"});
  // The second send of block i while the first of block i + 1 begins.
  programs = programs_of(2, 3);
  for (Program& program : programs) program.counts[program.bound_ref] = {1, 0, 0, 0, 0};
  expect_refused(programs, Property::kPorts, 2, {"rank 0", "step 3"});
}

TEST_F(Postal, AReceiveIsLater) {
  std::vector<OwnedProgram> programs = programs_of(2, 4);
  programs[1].counts[programs[1].actions[0].t0_ref].a -= 1;
  expect_refused(programs, Property::kDeadlock, 1, {"rank 0 -> rank 1", "2 steps after its send"});
}

TEST_F(Postal, TheWindowMustHoldAFlight) {
  expect_valid(programs_of(2, 4, 3));
  expect_refused(programs_of(2, 4, 2), Property::kDeadlock, -1,
                 {"window 2", "a window of 3 would do"});
}

TEST_F(Postal, AllRanksAgree) {
  std::vector<OwnedProgram> programs = programs_of(2, 4);
  programs[2].latency_ticks = 4;
  expect_refused(programs, Property::kForm, -1, {"rank 2", "latency_ticks"});
}

TEST_F(Ports, ABoundThatFailsForLargeNOnly) {
  std::vector<OwnedProgram> programs = chain(*topology, 1);
  // Two ranks need N steps more than this up to N = 21: 2N - 20 against N + 1.
  for (Program& program : programs) program.counts[program.bound_ref] = {-20, 2, 0, 0, 0};
  const Verdict at_once = verdict_by(Method::kPeriodic, programs);
  ASSERT_FALSE(at_once.valid);
  EXPECT_EQ(at_once.counterexample.property, Property::kSteps);
  EXPECT_EQ(at_once.counterexample.blocks, 22);
  EXPECT_FALSE(verdict_by(Method::kAuto, programs).valid);
  for (const std::int64_t blocks : {21, 22}) {
    EXPECT_EQ(verdict_of(*topology, programs, {.max_blocks = blocks}).valid, blocks < 22);
  }
}

TEST_F(Ports, StreamsThatCollideForLargeNOnly) {
  // Rank 0 also sends each block a hundred steps late, over the other link.
  std::vector<OwnedProgram> programs;
  for (std::uint32_t me = 0; me < 3; ++me) {
    topology = or_throw(topology::parse("complete:3"));
    ProgramBuilder builder(*topology, Collective::kBroadcast, me, 4);
    if (me == 0) builder.send(0, 1, builder.input(), 0);
    if (me == 0) builder.send(100, 2, builder.input(), 0);
    if (me == 1) builder.receive(0, 0, builder.output());
    if (me == 2) builder.receive(100, 0, builder.output());
    programs.push_back(builder.finish(2, 99, 2, 1));
  }
  expect_refused(programs, Property::kPorts, 51, {"rank 0", "step 100", "node 1", "node 2"});
}

}  // namespace
}  // namespace espalier::verify
