// Predictions of small schedules against values computed by hand. tests/predict compares
// predictions with simulation.

#include "collectives/predict/predict.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/schedule/expand.h"

namespace espalier::predict {
namespace {

constexpr BlockRule kBlocks = {0, 1000};

struct Schedule {
  std::unique_ptr<topology::Topology> topology;
  Programs programs;
};

Schedule make(const char* spec, Collective collective, const char* name,
              std::uint32_t run_length = 0) {
  Schedule schedule{or_throw(topology::parse(spec)), {}};
  CollectiveParameters parameters{.ranks = schedule.topology->ranks(),
                                  .topology_digest = schedule.topology->digest(),
                                  .blocks = &kBlocks,
                                  .blocks_count = 1,
                                  .run_length = run_length};
  schedule.programs = must_generate(collective, name, parameters);
  return schedule;
}

Picoseconds predicted(const Schedule& schedule, std::uint64_t bytes, const Model& model,
                      Conditions conditions = {}) {
  Layout layout;
  EXPECT_EQ(make_layout(schedule.programs[0], bytes, 1, layout), Status::kOk);
  return predict(*schedule.topology, schedule.programs, layout, model, conditions).time;
}

// alpha 1 us, beta 1 ns/B: a block of 1000 bytes takes 2 us.
constexpr Picoseconds kBlockTime = 2'000'000;
Model plain() { return line_model(1e-6, 1e-9); }

TEST(Predict, ChainTakesItsSteps) {
  const Schedule chain = make("complete:5", Collective::kBroadcast, "chain");
  EXPECT_EQ(predicted(chain, 1000, plain()), 4 * kBlockTime);
  EXPECT_EQ(predicted(chain, 10'000, plain()), 13 * kBlockTime);
  // Extrapolated from a few blocks.
  EXPECT_EQ(predicted(chain, 10'000'000, plain()), 10'003 * kBlockTime);
}

TEST(Predict, SharedLinksTakeLonger) {
  // On a mesh of one row, rank 0 reaches rank 3 over the links of all others.
  const Schedule complete = make("complete:4", Collective::kAllToAll, "pairwise");
  const Schedule row = make("mesh:1x4", Collective::kAllToAll, "pairwise");
  EXPECT_EQ(predicted(complete, 1000, plain()), 3 * kBlockTime);
  EXPECT_GE(predicted(row, 1000, plain()), 4 * kBlockTime);
  Conditions hops;
  hops.switching = Switching::kStoreAndForward;
  EXPECT_GT(predicted(row, 1000, plain(), hops), predicted(complete, 1000, plain(), hops));
}

TEST(Predict, LatencyOverheadAndGammaAddUp) {
  const Schedule two = make("complete:2", Collective::kBroadcast, "chain");
  Model model = plain();
  model.links[0].lambda_permille = 2500;
  EXPECT_EQ(predicted(two, 1000, model), kBlockTime * 5 / 2);
  model = plain();
  model.overhead_ps = 300'000;  // at the sender, and at the receiver
  EXPECT_EQ(predicted(two, 1000, model), kBlockTime + 600'000);
  model.overhead_fs = 50'000;
  EXPECT_EQ(predicted(two, 1000, model), kBlockTime + 700'000);
  model.overhead_fs = 0;
  model.cores = 1;
  Conditions shared;
  shared.ranks_on_host = 2;
  EXPECT_EQ(predicted(two, 1000, model, shared), kBlockTime + 600'000) << "one after the other";
  model.wake_ps = 40'000;
  EXPECT_EQ(predicted(two, 1000, model, shared), kBlockTime + 640'000);
  EXPECT_EQ(predicted(two, 1000, model), kBlockTime + 600'000) << "each on a host of its own";
  model.wake_ps = 10 * kBlockTime;
  shared.ranks_on_host = 4;
  model.overhead_ps = 0;
  EXPECT_EQ(predicted(make("complete:4", Collective::kGather, "linear"), 1000, model, shared),
            11 * kBlockTime)
      << "one turn for all that came";
  const Schedule bruck = make("complete:2", Collective::kAllToAll, "bruck");
  model = plain();
  EXPECT_EQ(predicted(bruck, 1000, model), kBlockTime);
  model.copy_fs = 100'000;  // before the message, and twice after it
  EXPECT_EQ(predicted(bruck, 1000, model), kBlockTime + 300'000);
  const Schedule reduce = make("complete:2", Collective::kReduce, "chain");
  model = plain();
  model.gamma_fs = 500'000;
  model.combines.push_back({Op::kSum, Type::kF32, 700'000, {}});
  EXPECT_EQ(predicted(reduce, 1000, model), kBlockTime + 500'000);
  Conditions sum{.op = {.op = Op::kSum, .type = Type::kF32}};
  EXPECT_EQ(predicted(reduce, 1000, model, sum), kBlockTime + 700'000);
}

// alpha 1 us, beta 4 ns/B: a bucket of 1500 bytes takes up 250 bytes while an empty message passes.
TEST(Predict, ABurstPassesWithoutBeta) {
  const Schedule two = make("complete:2", Collective::kBroadcast, "chain");
  Model model = line_model(1e-6, 4e-9);
  EXPECT_EQ(predicted(two, 3000, model), 15'000'000u);
  model.links[0].burst_bytes = 1500;
  EXPECT_EQ(predicted(two, 1000, model), 1'000'000u);
  EXPECT_EQ(predicted(two, 2000, model), 3'000'000u);
  EXPECT_EQ(predicted(two, 3000, model), 7'000'000u);
  EXPECT_EQ(predicted(two, 1'000'000, model), 1'000'000u + (1'000'000 - 1500) * 4'000u);
  // One bucket for all messages of an end: of the root's sends, and of the root's receives.
  EXPECT_EQ(predicted(make("complete:3", Collective::kScatter, "linear"), 1000, model), 3'000'000u);
  EXPECT_EQ(predicted(make("complete:3", Collective::kGather, "linear"), 1000, model), 3'000'000u);
}

// By steps, half a bucket passes without beta in each step that fills a pipeline or is in none; of
// what the pipeline carries, one bucket. alpha 1 us, beta 4 ns/B, bucket 1000 bytes.
TEST(Predict, ABurstShortensSteps) {
  Model model = line_model(1e-6, 4e-9);
  const auto steps = [&model](const Schedule& schedule, std::uint64_t bytes) {
    Layout layout;
    EXPECT_EQ(make_layout(schedule.programs[0], bytes, 1, layout), Status::kOk);
    return by_steps(
        static_cast<std::uint32_t>(schedule.programs.size()),
        [&](std::uint32_t node) -> const Program& { return schedule.programs[node]; }, layout,
        model.links[0]);
  };
  const Schedule chain = make("complete:4", Collective::kBroadcast, "chain");
  const Schedule binomial = make("complete:4", Collective::kBroadcast, "binomial");
  EXPECT_EQ(steps(chain, 10'000), 12 * 5'000'000u) << "10 blocks of 1000 bytes";
  EXPECT_EQ(steps(binomial, 1000), 2 * 5'000'000u);
  model.links[0].burst_bytes = 1000;
  EXPECT_EQ(steps(chain, 10'000), 10 * 5'000'000u - 4'000'000u + 2 * 3'000'000u);
  EXPECT_EQ(steps(binomial, 1000), 2 * 3'000'000u);
  EXPECT_EQ(steps(binomial, 500), 2 * 1'000'000u);
}

TEST(Predict, OverheadBoundsThePipeline) {
  const Schedule chain = make("complete:3", Collective::kBroadcast, "chain");
  Model model = plain();
  model.overhead_ps = 3'000'000;  // longer than a block: the middle rank handles each block twice
  EXPECT_NEAR(static_cast<double>(predicted(chain, 1'000'000, model)), 1000 * 6e6, 0.01 * 6e9);
}

// Four messages at once: the last one leaves after as many sends as ranks share a processor, and
// the first is received when it comes.
TEST(Predict, RanksThatShareProcessorsWaitForThem) {
  const Schedule swap = make("complete:4", Collective::kAllreduce, "combine");
  Model model = plain();
  model.overhead_ps = 300'000;
  EXPECT_EQ(predicted(swap, 1000, model), 2 * (kBlockTime + 600'000));
  Conditions shared;
  shared.ranks_on_host = 4;
  model.cores = 4;
  EXPECT_EQ(predicted(swap, 1000, model, shared), 2 * (kBlockTime + 600'000));
  model.cores = 2;
  EXPECT_EQ(predicted(swap, 1000, model, shared), 2 * (kBlockTime + 3 * 300'000));
  model.cores = 1;
  EXPECT_EQ(predicted(swap, 1000, model, shared), 2 * (kBlockTime + 5 * 300'000));
  shared.ranks_on_host = 2;  // two hosts
  EXPECT_EQ(predicted(swap, 1000, model, shared), 2 * (kBlockTime + 3 * 300'000));
  const Schedule hosts = make("hosts:2x2", Collective::kAllreduce, "combine");
  EXPECT_EQ(predicted(hosts, 1000, model), predicted(hosts, 1000, model, shared))
      << "the topology says which ranks share a host";
}

TEST(Predict, LongReplaysGoByStepsAndSaySo) {
  const Schedule chain = make("complete:5", Collective::kBroadcast, "chain");
  Layout layout;
  ASSERT_EQ(make_layout(chain.programs[0], 10'000, 1, layout), Status::kOk);
  Conditions none;
  none.max_instances = 1;
  const Prediction found = predict(*chain.topology, chain.programs, layout, plain(), none);
  EXPECT_TRUE(found.is_by_steps);
  EXPECT_EQ(found.time, 13 * kBlockTime);
}

// A fractional tree has 2r+1 actions per rank, each for every r-th block. The blocks that they move
// decide whether it is replayed, and not the product of actions and blocks.
TEST(Predict, CountsTheInstancesOfAnAction) {
  const Schedule tree = make("complete:40", Collective::kBroadcast, "fractional");
  for (const std::int64_t blocks : {1, 7, 100, 1000}) {
    std::uint64_t moved = 0, steps = 0;
    for (const Program& program : tree.programs) {
      moved += expand(program, blocks).size();
      steps += static_cast<std::uint64_t>(phase_steps(program, blocks));
    }
    EXPECT_GE(instances(tree.programs, blocks), moved + steps);
    if (blocks < 100) continue;
    EXPECT_LE(instances(tree.programs, blocks), 2 * moved + steps) << blocks;
  }
}

// A deep tree fills for more steps than it has blocks in a short replay.
TEST(Predict, DeepPipelinesFillBeforeTheyAreMeasured) {
  const Schedule tree = make("complete:300", Collective::kBroadcast, "fractional", 24);
  Layout layout;
  ASSERT_EQ(make_layout(tree.programs[0], 1000 * 1000, 1, layout), Status::kOk);
  ASSERT_EQ(layout.blocks, 1000u);
  Conditions all;
  all.max_instances = 1 << 22;
  const auto whole = replay(*tree.topology, tree.programs, layout, plain(), all);
  ASSERT_TRUE(whole);
  EXPECT_NEAR(static_cast<double>(predicted(tree, 1000 * 1000, plain())),
              static_cast<double>(*whole), 0.02 * static_cast<double>(*whole));
}

TEST(Predict, StepsWithLongMessagesTakeLonger) {
  const Schedule scatter = make("complete:8", Collective::kScatter, "binomial");
  // 4, 2 and 1 parts.
  EXPECT_EQ(predicted(scatter, 1000, plain()), 3 * 1'000'000u + 7 * 1'000'000u);
}

}  // namespace
}  // namespace espalier::predict
