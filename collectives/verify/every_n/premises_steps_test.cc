// Premises of "claims for N up to 3R" and "bounds residue by residue" (docs/verifier.md): claimed
// steps and claimed lower bounds, for every N up to 2^29.

#include <algorithm>
#include <random>

#include "collectives/verify/every_n/stage_steps.h"
#include "collectives/verify/testing/premises.h"

namespace espalier::verify {
namespace {

class StepPremises : public Premises {};

TEST_F(StepPremises, ClaimsAreComparedUntilTheyGoOn) {
  // 2 N - 1 steps are claimed, N are taken.
  begin_pipe();
  finish(-1, 2).expect_refused(Property::kSteps, 2);
}

TEST_F(StepPremises, ClaimsGoOnAsTheBlocksDo) {
  // N steps up to N = 3, then N + 1.
  begin_pipe();
  finish({0, 1, 1, -3, 100}).expect_unproven("the claimed steps do not go on as the blocks do", 4);
}

TEST_F(StepPremises, NoStageOvertakesItsPhase) {
  // Rank 1 gets a block in every second step; rank 2 one in every step, from step 10 onward. Up to
  // N = 11 rank 2 is the last.
  begin_long_pipe(10);
  for (const std::uint32_t node : {0u, 1u}) {
    NodeWriter& writer = nodes[node];
    Operand& moved = node == 0 ? action(0).a : action(1).into;
    // Odd instances have no block.
    moved.block_ref = writer.sum_of({{1, 1, 0, 2, 0, 0, 0, 0}, {-(1 << 30), 1, 0, 0, 2, 0, 0, 0}});
    action(node).instances_ref = writer.count(0, 2);
  }
  finish(10, 1).expect_unproven("a phase takes longer than it claims for large N", 12);
}

// Steps are kept for each block of a stride. Only the residue says that the stride is not 1: it
// must be known before there is room for them.
TEST_F(StepPremises, StagesHaveAsManyBlocksAsTheResidue) {
  // Only N = 3, 6, ... occur. Blocks 3 i, 3 i + 1 and 3 i + 2 take steps 5 i, 5 i + 1 and 5 i + 3.
  const auto make = [this](const Count& steps) -> Premises& {
    begin("complete:2", Collective::kBroadcast);
    for (const std::int32_t block : {0, 1, 2}) {
      const std::int32_t first = block + block / 2;
      nodes[0].send(first, 1, nodes[0].input());
      nodes[1].receive(first, 0, nodes[1].output());
      for (const std::uint32_t node : {0u, 1u}) {
        Action& last = action(node, static_cast<std::uint32_t>(block));
        (node == 0 ? last.a : last.into).block_ref = nodes[node].index(block, 3);
        last.instances_ref = nodes[node].count({0, 0, 1, 0, 3});
      }
    }
    for (NodeWriter& node : nodes) node.program.residue_mod = 3;
    return finish(steps, 5);
  };
  make({-1, 0, 5, 0, 3}).expect_proven();
  make({0, 0, 5, 0, 3}).expect_refused(Property::kSteps, 3);
}

TEST(StageSteps, AreThoseOfTheLastInstance) {
  std::mt19937_64 random(1);
  const auto dice = [&random](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int tried = 0; tried < 300; ++tried) {
    const std::int64_t stride = dice(1, 7);
    StageSteps stages(stride);
    const std::vector<Stage> all = {{0, 0, dice(1, 9)}, {0, dice(1, 3), dice(1, 9)}, {1, 0, 2}};
    std::vector<std::vector<Progression>> parts(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t number = stages.number_of(all[i]);
      for (std::int64_t many = dice(1, 5); many > 0; --many) {
        Progression one;
        one.first = dice(0, 30);
        one.block = static_cast<std::int32_t>(many == 1 ? stride - 1 : dice(0, stride - 1));
        // Some begin later, or have one instance.
        if (tried % 2 == 1 && dice(0, 2) == 0) one.block += static_cast<std::int32_t>(2 * stride);
        one.once = tried % 3 == 1 && dice(0, 2) == 0;
        stages.add(number, one);
        parts[i].push_back(one);
      }
    }
    stages.finish();
    for (std::int64_t blocks = 1; blocks <= 6 * stride; ++blocks) {
      std::int64_t used[2] = {0, 0};
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (const Progression& one : parts[i]) {
          for (std::int64_t block = one.block, k = 0; block < blocks; block += stride, ++k) {
            if (one.once && k > 0) break;
            const std::int64_t step = all[i].slope * (blocks - 1) + one.first + all[i].period * k;
            used[all[i].phase] = std::max(used[all[i].phase], step + 1);
          }
        }
      }
      for (const std::uint32_t phase : {0u, 1u}) {
        ASSERT_EQ(stages.phase_used(phase, blocks), used[phase]) << stride << ", N = " << blocks;
      }
    }
  }
}

class BoundPremises : public Premises {
 protected:
  // Allreduce of three ranks: a reduce along the chain, then a broadcast, N + 1 steps each.
  void allreduce() {
    begin("complete:3", Collective::kAllreduce);
    for (NodeWriter& node : nodes) {
      node.program.port_model = PortModel::kOnePortDuplex;
      node.program.scratch_blocks = 16;
    }
    nodes[2].send(0, 1, nodes[2].input());
    nodes[1].receive(0, 2, nodes[1].slot(0, 8));
    nodes[1].combine(0, nodes[1].slot(8, 8), nodes[1].input(), nodes[1].slot(0, 8));
    nodes[1].send(1, 0, nodes[1].slot(8, 8), 1);
    nodes[0].receive(1, 1, nodes[0].slot(0, 8));
    nodes[0].combine(1, nodes[0].output(), nodes[0].input(), nodes[0].slot(0, 8));
    const std::vector<std::uint8_t> first = nodes_actions();
    nodes[0].send(0, 1, nodes[0].output());
    nodes[1].receive(0, 0, nodes[1].output());
    nodes[1].send(1, 2, nodes[1].output(), 1);
    nodes[2].receive(1, 1, nodes[2].output());
    std::vector<std::uint8_t> second = nodes_actions();
    for (std::size_t node = 0; node < second.size(); ++node) {
      second[node] = static_cast<std::uint8_t>(second[node] - first[node]);
    }
    const Count steps{1, 1, 0, 0, 0};
    finish_phases({steps, steps}, {first, second}, {2, 2, 0, 0, 0});
  }
};

// By messages it takes ceil(4 N / 3) steps. The claim N + ceil(N / 2) - 10 exceeds that first for
// N = 63. For N = 61 it is 82, which is 4 N / 3 = 81 1/3 rounded up.
TEST_F(BoundPremises, BoundsAreRoundedUp) {
  bound = {0, 1, 1, 0, 3};
  allreduce();
  expect_proven();
  bound = {-10, 1, 1, 0, 2};
  allreduce();
  expect_refused(Property::kSteps, 63);
}

TEST_F(BoundPremises, HoldUpToTheLastN) {
  // 2 N - 2^29 + 1 against N, which needs N > 2^29 - 1.
  begin_pipe();
  bound = {1 - (1 << 29), 2, 0, 0, 0};
  finish(0, 1);
  const Verdict verdict = proof();
  ASSERT_FALSE(verdict.valid);
  EXPECT_EQ(verdict.counterexample.property, Property::kSteps) << verdict.counterexample.message;
  EXPECT_EQ(verdict.counterexample.blocks, 1 << 29) << verdict.counterexample.message;
  // No N is larger.
  begin_pipe();
  bound = {-(1 << 29), 2, 0, 0, 0};
  finish(0, 1).expect_proven();
}

}  // namespace
}  // namespace espalier::verify
