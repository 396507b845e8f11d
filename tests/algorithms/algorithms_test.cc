// Replays every algorithm step by step. By default a sample of p in 1..300; the whole range with
// ESPALIER_WHOLE=1 (some minutes).

#include "espalier/collectives/algorithms/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/build/builder.h"
#include "collectives/schedule/expand.h"
#include "tests/algorithms/expected_steps.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

std::vector<std::uint32_t> sampled_ranks() {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t p = 1; p <= 300; ++p) {
    const bool edge = (p & (p - 1)) == 0 || (p & (p + 1)) == 0 || ((p - 1) & (p - 2)) == 0;
    if (small_sample() && (p > 65 || (p > 12 && !edge))) continue;
    if (whole() || p <= 24 || edge || p % 37 == 0 || p == 100 || p == 300) ranks.push_back(p);
  }
  return ranks;
}

std::vector<Algorithm> all_algorithms() {
  std::vector<Algorithm> anywhere;  // the other algorithms: tests/fat_tree
  for (const Algorithm& one : algorithms()) {
    if (one.where == Where::kAnywhere) anywhere.push_back(one);
  }
  return anywhere;
}

// Whether all ranks together make about p^2 transfers per block of the whole message.
bool takes_p_squared(const Algorithm& algorithm) {
  return in_rounds(algorithm) || std::string(algorithm.name) == "scatter-allgather";
}

TEST(Algorithms, ReplayEveryOne) {
  std::mt19937 random(1);
  std::uint64_t replays = 0;
  for (const std::uint32_t p : sampled_ranks()) {
    const std::set<std::uint32_t> roots{0, p > 1 ? 1u : 0u, p / 2, p - 1,
                                        static_cast<std::uint32_t>(random() % p)};
    for (const Algorithm& algorithm : all_algorithms()) {
      if (!supports(algorithm, p)) continue;
      if (takes_p_squared(algorithm) && p > 100 && !whole()) continue;
      for (const std::uint32_t root : roots) {
        if (!has_root(algorithm.collective) && root != 0) continue;
        CollectiveParameters parameters{.ranks = p, .root = root, .topology_digest = 7};
        static constexpr std::uint32_t kWindows[] = {1, 2, 3, 5, 8, 16};
        parameters.window = kWindows[random() % 6];
        const Programs programs = or_throw(replay::generate(algorithm, parameters));
        EXPECT_EQ(programs[0].needs_commutative, needs_commutative(algorithm, parameters));
        std::int64_t last = 0;
        for (const std::int64_t wanted : {1, 2, 3, 4, 7, 20}) {
          const std::int64_t blocks = allowed_blocks(programs[0], wanted);
          if (blocks == std::exchange(last, blocks)) continue;
          if (one_block(algorithm) && blocks != 1) continue;
          if (takes_p_squared(algorithm) && p > 24 && blocks > 2 && !whole()) continue;
          const auto steps = replay::run(programs, blocks);
          ASSERT_EQ(message_of(steps), "") << algorithm.name << " p " << p;
          const Steps expected = expected_steps(algorithm, parameters, blocks);
          ASSERT_GE(*steps, expected.least) << algorithm.name << " p " << p << " N " << blocks;
          ASSERT_LE(*steps, expected.most) << algorithm.name << " p " << p << " N " << blocks;
          ++replays;
        }
      }
    }
  }
  RecordProperty("replays", std::to_string(replays));
  std::printf("replayed %llu schedules\n", static_cast<unsigned long long>(replays));
}

// [SST07] section 2.3, simulated for 30 ranks: N = 2, 4, 8, 16 blocks of both trees together.
TEST(Algorithms, ScanStepsOfThePrototype) {
  const Algorithm* scan = find_algorithm(Collective::kScan, "two-tree");
  const Programs programs = or_throw(replay::generate(*scan, {.ranks = 30}));
  for (const auto& [blocks, wanted] : {std::pair{1, 14}, {2, 18}, {4, 26}, {8, 42}}) {
    EXPECT_EQ(or_throw(replay::run(programs, blocks)), wanted);
  }
}

// Checks the checker: a replay that always passes would prove nothing.
TEST(Algorithms, ReplayNoticesFaults) {
  const CollectiveParameters parameters{.ranks = 9, .root = 0, .window = 4};
  const Algorithm* algorithm = find_algorithm(Collective::kReduce, "two-tree");
  ASSERT_NE(algorithm, nullptr);
  const Programs good = or_throw(replay::generate(*algorithm, parameters));
  ASSERT_EQ(message_of(replay::run(good, 5)), "");
  int changed = 0;
  for (std::uint32_t rank = 0; rank < parameters.ranks; ++rank) {
    for (std::uint32_t at = 0; at < good[rank].actions_count; ++at) {
      Programs bad = good;
      Action& action = bad[rank].actions[at];
      if (action.kind == ActionKind::kSend) {
        action.after += 1;
      } else if (action.kind == ActionKind::kCombine) {
        std::swap(action.a, action.b);
      } else {
        action.t0_ref = action.t0_ref == 1 ? 2 : 1;
      }
      EXPECT_FALSE(replay::run(bad, 5)) << "rank " << rank << " action " << at;
      ++changed;
    }
    Programs bad = good;
    bad[rank].window += 3;
    bool rings = false;
    for (std::uint32_t at = 0; at < good[rank].actions_count; ++at) {
      rings |= good[rank].actions[at].kind == ActionKind::kReceive;
    }
    if (rings) {
      EXPECT_FALSE(replay::run(bad, 20)) << "rank " << rank << " window";
    }
  }
  EXPECT_GT(changed, 30);
}

TEST(Algorithms, Refusals) {
  for (const Algorithm& algorithm : all_algorithms()) {
    Program program;
    const auto status = [&](const CollectiveParameters& parameters, std::uint32_t me) {
      return algorithm.generate(parameters, me, program);
    };
    EXPECT_EQ(status({.ranks = 0}, 0), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status({.ranks = 5}, 5), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status({.ranks = 5, .window = 0}, 1), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status({.ranks = kMaxRanks + 1}, 1), Status::kTooLarge) << algorithm.name;
    EXPECT_EQ(status({.ranks = ~0u}, 1), Status::kTooLarge) << algorithm.name;
    EXPECT_EQ(program.actions_count, 0) << algorithm.name;
    const bool rooted = has_root(algorithm.collective);
    EXPECT_EQ(status({.ranks = 5, .root = 5}, 1), rooted ? Status::kBadArgument : Status::kOk);
    const CollectiveParameters too_many{.ranks = kMaxRanks - 1};
    EXPECT_EQ(status(too_many, 1),
              supports(algorithm, kMaxRanks - 1) ? Status::kOk : Status::kTooLarge)
        << algorithm.name;
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
  EXPECT_EQ(
      find_algorithm(Collective::kBroadcast, "two-tree-mirror")->generate({.ranks = 8}, 0, program),
      Status::kUnsupported);
  EXPECT_EQ(
      find_algorithm(Collective::kReduce, "two-tree-mirror")->generate({.ranks = 8}, 0, program),
      Status::kUnsupported);
  EXPECT_EQ(find_algorithm(Collective::kScan, "binomial"), nullptr);
  EXPECT_EQ(find_algorithm(Collective::kBroadcast, "two-tre"), nullptr);
}

// Limits by the tables of a program: all ranks have a program up to the limit, and none beyond it.
TEST(Algorithms, LimitsOfTables) {
  struct Limit {
    Collective collective;
    const char* name;
    std::vector<std::uint32_t> largest;  // the last one is the limit
  };
  const Limit limits[] = {
      {Collective::kAllreduce, "rabenseifner", {2048, 4095}},
      {Collective::kReduce, "rabenseifner", {2048, 4095}},
      {Collective::kReduceScatter, "recursive-halving", {2048, 4095}},
      {Collective::kAllgather, "recursive-doubling", {65535, 65536}},
      {Collective::kAllToAll, "bruck", {26}},
      {Collective::kAllgather, "circulant", {32767, 32768}},
      {Collective::kAllgather, "bruck", {32767, 32768}},
      {Collective::kReduceScatter, "circulant", {2050, 4095, 4096}},
      {Collective::kAllreduce, "circulant", {2047, 2048}},
      {Collective::kAllreduce, "ring", {(1u << 19) + 1}},
  };
  for (const auto& [collective, name, largest] : limits) {
    SCOPED_TRACE(name);
    const Algorithm& algorithm = *find_algorithm(collective, name);
    for (const std::uint32_t p : largest) {
      const std::uint32_t stride = p > 100000 ? 997 : small_sample() && p > 1000 ? 37 : 1;
      for (const std::uint32_t root : {0u, p / 3, p - 1}) {
        if (!has_root(collective) && root != 0) continue;
        for (std::uint32_t me = 0; me < p; me += stride) {
          Program program;
          ASSERT_EQ(algorithm.generate({.ranks = p, .root = root, .window = 16}, me, program),
                    Status::kOk)
              << me << " root " << root;
          ASSERT_EQ(check_program(program), Status::kOk) << me << " root " << root;
        }
      }
      EXPECT_TRUE(supports(algorithm, p));
    }
    const std::uint32_t beyond = largest.back() + 1;
    for (const std::uint32_t me : {0u, 1u, beyond / 2, beyond - 1}) {
      Program program;
      EXPECT_EQ(algorithm.generate({.ranks = beyond}, me, program), Status::kTooLarge);
      EXPECT_EQ(program.actions_count, 0);
    }
    EXPECT_FALSE(supports(algorithm, beyond));
  }
}

// In each round of messages every rank sends one, to another rank than in all other rounds, and all
// of them together have a segment for each other rank.
TEST(Algorithms, CirculantGraphsTakeTheFewestMessagesAndBytes) {
  struct Case {
    Collective collective;
    const char* name;
    std::int64_t times;
  };
  for (const auto& [collective, name, times] :
       {Case{Collective::kAllgather, "circulant", 1}, Case{Collective::kAllgather, "bruck", 1},
        Case{Collective::kReduceScatter, "circulant", 1},
        Case{Collective::kAllreduce, "circulant", 2}}) {
    for (std::uint32_t p = 2; p <= 300; ++p) {
      for (std::uint32_t me = 0; me < p; ++me) {
        Program program;
        ASSERT_EQ(find_algorithm(collective, name)->generate({.ranks = p}, me, program),
                  Status::kOk);
        std::int64_t segments = 0;
        std::set<std::int64_t> sends, receives;  // steps
        for (const Instance& one : expand(program, 1)) {
          if (one.kind == ActionKind::kReceive) receives.insert(one.step);
          if (one.kind != ActionKind::kSend) continue;
          EXPECT_TRUE(sends.insert(one.step).second) << name << " p " << p << " rank " << me;
          segments += one.a.segment_count;
        }
        const auto rounds = static_cast<std::size_t>(times) * log2_ceil(p);
        ASSERT_EQ(sends.size(), rounds) << name << " p " << p << " rank " << me;
        ASSERT_EQ(sends, receives) << name << " p " << p << " rank " << me;
        ASSERT_EQ(segments, times * (p - 1)) << name << " p " << p << " rank " << me;
        const std::size_t idle = static_cast<std::size_t>(phase_steps(program, 1)) - rounds;
        ASSERT_EQ(idle, collective != Collective::kAllgather && p > 3 ? 1u : 0u);
      }
    }
  }
}

// Every collective that combines has algorithms for operators that do not commute, for any number
// of ranks and any root: a pipelined one, except the reduce-scatter, and one in logarithmically
// many steps, except the reduce.
TEST(Algorithms, EveryReductionCanKeepTheOrder) {
  for (const Collective collective :
       {Collective::kReduce, Collective::kAllreduce, Collective::kScan, Collective::kExscan,
        Collective::kReduceScatter}) {
    std::set<std::string> short_ones, pipelined;
    for (const Algorithm& algorithm : all_algorithms()) {
      if (algorithm.collective != collective) continue;
      bool keeps = true, is_short = true;
      for (std::uint32_t p = 2; p <= 40; ++p) {
        keeps = keeps && supports(algorithm, p);
        if (!supports(algorithm, p)) continue;
        for (std::uint32_t root = 0; root < (has_root(collective) ? p : 1); ++root) {
          const CollectiveParameters parameters{.ranks = p, .root = root};
          Program program;
          ASSERT_EQ(algorithm.generate(parameters, p / 2, program), Status::kOk);
          keeps = keeps && !program.needs_commutative;
          is_short = is_short && phase_steps(program, 1) <= 2 * log2_ceil(p) + 1;
        }
      }
      if (!keeps) continue;
      if (is_short) short_ones.insert(algorithm.name);
      if (!one_block(algorithm)) pipelined.insert(algorithm.name);
    }
    std::printf("%s:", collective_name(collective));
    for (const std::string& name : short_ones) std::printf(" %s", name.c_str());
    std::printf("; pipelined:");
    for (const std::string& name : pipelined) std::printf(" %s", name.c_str());
    std::printf("\n");
    EXPECT_FALSE(short_ones.empty());
    EXPECT_EQ(pipelined.empty(), collective == Collective::kReduceScatter);
  }
}

// A pair of ranks does in two steps what a rank of the two-tree of half as many ranks does in one.
// In a scan the ranks of a pair also exchange sums before the first and after the last of these
// steps, and a last rank without a partner adds the edges into right spines.
TEST(Algorithms, PairsTakeTwiceTheStepsOfHalfTheRanks) {
  const auto steps = [](Collective collective, const char* name, std::uint32_t p,
                        std::int64_t blocks) {
    Program program;
    EXPECT_EQ(find_algorithm(collective, name)->generate({.ranks = p}, 0, program), Status::kOk);
    return phase_steps(program, blocks);
  };
  struct Case {
    Collective collective;
    bool root_is_outside;            // of the trees
    std::int64_t least[2], most[2];  // steps more, for even and for odd p
  };
  for (const auto& [collective, root_is_outside, least, most] :
       {Case{Collective::kBroadcast, true, {0, 0}, {0, 0}},
        Case{Collective::kReduce, true, {0, 0}, {0, 0}},
        Case{Collective::kAllreduce, true, {0, 0}, {0, 0}},
        Case{Collective::kScan, false, {1, 3}, {6, 7}},
        Case{Collective::kExscan, false, {1, 2}, {5, 8}}}) {
    std::int64_t found_least[] = {100, 100}, found_most[] = {-100, -100};
    for (std::uint32_t p = 4; p <= 2000; ++p) {
      const std::uint32_t half = root_is_outside ? (p + 1) / 2 : p / 2;
      std::set<std::int64_t> more;
      for (const std::int64_t blocks : {1, 7}) {
        const std::int64_t pairs = steps(collective, "two-tree-simplex", p, blocks);
        more.insert(pairs - 2 * steps(collective, "two-tree", half, blocks));
        if (root_is_outside) continue;
        ASSERT_LE(pairs,
                  8 * log2_ceil(p + 4) + 8 * blocks - (collective == Collective::kScan ? 21 : 20))
            << "p " << p;
      }
      ASSERT_EQ(more.size(), 1u) << collective_name(collective) << " p " << p;
      found_least[p % 2] = std::min(found_least[p % 2], *more.begin());
      found_most[p % 2] = std::max(found_most[p % 2], *more.begin());
    }
    for (const unsigned odd : {0u, 1u}) {
      EXPECT_EQ(found_least[odd], least[odd]) << collective_name(collective) << ' ' << odd;
      EXPECT_EQ(found_most[odd], most[odd]) << collective_name(collective) << ' ' << odd;
    }
  }
}

TEST(Algorithms, NamesOfCollectives) {
  for (const Algorithm& algorithm : all_algorithms()) {
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name)->generator, algorithm.generator);
    Collective collective = Collective::kNone;
    EXPECT_TRUE(parse_collective(collective_name(algorithm.collective), collective));
    EXPECT_EQ(collective, algorithm.collective);
  }
  Collective collective = Collective::kNone;
  EXPECT_FALSE(parse_collective("Broadcast", collective));
}

// All inputs that determine the programs change the digest; the requesting rank does not.
TEST(Algorithms, ScheduleDigest) {
  const BlockRule other[] = {{0, 100}};
  const BlockRule finer[] = {{0, 100}, {1000, 200}};
  const std::vector<CollectiveParameters> variants{
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
    if (one_block(algorithm)) continue;
    for (const CollectiveParameters& parameters : variants) {
      if (!supports(algorithm, parameters.ranks)) continue;
      if (!has_root(algorithm.collective) && parameters.root != 0) continue;
      Program one, two;
      ASSERT_EQ(algorithm.generate(parameters, 0, one), Status::kOk);
      ASSERT_EQ(algorithm.generate(parameters, 4, two), Status::kOk);
      EXPECT_EQ(one.schedule_digest, two.schedule_digest);
      digests.insert(one.schedule_digest);
      ++schedules;
    }
  }
  EXPECT_EQ(digests.size(), schedules);
}

std::size_t descriptor_bytes(const Algorithm& algorithm, const CollectiveParameters& parameters,
                             std::uint32_t rank) {
  static std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  Program program;
  EXPECT_EQ(algorithm.generate(parameters, rank, program), Status::kOk);
  std::size_t written = 0;
  EXPECT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
  return written;
}

// Broadcasts that send to a few ranks fit 256 bytes at any size; algorithms that combine or have
// two phases fit 540. With at least one peer per doubling of the ranks it is some 40 bytes per
// peer. A fractional tree has at least one action per block of a run, a circulant graph up to five
// per doubling of the ranks.
std::size_t max_bytes(const Algorithm& algorithm) {
  const std::string name = algorithm.name;
  if (name == "circulant") return 1800;
  const bool combines = name == "combine" ||
                        (algorithm.collective == Collective::kReduce && name.ends_with("nomial"));
  if (name == "dissemination" || name == "recursive-doubling" || combines) return 1100;
  if (name.ends_with("nomial") || name == "lambda-tree" || name.starts_with("alpha-")) return 700;
  if (name == "doubling-123") return 700;
  if (name == "scatter-allgather") return 800;
  if (name == "ring" && algorithm.collective == Collective::kAllreduce) return 640;
  if (name == "bruck" || name == "rabenseifner" || name == "recursive-halving") return 1700;
  if (name.starts_with("fractional")) {
    // With simplex ports a sink has four actions per block of a run, not three.
    if (name == "fractional-simplex" && algorithm.collective == Collective::kReduce) return 1550;
    return algorithm.collective == Collective::kReduce ? 1300 : 700;
  }
  return algorithm.collective == Collective::kBroadcast ? 256 : 540;
}

TEST(Algorithms, DescriptorsAreSmall) {
  for (const Algorithm& algorithm : all_algorithms()) {
    for (const std::uint32_t p : {16u, 17u, 100000u, 100001u}) {
      if (!supports(algorithm, p)) continue;
      std::size_t longest = 0;
      for (const std::uint32_t root : {0u, p - 1, p / 2}) {
        const CollectiveParameters parameters{
            .ranks = p, .root = root, .topology_digest = ~0ull, .window = 16};
        for (std::uint32_t rank = 0; rank < p; rank += p < 100 || whole() ? 1
                                                       : small_sample()   ? 997
                                                                          : 53) {
          longest = std::max(longest, descriptor_bytes(algorithm, parameters, rank));
        }
      }
      std::printf("%s %s p %u: at most %zu bytes\n", collective_name(algorithm.collective),
                  algorithm.name, p, longest);
      EXPECT_LE(longest, max_bytes(algorithm)) << algorithm.name;
    }
  }
}

// Very many ranks: for a sample of ranks, the peers' programs contain the same transfers.
TEST(Algorithms, NeighboursAgreeAtAnySize) {
  std::mt19937 random(2);
  for (const Algorithm& algorithm : all_algorithms()) {
    if (takes_p_squared(algorithm)) continue;  // p steps per block: every rank is replayed above
    for (const std::uint32_t p : {100000u, 1u << 20, (1u << 20) + 1, 3000001u, kMaxRanks - 1}) {
      if (!supports(algorithm, p)) continue;
      const CollectiveParameters parameters{.ranks = p,
                                            .root = static_cast<std::uint32_t>(random() % p)};
      for (int sample = 0; sample < (small_sample() ? 30 : 200); ++sample) {
        const auto me = static_cast<std::uint32_t>(random() % p);
        const auto transfers = replay::neighbours(algorithm, parameters, me);
        ASSERT_EQ(message_of(transfers), "") << algorithm.name << " p " << p << " rank " << me;
        ASSERT_GT(*transfers, 0) << algorithm.name << " p " << p << " rank " << me;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
