// Block tables: near the best N for every size, in at most the rows that are allowed.

#include "collectives/predict/block_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier::predict {
namespace {

struct Rules {
  OwnedProgram program;
  std::vector<BlockRule> rules;
};

const LinkCost& cost_of(const Model& model) { return model.cost(topology::LinkClass::kFabric); }

Model model_of(double alpha, double beta, std::uint64_t burst) {
  Model model = line_model(alpha, beta);
  for (LinkCost& link : model.links) link.burst_bytes = burst;
  return model;
}

Rules rules_for(Collective collective, const char* name, std::uint32_t ranks, const Model& model,
                std::uint32_t rows) {
  Rules made;
  CollectiveParameters parameters{.ranks = ranks};
  EXPECT_EQ(find_algorithm(collective, name)->generate(parameters, 0, made.program), Status::kOk);
  const StepLengths lengths(1, [&](std::uint32_t) -> const Program& { return made.program; });
  made.rules = block_rules(made.program, lengths, cost_of(model), rows);
  set_block_rules(made.rules, made.program);
  return made;
}

Picoseconds time_of(const Program& program, std::uint64_t bytes, const Model& model) {
  Layout layout;
  EXPECT_EQ(make_layout(program, bytes, 1, layout), Status::kOk);
  const StepLengths lengths(1, [&](std::uint32_t) -> const Program& { return program; });
  return lengths.time(program, layout, cost_of(model));
}

// The least time over all N whose blocks keep kMaxBlockBytes, up to 100,000.
Picoseconds best_of(const Program& program, std::uint64_t bytes, const Model& model) {
  Picoseconds best = kMaxPrediction;
  OwnedProgram changed = program;
  const std::uint64_t segment = (bytes + program.segments - 1) / program.segments;
  for (std::uint64_t blocks = 1; blocks <= std::min<std::uint64_t>(segment, 100'000);
       blocks += 1 + blocks / 64) {
    const std::uint64_t length = (segment + blocks - 1) / blocks;
    if (length > kMaxBlockBytes) continue;
    set_block_rules({{0, static_cast<std::uint32_t>(length)}}, changed);
    best = std::min(best, time_of(changed, bytes, model));
  }
  return best;
}

TEST(BlockRules, AreNearTheBestOfEverySize) {
  for (const auto& [alpha, beta, burst] : {std::tuple(20e-6, 1e-9, 0u),
                                           {50e-6, 80e-9, 0u},
                                           {50e-6, 80e-9, 10'000u},
                                           {1e-6, 0.2e-9, 0u}}) {
    const Model model = model_of(alpha, beta, burst);
    for (const char* name : {"chain", "binary", "two-tree", "fractional"}) {
      for (const std::uint32_t ranks : {3u, 8u, 100u}) {
        const Rules made = rules_for(Collective::kBroadcast, name, ranks, model, kMaxBlockRules);
        ASSERT_LE(made.rules.size(), kMaxBlockRules);
        for (std::uint64_t bytes = 1; bytes <= 1u << 30; bytes = bytes * 3 + 1) {
          // The best N jumps where a message outgrows a burst, between two sizes of a table.
          if (burst > 0 && bytes < std::uint64_t{4} * burst) continue;
          const Picoseconds time = time_of(made.program, bytes, model);
          EXPECT_LE(time, best_of(made.program, bytes, model) / 100 * 110)
              << name << ", " << ranks << " ranks, " << bytes << " bytes, alpha " << alpha
              << ", burst " << burst;
        }
      }
    }
  }
}

TEST(BlockRules, FollowTheSquareRoot) {
  // chain, p = 8: 6 + N steps; m = 4 MiB: N = sqrt(6 beta m / alpha) = 35.
  const Rules made = rules_for(Collective::kBroadcast, "chain", 8, line_model(20e-6, 1e-9), 12);
  Layout layout;
  ASSERT_EQ(make_layout(made.program, 4u << 20, 1, layout), Status::kOk);
  EXPECT_GE(layout.blocks, 26u);
  EXPECT_LE(layout.blocks, 48u);
}

// A chain fills without beta with blocks of up to half a burst, so that fewer are faster.
TEST(BlockRules, AreOfHalfABurst) {
  const auto block_of = [](std::uint64_t bytes, std::uint64_t burst) {
    const Rules made =
        rules_for(Collective::kBroadcast, "chain", 8, model_of(50e-6, 80e-9, burst), 12);
    Layout layout;
    EXPECT_EQ(make_layout(made.program, bytes, 1, layout), Status::kOk);
    return layout.block_elements;
  };
  for (const std::uint64_t bytes : {16u << 10, 32u << 10, 64u << 10}) {
    EXPECT_LT(block_of(bytes, 0), 4096u) << bytes;
    EXPECT_GE(block_of(bytes, 10'000), 4096u) << bytes;
    EXPECT_LE(block_of(bytes, 10'000), 5000u) << bytes;
  }
  EXPECT_GT(block_of(8u << 20, 10'000), 10'000u);
}

TEST(BlockRules, AscendFromZeroAndKeepTheRows) {
  const Model model = default_model();
  for (const std::uint32_t rows : {1u, 4u, 12u}) {
    const Rules made = rules_for(Collective::kBroadcast, "chain", 64, model, rows);
    ASSERT_GE(made.rules.size(), 1u);
    EXPECT_LE(made.rules.size(), rows);
    EXPECT_EQ(made.rules.front().from_bytes, 0u);
    for (std::size_t i = 1; i < made.rules.size(); ++i) {
      EXPECT_LT(made.rules[i - 1].from_bytes, made.rules[i].from_bytes);
      EXPECT_LE(made.rules[i].block_bytes, kMaxBlockBytes);
    }
  }
}

TEST(BlockRules, ScheduleWithOneBlockKeepsIt) {
  const Rules made = rules_for(Collective::kBroadcast, "binomial", 8, default_model(), 12);
  ASSERT_EQ(made.rules.size(), 1u);
  EXPECT_EQ(made.rules[0].block_bytes, 0u);
}

}  // namespace
}  // namespace espalier::predict
