#pragma once
// Test helper for the premises of the proof for every N (docs/verifier.md): programs that break one
// premise each. A brute-force check of one N after the other finds the N for which they are wrong.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {

inline constexpr std::int32_t kFar = 1 << 30;  // blocks that are never reached

// Writes one node's program, with tables that ProgramBuilder does not need.
class NodeWriter : public ProgramBuilder {
 public:
  using ProgramBuilder::count;
  using ProgramBuilder::index;
  using ProgramBuilder::ProgramBuilder;

  std::uint8_t count(const Count& count) {
    program.counts[program.counts_count] = count;
    return static_cast<std::uint8_t>(program.counts_count++);
  }
  std::uint8_t index(const Index& index) {
    program.indices[program.indices_count] = index;
    return static_cast<std::uint8_t>(program.indices_count++);
  }
  // An index: the sum of `terms`.
  std::uint8_t sum_of(const std::vector<Term>& terms) {
    const std::uint32_t first = program.terms_count;
    for (const Term& term : terms) program.terms[program.terms_count++] = term;
    return index(
        {0, 0, 0, 0, 0, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(terms.size())});
  }
  // A pace: `first` + `coef` * i. Row 0 of the indices means "no pace".
  std::uint8_t pace(std::int32_t first, std::int32_t coef) {
    if (program.indices_count == 0) index(0, 0);
    return index(first, coef);
  }
  // Block `block` of segment 0 in slot `slot`, both given as indices.
  [[nodiscard]] Operand slot_at(std::uint8_t block, std::uint8_t slot) {
    Operand slotted = operand(Buffer::kScratch);
    slotted.block_ref = block;
    slotted.slot_ref = slot;
    return slotted;
  }
};

class Premises : public ::testing::Test {
 public:
  // Begins the programs of all ranks of `spec`, or of all nodes with `routers`.
  void begin(const std::string& spec, Collective collective, bool routers = false,
             std::uint32_t window = 4) {
    topology = or_throw(topology::parse(spec));
    nodes.clear();
    const std::uint32_t count = routers ? topology->nodes() : topology->ranks();
    for (std::uint32_t node = 0; node < count; ++node) {
      nodes.emplace_back(*topology, collective, node, window);
      if (routers) nodes.back().program.nodes = count;
      nodes.back().program.port_model = PortModel::kMultiport;
      if (counts_per_rank(collective)) nodes.back().program.segments = topology->ranks();
    }
  }
  // Ends all programs: one phase of `steps`. No lower bound is claimed.
  Premises& finish(const Count& steps, std::uint32_t period = 1) {
    return finish_phases({steps}, {nodes_actions()}, steps, period);
  }
  // Ends them: a + b*N steps.
  Premises& finish(std::int32_t a, std::int32_t b, std::uint32_t period = 1) {
    return finish(Count{a, b, 0, 0, 0}, period);
  }
  // Phases of `steps` each; `actions`: by phase, then node, how many actions it has.
  Premises& finish_phases(const std::vector<Count>& steps,
                          const std::vector<std::vector<std::uint8_t>>& actions, const Count& sum,
                          std::uint32_t period = 1) {
    programs.clear();
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      NodeWriter& writer = nodes[node];
      writer.program.phases_count = 0;
      for (std::size_t phase = 0; phase < steps.size(); ++phase) {
        writer.program.phases[writer.program.phases_count++] = {period, writer.count(steps[phase]),
                                                                actions[phase][node]};
      }
      writer.program.steps_ref = writer.count(sum);
      writer.program.bound_ref = writer.count(bound);
      programs.push_back(writer.program);
    }
    return *this;
  }
  [[nodiscard]] std::vector<std::uint8_t> nodes_actions() const {
    std::vector<std::uint8_t> actions;
    for (const NodeWriter& node : nodes) {
      actions.push_back(static_cast<std::uint8_t>(node.program.actions_count));
    }
    return actions;
  }
  // A broadcast from rank 0 to rank 1 in N steps: the actions of both are changed by the tests.
  void begin_pipe(const std::string& spec = "complete:2") {
    begin(spec, Collective::kBroadcast);
    nodes[0].send(0, 1, nodes[0].input());
    nodes[1].receive(0, 0, nodes[1].output());
  }
  // The same on three ranks. Rank 2 gets its blocks `late` steps after rank 1, so that the phase of
  // N + late steps continues after rank 1's last block.
  void begin_long_pipe(std::int32_t late) {
    begin_pipe("complete:3");
    nodes[0].send(late, 2, nodes[0].input());
    nodes[2].receive(late, 0, nodes[2].output());
  }
  Action& action(std::uint32_t node, std::uint32_t position = 0) {
    return nodes[node].program.actions[position];
  }

  [[nodiscard]] Verdict proof() const {
    return verdict_of(*topology, programs, {.method = Method::kPeriodic});
  }
  [[nodiscard]] Verdict brute_force(std::int64_t most) const {
    return verdict_of(*topology, programs, {.method = Method::kExhaustive, .max_blocks = most});
  }
  // Expects the schedule to be wrong for N = `blocks`, and for no smaller N.
  void expect_wrong_from(std::int64_t blocks) const {
    const Verdict wrong = brute_force(blocks);
    ASSERT_FALSE(wrong.valid);
    EXPECT_EQ(wrong.counterexample.blocks, blocks) << wrong.counterexample.message;
  }
  // Expects the proof to refuse the schedule at `property`, for the smallest N for which it is
  // wrong.
  void expect_refused(Property property, std::int64_t blocks) const {
    const Verdict verdict = proof();
    ASSERT_FALSE(verdict.valid);
    EXPECT_STREQ(property_name(verdict.counterexample.property), property_name(property))
        << verdict.counterexample.message;
    EXPECT_EQ(verdict.counterexample.blocks, blocks) << verdict.counterexample.message;
    expect_wrong_from(blocks);
  }
  // Expects the proof to be undecided, with a line that contains `words`.
  void expect_unknown(const std::string& words) const {
    const Verdict verdict = proof();
    ASSERT_FALSE(verdict.valid);
    const std::string& line = verdict.counterexample.message;
    EXPECT_NE(line.find("cannot be proven for every N"), std::string::npos) << line;
    EXPECT_NE(line.find(words), std::string::npos) << line;
  }
  // Expects the same, and a schedule that is wrong from N = `blocks` onward.
  void expect_unproven(const std::string& words, std::int64_t blocks) const {
    expect_unknown(words);
    expect_wrong_from(blocks);
  }
  void expect_proven() const {
    const Verdict verdict = proof();
    EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
    EXPECT_TRUE(verdict.for_all);
    const Verdict brute = brute_force(2 * verdict.proven_blocks);
    EXPECT_TRUE(brute.valid) << brute.counterexample.message;
  }

  std::unique_ptr<topology::Topology> topology;
  std::vector<NodeWriter> nodes;
  Count bound{};
  std::vector<OwnedProgram> programs;
};

}  // namespace espalier::verify
