// Collectives with another count for each rank: correct results of every algorithm, refusals.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "collectives/simulation/testing/job_cluster.h"

namespace espalier::testing {
namespace {

using Vector = std::vector<std::uint64_t>;

// The collectives that take a count for each rank.
constexpr Collective kPerRank[] = {Collective::kScatter, Collective::kGather,
                                   Collective::kAllgather, Collective::kReduceScatter,
                                   Collective::kAllToAll};

// Vectors of `entries` counts: equal, one zero, all but one zero, all zero, random, one huge.
std::vector<Vector> count_vectors(std::uint64_t entries, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Vector> all(6, Vector(entries, 7));
  all[1][random() % entries] = 0;
  all[2].assign(entries, 0);
  all[2][random() % entries] = 33;
  all[3].assign(entries, 0);
  for (std::uint64_t& count : all[4]) count = random() % 40;
  for (std::uint64_t& count : all[5]) count = random() % 3;
  all[5][random() % entries] = 400;
  return all;
}

Job job_of(const Algorithm& algorithm, unsigned seed) {
  return {.collective = algorithm.collective,
          .algorithm = algorithm.name,
          .op = {.op = Op::kSum, .type = seed % 2 == 0 ? Type::kI32 : Type::kU8},
          .seed = seed};
}

JobCluster::Options options_of(unsigned seed) {
  JobCluster::Options options;
  options.model.poison = true;
  options.model.eager_bytes = seed % 3 == 0 ? 100'000 : 60;
  options.model.jitter = seed % 2 == 0 ? 3.0 : 0.0;
  options.model.seed = seed;
  options.config.check_blocks = seed % 4 == 0;
  options.unwilling = seed % 3 == 1;
  return options;
}

// Runs all vectors by the programs, one after the other.
void run_vectors(const Programs& programs, Job job, unsigned seed, bool in_place) {
  const std::uint32_t ranks = programs[0].ranks;
  std::vector<Job> jobs;
  for (const Vector& counts : count_vectors(unequal_entries(job.collective, ranks), seed)) {
    job.counts = counts;
    job.programs = &programs;
    job.in_place = in_place;
    jobs.push_back(job);
  }
  // A number for all between them: nothing of the vectors remains.
  job.counts.clear();
  job.count = 5;
  jobs.insert(jobs.begin() + 3, job);
  JobCluster cluster(programs, options_of(seed));
  cluster.give_all(jobs);
  cluster.drive();
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    ASSERT_EQ(cluster.status(node), Status::kOk)
        << describe(jobs[std::min(cluster.done(node), jobs.size() - 1)], ranks) << " node " << node;
    ASSERT_EQ(cluster.done(node), jobs.size());
  }
}

// Several numbers of ranks, fat trees, clusters of hosts, meshes or tori.
std::vector<CollectiveParameters> networks_of(Where where) {
  constexpr std::uint32_t kTrees[][2] = {{2, 1}, {2, 3}, {3, 2}};  // arity, height
  constexpr std::uint32_t kShapes[][2] = {{1, 1}, {1, 3}, {3, 1}, {2, 2}, {2, 3}, {3, 2}};
  std::vector<CollectiveParameters> all;
  CollectiveParameters parameters;
  if (where == Where::kAnywhere) {
    for (const std::uint32_t ranks : {1u, 2u, 3u, 5u, 8u}) {
      parameters.ranks = ranks;
      all.push_back(parameters);
    }
  } else if (where == Where::kFatTree) {
    for (const auto& [arity, height] : kTrees) {
      parameters.arity = arity;
      parameters.height = height;
      parameters.ranks = 1;
      for (std::uint32_t level = 0; level < height; ++level) parameters.ranks *= arity;
      all.push_back(parameters);
    }
  } else if (where == Where::kTorus) {
    static constexpr std::uint32_t kTori[][3] = {{1, 1, 4}, {1, 3, 2}, {2, 2, 3}};
    for (const std::uint32_t(&torus)[3] : kTori) {
      parameters.grid = torus;
      parameters.dimensions = 3;
      parameters.wraps = true;
      parameters.ranks = torus[0] * torus[1] * torus[2];
      all.push_back(parameters);
    }
  } else {
    for (const auto& [many, each] : kShapes) {
      const bool hosts = where == Where::kHosts;
      (hosts ? parameters.hosts : parameters.rows) = many;
      (hosts ? parameters.host_ranks : parameters.columns) = each;
      parameters.ranks = many * each;
      all.push_back(parameters);
    }
  }
  return all;
}

// Calls use(algorithm, parameters, programs) for every algorithm of the collectives, for several
// networks, roots and blocks. False: stop.
template <typename Use>
void for_each_case(Use use) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!counts_per_rank(algorithm.collective)) continue;
    for (CollectiveParameters each : networks_of(algorithm.where)) {
      for (const std::uint32_t block_bytes : {0u, 16u}) {
        const BlockRule blocks = {0, block_bytes};
        each.blocks = &blocks;
        each.blocks_count = 1;
        each.root = has_root(algorithm.collective) ? each.ranks / 2 : 0;
        const Programs programs = programs_of(algorithm, each);
        if (!programs.empty()) use(algorithm, each, programs);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

bool takes_counts(const Programs& programs) {
  SlotGroups groups;
  bool all = true;
  for (const Program& program : programs) all = all && takes_unequal_counts(program, groups);
  return all;
}

TEST(Counts, EveryAlgorithmDeliversEveryVector) {
  for (const bool in_place : {false, true}) {
    unsigned seed = in_place ? 100 : 0;
    for_each_case(
        [&](const Algorithm& algorithm, const CollectiveParameters&, const Programs& programs) {
          if (in_place ? algorithm.collective == Collective::kAllToAll : !takes_counts(programs))
            return;
          Job job = job_of(algorithm, ++seed);
          job.root = programs[0].root;
          run_vectors(programs, job, seed, in_place);
        });
  }
}

// No algorithm falls out unnoticed: exactly the all-to-alls that pass parts on have no lengths.
TEST(Counts, OnlyTheAllToAllsThatPassPartsOnAreRefused) {
  for_each_case([](const Algorithm& algorithm, const CollectiveParameters& parameters,
                   const Programs& programs) {
    const bool refused =
        algorithm.collective == Collective::kAllToAll && parameters.ranks > 1 &&
        (algorithm.where == Where::kFatTree || std::string(algorithm.name) == "bruck");
    EXPECT_EQ(takes_counts(programs), !refused) << collective_name(algorithm.collective) << " "
                                                << algorithm.name << " p " << parameters.ranks;
  });
}

// In lock step every message of a step arrives in it, those of 0 bytes too. An all-to-all has none
// of those, so it ends with the step of its last message.
TEST(Counts, StepsAreThoseOfEqualCounts) {
  for_each_case([](const Algorithm& algorithm, const CollectiveParameters& parameters,
                   const Programs& programs) {
    if (!takes_counts(programs)) return;
    Job job = job_of(algorithm, 1);
    job.root = parameters.root;
    job.count = 9;
    const sim::Model model = model_for(programs[0]);
    const sim::RunResult equal = run_in_lock_step(programs, job, model);
    const std::uint64_t entries = unequal_entries(algorithm.collective, parameters.ranks);
    job.counts.assign(entries, 0);
    job.counts[entries / 2] = 9;
    const sim::RunResult unequal = run_in_lock_step(programs, job, model);
    if (algorithm.collective == Collective::kAllToAll) {
      EXPECT_LE(unequal.steps, equal.steps) << describe(job, parameters.ranks);
    } else {
      EXPECT_EQ(unequal.steps, equal.steps) << describe(job, parameters.ranks);
    }
  });
}

// ---- refusals ----

class CountsStart : public ::testing::Test {
 protected:
  // Starts the machine of a rank of the programs.
  Status start(const Programs& programs, ElementCounts counts, std::uint32_t rank = 0,
               bool in_place = false) {
    sim::Network network(model_for(programs[0]), sim::complete_links(programs[0].ranks));
    Machine machine;
    EXPECT_EQ(machine.init(network.endpoint(rank), MachineConfig()), Status::kOk);
    return machine.start(programs[rank],
                         {memory, memory + (in_place ? 0 : 4096), memory + 8192, 4096},
                         {.op = Op::kSum, .type = Type::kU8}, counts);
  }
  static Programs make(Collective collective, const char* algorithm, std::uint32_t ranks = 4) {
    const BlockRule blocks = {0, 0};
    return programs_of(*find_algorithm(collective, algorithm),
                       {.ranks = ranks, .blocks = &blocks, .blocks_count = 1});
  }

  alignas(16) std::uint8_t memory[12288] = {};
  std::uint64_t room[64] = {};
};

TEST_F(CountsStart, AreRefusedBeforeAnythingStarts) {
  const Programs ring = make(Collective::kAllgather, "ring");
  const Vector four = {1, 2, 3, 4};
  EXPECT_EQ(start(ring, {four.data(), 4, room}), Status::kOk);
  EXPECT_EQ(start(ring, {four.data(), 3, room}), Status::kBadArgument);
  EXPECT_EQ(start(ring, {four.data(), 5, room}), Status::kBadArgument);
  EXPECT_EQ(start(ring, {nullptr, 4, room}), Status::kBadArgument);
  EXPECT_EQ(start(ring, {four.data(), 4, nullptr}), Status::kBadArgument);
  const Vector long_ones[] = {{0, kMaxMessageBytes / 4 + 1, 0, 0}, {~0ull, ~0ull, ~0ull, ~0ull}};
  for (const Vector& counts : long_ones) {
    EXPECT_EQ(start(ring, {counts.data(), 4, room}), Status::kTooLarge);
  }
  const Programs chain = make(Collective::kAllreduce, "chain");
  EXPECT_EQ(start(chain, {four.data(), 4, room}), Status::kBadArgument);
  const Programs barrier = make(Collective::kBarrier, "dissemination");
  EXPECT_EQ(start(barrier, {four.data(), 4, room}), Status::kBadArgument);
  const Programs pairwise = make(Collective::kAllToAll, "pairwise");
  const Vector sixteen(16, 3);
  EXPECT_EQ(start(pairwise, {sixteen.data(), 4, room}), Status::kBadArgument);
  EXPECT_EQ(start(pairwise, {sixteen.data(), 16, room}), Status::kOk);
  EXPECT_EQ(start(pairwise, {sixteen.data(), 16, room}, 0, true), Status::kBadArgument);
}

// Scratch is checked against the longest part, not against the part of this rank.
TEST_F(CountsStart, ScratchHoldsTheLongestPart) {
  const Programs scatter = make(Collective::kScatter, "binomial");
  ASSERT_GT(scatter[2].scratch_blocks, 0u);
  Vector counts = {1, 1, 1, 4096};
  EXPECT_EQ(start(scatter, {counts.data(), 4, room}, 2), Status::kBadArgument);
  counts[3] = 4096 / scatter[2].scratch_blocks;
  EXPECT_EQ(start(scatter, {counts.data(), 4, room}, 2), Status::kOk);
}

// The premise of slot groups: this scatter's rank 2 receives two parts into slots 0 and 1, and
// reads the first of them in slot 1. Without the check in takes_unequal_counts() it would run, and
// read bytes of both.
TEST_F(CountsStart, PartsWithoutACommonOrderAreRefused) {
  Programs scatter = make(Collective::kScatter, "binomial");
  Program& program = scatter[2];
  SlotGroups groups;
  ASSERT_TRUE(takes_unequal_counts(program, groups));
  ASSERT_EQ(groups.count, 1u);
  EXPECT_EQ(groups.groups[0].first_segment, 3u) << "slot 0 has segment 2";
  const std::uint32_t one_more = program.indices_count;
  program.indices[program.indices_count++].base = 1;
  bool changed = false;
  for (std::uint32_t k = 0; k < program.actions_count && !changed; ++k) {
    Action& action = program.actions[k];
    if (action.kind != ActionKind::kCopy || action.a.buffer != Buffer::kScratch) continue;
    action.a.slot_ref = one_more;
    changed = true;
  }
  ASSERT_TRUE(changed);
  ASSERT_EQ(check_program(program), Status::kOk);
  EXPECT_FALSE(takes_unequal_counts(program, groups));
  const Vector counts = {1, 2, 3, 4};
  Layout layout;
  EXPECT_EQ(make_layout(program, {counts.data(), 4, room}, 1, layout), Status::kUnsupported);
  EXPECT_EQ(make_layout(program, 4, 1, layout), Status::kOk) << "with equal counts it runs";
}

// The premise of an all-to-all: a part in scratch, or one that goes on from an output, has no known
// length.
TEST_F(CountsStart, AnAllToAllThatPassesPartsOnIsRefused) {
  const Programs pairwise = make(Collective::kAllToAll, "pairwise");
  SlotGroups groups;
  for (const bool source : {false, true}) {
    OwnedProgram program(pairwise[1]);
    ASSERT_TRUE(takes_unequal_counts(program, groups));
    program.scratch_blocks = 1;
    for (std::uint32_t k = 0; k < program.actions_count; ++k) {
      Action& action = program.actions[k];
      if (source && action.has_a) action.a.buffer = Buffer::kOutput;
      if (!source && action.has_into) action.into.buffer = Buffer::kScratch;
    }
    EXPECT_FALSE(takes_unequal_counts(program, groups));
  }
}

// A ring of six ranks that send 9 elements to the right and 4 to the left, in blocks of 3.
TEST_F(CountsStart, EmptyPartsOfAnAllToAllAreNotSent) {
  constexpr std::uint32_t kRanks = 6;
  const BlockRule blocks = {0, 16};
  CollectiveParameters parameters{.ranks = kRanks, .blocks = &blocks, .blocks_count = 1};
  const Algorithm& algorithm = *find_algorithm(Collective::kAllToAll, "pairwise");
  const Programs programs = programs_of(algorithm, parameters);
  Job job = job_of(algorithm, 2);
  job.programs = &programs;
  job.counts.assign(std::size_t{kRanks} * kRanks, 0);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    job.counts[rank * kRanks + (rank + 1) % kRanks] = 9;
    job.counts[rank * kRanks + (rank + kRanks - 1) % kRanks] = 4;
  }
  JobCluster cluster(programs, options_of(2));
  cluster.give_all({job, job});
  cluster.drive();
  for (std::uint32_t node = 0; node < kRanks; ++node) {
    EXPECT_EQ(cluster.done(node), 2u) << cluster.wrong(node);
  }
  EXPECT_EQ(cluster.network().blocks(), 2 * kRanks * (3 + 2));
}

TEST(Counts, TheListOfCollectivesIsComplete) {
  for (std::int64_t k = 0; k <= _espalier_Collective_MAX; ++k) {
    const auto collective = static_cast<Collective>(k);
    const bool listed =
        std::find(std::begin(kPerRank), std::end(kPerRank), collective) != std::end(kPerRank);
    EXPECT_EQ(counts_per_rank(collective), listed) << k;
  }
}

}  // namespace
}  // namespace espalier::testing
