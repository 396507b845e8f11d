// Every algorithm, replayed step by step. By default a sample of p in 1..300; all of it with
// ESPALIER_WHOLE=1 (some minutes).

#include "collectives/algorithms/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collectives/algorithms/builder.h"
#include "collectives/algorithms/fractional_tree.h"
#include "collectives/algorithms/replay.h"

namespace espalier {
namespace {

bool whole() {
  const char* value = std::getenv("ESPALIER_WHOLE");
  return value != nullptr && std::strcmp(value, "0") != 0;
}

std::vector<std::uint32_t> sampled_ranks() {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t p = 1; p <= 300; ++p) {
    const bool edge = (p & (p - 1)) == 0 || (p & (p + 1)) == 0 || ((p - 1) & (p - 2)) == 0;
    if (whole() || p <= 24 || edge || p % 37 == 0 || p == 300) ranks.push_back(p);
  }
  return ranks;
}

std::vector<Algorithm> all_algorithms() {
  std::uint32_t count = 0;
  const Algorithm* table = algorithms(count);
  std::vector<Algorithm> anywhere;  // the others: tests/fat_tree
  std::copy_if(table, table + count, std::back_inserter(anywhere),
               [](const Algorithm& one) { return one.where == Where::kAnywhere; });
  return anywhere;
}

bool supports(const Algorithm& algorithm, std::uint32_t p) {
  return std::string(algorithm.name) != "two-tree-mirror" || p % 2 == 1;
}

bool one_block(const Algorithm& algorithm) { return std::string(algorithm.name) == "binomial"; }

// What the algorithm's own file says of its steps: the exact number, or a range.
struct Steps {
  std::int64_t least, most;
};

Steps documented(const Algorithm& algorithm, std::int64_t p, std::int64_t n_blocks) {
  const std::string name = algorithm.name;
  const std::int64_t phases = algorithm.collective == espalier_Collective_ALLREDUCE ? 2 : 1;
  if (p == 1) {
    const std::int64_t segments = name.substr(0, 8) == "two-tree" ? 2 : 1;
    const bool copies = algorithm.collective != espalier_Collective_BROADCAST;
    return copies ? Steps{segments * n_blocks, segments * n_blocks} : Steps{0, 0};
  }
  const std::int64_t log = log2_ceil(static_cast<std::uint32_t>(p));
  if (name == "binomial") return {log, log};
  if (name == "chain") return {phases * (p - 2 + n_blocks), phases * (p - 2 + n_blocks)};
  if (name == "binary") {
    if (p == 2) return {n_blocks, n_blocks};
    std::int64_t depth = 0, reach = 1, before = 0;
    for (; reach < p; ++depth) {
      const std::int64_t next = 1 + reach + (depth == 0 ? 0 : before);
      before = reach;
      reach = next;
    }
    return {depth - 1 + 2 * n_blocks - 1, depth - 1 + 2 * n_blocks - 1};
  }
  if (name.starts_with("fractional")) {  // fractional_test.cc counts for itself
    const bool couples = name == "fractional-simplex";
    if (couples && p == 2) return {n_blocks, n_blocks};
    const auto ranks = static_cast<std::uint32_t>(p);
    const FractionalTree tree(couples ? (ranks + 1) / 2 : ranks, fractional_run({.ranks = ranks}));
    const std::int64_t steps = count_value(tree.steps(), n_blocks);
    return couples ? Steps{2 * steps - 1, 2 * steps} : Steps{steps, steps};
  }
  const std::int64_t h = log2_ceil(static_cast<std::uint32_t>(p + 1));
  return {phases * (2 * h + 2 * n_blocks - 5), phases * (2 * h + 2 * n_blocks - 2)};
}

TEST(Algorithms, ReplayEveryOne) {
  std::mt19937 random(1);
  std::uint64_t replays = 0;
  for (const std::uint32_t p : sampled_ranks()) {
    const std::set<std::uint32_t> roots{0, p > 1 ? 1u : 0u, p / 2, p - 1,
                                        static_cast<std::uint32_t>(random() % p)};
    for (const Algorithm& algorithm : all_algorithms()) {
      if (!supports(algorithm, p)) continue;
      for (const std::uint32_t root : roots) {
        if (algorithm.collective == espalier_Collective_ALLREDUCE && root != 0) continue;
        Group group{.ranks = p, .root = root, .topology_digest = 7};
        static constexpr std::uint32_t kWindows[] = {1, 2, 3, 5, 8, 16};
        group.window = kWindows[random() % 6];
        const replay::Schedule schedule = replay::generate(algorithm, group);
        EXPECT_EQ(schedule.programs[0].needs_commutative,
                  algorithm.collective == espalier_Collective_REDUCE && root != 0 && root != p - 1);
        for (const std::int64_t blocks : {1, 2, 3, 4, 7, 20}) {
          if (one_block(algorithm) && blocks != 1) continue;
          std::int64_t steps = 0;
          ASSERT_EQ(replay::run(schedule, blocks, steps), "") << algorithm.name << " p " << p;
          const Steps expected = documented(algorithm, p, blocks);
          ASSERT_GE(steps, expected.least) << algorithm.name << " p " << p << " N " << blocks;
          ASSERT_LE(steps, expected.most) << algorithm.name << " p " << p << " N " << blocks;
          ++replays;
        }
      }
    }
  }
  RecordProperty("replays", std::to_string(replays));
  std::printf("replayed %llu schedules\n", static_cast<unsigned long long>(replays));
}

// A replay that always passes would prove nothing.
TEST(Algorithms, ReplayNoticesFaults) {
  const Group group{.ranks = 9, .root = 0, .window = 4};
  const Algorithm* algorithm = find_algorithm(espalier_Collective_REDUCE, "two-tree");
  ASSERT_NE(algorithm, nullptr);
  const replay::Schedule good = replay::generate(*algorithm, group);
  std::int64_t steps = 0;
  ASSERT_EQ(replay::run(good, 5, steps), "");
  int changed = 0;
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    for (std::uint32_t at = 0; at < good.programs[rank].actions_count; ++at) {
      replay::Schedule bad = good;
      Action& action = bad.programs[rank].actions[at];
      if (action.kind == espalier_Kind_SEND) {
        action.after += 1;
      } else if (action.kind == espalier_Kind_COMBINE) {
        std::swap(action.a, action.b);
      } else {
        action.t0_ref = action.t0_ref == 1 ? 2 : 1;
      }
      EXPECT_NE(replay::run(bad, 5, steps), "") << "rank " << rank << " action " << at;
      ++changed;
    }
    replay::Schedule bad = good;
    bad.programs[rank].window += 3;
    bool rings = false;
    for (std::uint32_t at = 0; at < good.programs[rank].actions_count; ++at) {
      rings |= good.programs[rank].actions[at].kind == espalier_Kind_RECEIVE;
    }
    if (rings) {
      EXPECT_NE(replay::run(bad, 20, steps), "") << "rank " << rank << " window";
    }
  }
  EXPECT_GT(changed, 30);
}

TEST(Algorithms, Refusals) {
  for (const Algorithm& algorithm : all_algorithms()) {
    Program program;
    const auto status = [&](const Group& group, std::uint32_t me) {
      return algorithm.generate(group, me, program);
    };
    EXPECT_EQ(status({.ranks = 0}, 0), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status({.ranks = 5}, 5), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status({.ranks = 5, .window = 0}, 1), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status({.ranks = kMaxRanks + 1}, 1), Status::kTooLarge) << algorithm.name;
    EXPECT_EQ(program.actions_count, 0) << algorithm.name;
    const bool rooted = algorithm.collective != espalier_Collective_ALLREDUCE;
    EXPECT_EQ(status({.ranks = 5, .root = 5}, 1), rooted ? Status::kBadArgument : Status::kOk);
    const BlockRule bad[] = {{1, 100}}, twice[] = {{0, 100}, {0, 200}};
    if (one_block(algorithm)) continue;
    EXPECT_EQ(status({.ranks = 5, .blocks = bad, .blocks_count = 1}, 1), Status::kBadArgument);
    EXPECT_EQ(status({.ranks = 5, .blocks = twice, .blocks_count = 2}, 1), Status::kBadArgument);
    EXPECT_EQ(status({.ranks = 5, .blocks = twice, .blocks_count = 0}, 1), Status::kBadArgument);
    const std::vector<BlockRule> many(100);
    EXPECT_EQ(status({.ranks = 5, .blocks = many.data(), .blocks_count = 100}, 1),
              Status::kTooLarge);
  }
  Program program;
  EXPECT_EQ(find_algorithm(espalier_Collective_BROADCAST, "two-tree-mirror")
                ->generate({.ranks = 8}, 0, program),
            Status::kUnsupported);
  EXPECT_EQ(find_algorithm(espalier_Collective_REDUCE, "binomial"), nullptr);
  EXPECT_EQ(find_algorithm(espalier_Collective_BROADCAST, "two-tre"), nullptr);
}

TEST(Algorithms, NamesOfCollectives) {
  for (const Algorithm& algorithm : all_algorithms()) {
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name)->generate, algorithm.generate);
    Collective collective = espalier_Collective_COLLECTIVE_NONE;
    EXPECT_TRUE(parse_collective(collective_name(algorithm.collective), collective));
    EXPECT_EQ(collective, algorithm.collective);
  }
  Collective collective = espalier_Collective_COLLECTIVE_NONE;
  EXPECT_FALSE(parse_collective("Broadcast", collective));
}

// Whatever decides the programs decides the digest; who asks does not.
TEST(Algorithms, ScheduleDigest) {
  const BlockRule other[] = {{0, 100}};
  const BlockRule finer[] = {{0, 100}, {1000, 200}};
  const std::vector<Group> groups{
      {.ranks = 5},
      {.ranks = 6},
      {.ranks = 5, .root = 1},
      {.ranks = 5, .topology_digest = 1},
      {.ranks = 5, .window = 9},
      {.ranks = 5, .blocks = other, .blocks_count = 1},
      {.ranks = 5, .blocks = finer, .blocks_count = 2},
  };
  std::set<std::uint64_t> digests;
  std::size_t schedules = 0;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (one_block(algorithm) || algorithm.collective == espalier_Collective_ALLREDUCE) continue;
    for (const Group& group : groups) {
      if (!supports(algorithm, group.ranks)) continue;
      Program one, two;
      ASSERT_EQ(algorithm.generate(group, 0, one), Status::kOk);
      ASSERT_EQ(algorithm.generate(group, 4, two), Status::kOk);
      EXPECT_EQ(one.schedule_digest, two.schedule_digest);
      digests.insert(one.schedule_digest);
      ++schedules;
    }
  }
  EXPECT_EQ(digests.size(), schedules);
}

std::size_t descriptor_bytes(const Algorithm& algorithm, const Group& group, std::uint32_t rank) {
  static std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  Program program;
  EXPECT_EQ(algorithm.generate(group, rank, program), Status::kOk);
  std::size_t written = 0;
  EXPECT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
  return written;
}

// Broadcasts, but for the binomial tree's many sends, fit 256 bytes at any size. Combines name
// three places each and an allreduce has two phases: these need more. A fractional tree has an
// action or more for each block of a run.
std::size_t most_bytes(const Algorithm& algorithm) {
  if (std::string(algorithm.name) == "binomial") return 600;
  if (std::string(algorithm.name).starts_with("fractional")) {
    return algorithm.collective == espalier_Collective_REDUCE ? 1300 : 700;
  }
  if (algorithm.collective == espalier_Collective_BROADCAST) return 256;
  return algorithm.collective == espalier_Collective_REDUCE ? 336 : 424;
}

TEST(Algorithms, DescriptorsAreSmall) {
  for (const Algorithm& algorithm : all_algorithms()) {
    for (const std::uint32_t p : {16u, 17u, 100000u, 100001u}) {
      if (!supports(algorithm, p)) continue;
      std::size_t longest = 0;
      for (const std::uint32_t root : {0u, p - 1, p / 2}) {
        const Group group{.ranks = p, .root = root, .topology_digest = ~0ull, .window = 16};
        for (std::uint32_t rank = 0; rank < p; rank += p < 100 || whole() ? 1 : 53) {
          longest = std::max(longest, descriptor_bytes(algorithm, group, rank));
        }
      }
      std::printf("%s %s p %u: at most %zu bytes\n", collective_name(algorithm.collective),
                  algorithm.name, p, longest);
      EXPECT_LE(longest, most_bytes(algorithm)) << algorithm.name;
    }
  }
}

// Very many ranks: who sends to me knows it, for a sample of ranks.
TEST(Algorithms, NeighboursAgreeAtAnySize) {
  std::mt19937 random(2);
  for (const Algorithm& algorithm : all_algorithms()) {
    for (const std::uint32_t p : {100000u, 1u << 20, (1u << 20) + 1, 3000001u, kMaxRanks - 1}) {
      if (!supports(algorithm, p)) continue;
      const Group group{.ranks = p, .root = static_cast<std::uint32_t>(random() % p)};
      for (int sample = 0; sample < 200; ++sample) {
        const auto me = static_cast<std::uint32_t>(random() % p);
        const replay::Neighbours result = replay::neighbours(algorithm, group, me);
        ASSERT_EQ(result.error, "") << algorithm.name << " p " << p << " rank " << me;
        ASSERT_GT(result.transfers, 0) << algorithm.name << " p " << p << " rank " << me;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
