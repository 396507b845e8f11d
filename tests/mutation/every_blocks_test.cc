// The proof for every N at once against brute force: each schedule is checked exhaustively for
// every N up to five times the bound of the proof, with ESPALIER_WHOLE=1 up to ten times, and a
// sample of its mutants up to three times.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/mutation/edits.h"
#include "tests/mutation/interpreter.h"
#include "tests/mutation/schedules.h"

namespace espalier::mutation {
namespace {

struct Tally {
  std::uint32_t proven = 0, refused = 0, unknown = 0;
};

verify::Verdict verdict_of(const topology::Topology& topology, const Programs& programs,
                           verify::Method method, std::int64_t most) {
  return verify::verdict_of(topology, programs, {.method = method, .max_blocks = most});
}

// Enough for every schedule here to repeat ten times over, and few enough for a test.
constexpr std::int64_t kMaxBlocks = 220;

// Both verdicts on one schedule, for N up to `times` the bound of the proof.
void compare(const topology::Topology& topology, const Programs& programs, const std::string& name,
             std::int64_t times, Tally& tally) {
  const verify::Verdict at_once = verdict_of(topology, programs, verify::Method::kPeriodic, 0);
  if (!at_once.valid && !at_once.limited.empty()) {
    ++tally.unknown;
    return;
  }
  ++(at_once.valid ? tally.proven : tally.refused);
  // If the schedule is refused, the N that is named must be one that fails.
  const std::int64_t most = at_once.valid
                                ? std::min(times * at_once.proven_blocks, kMaxBlocks)
                                : std::max<std::int64_t>(1, at_once.counterexample.blocks);
  const verify::Verdict brute = verdict_of(topology, programs, verify::Method::kExhaustive, most);
  ASSERT_EQ(at_once.valid, brute.valid) << name << ", N up to " << most << ": "
                                        << (at_once.valid ? brute : at_once).counterexample.message;
  if (!at_once.valid) return;
  ASSERT_TRUE(at_once.for_all);
  ASSERT_EQ(at_once.in_place, brute.in_place) << name;
  ASSERT_EQ(at_once.busiest.load, brute.busiest.load) << name;
}

// Whether the schedule is made for any topology, so that the links of one may be overloaded.
bool is_for_any_topology(const Made& made, std::uint32_t ranks) {
  return made.programs.size() == ranks && !made.algorithm.starts_with("hosts-") &&
         !made.algorithm.starts_with("crossbar-");
}

// Calls `use` with every schedule on complete graphs, and on the other topologies with every
// schedule that is made for them.
template <typename Use>
void for_groups(const std::vector<std::string>& specs, const std::set<std::uint32_t>& windows,
                const Use& use) {
  for (const std::string& spec : specs) {
    const auto topology = or_throw(topology::parse(spec));
    const std::uint32_t ranks = topology->ranks();
    for (const std::uint32_t window : windows) {
      for_schedules(*topology, {0, ranks / 2, ranks - 1}, window, [&](const Made& made) {
        if (topology->nodes() > ranks && is_for_any_topology(made, ranks)) return;
        use(*topology, made.programs, made.name + ", window " + std::to_string(window));
      });
    }
  }
}

void print(const char* what, const Tally& tally) {
  std::printf("%s: %u proven for every N, %u refused, %u not periodic\n", what, tally.proven,
              tally.refused, tally.unknown);
}

const bool kIsWhole = std::getenv("ESPALIER_WHOLE") != nullptr;
const std::uint32_t kTimesTheBound = kIsWhole ? 10 : 5;

TEST(EveryBlocks, ValidSchedules) {
  Tally tally;
  for_groups({"complete:1", "complete:2", "complete:3", "complete:4", "complete:5", "complete:8",
              "complete:13", "fattree:k=2,h=2,c=1", "fattree:k=2,h=2,c=k", "fattree:k=3x2,c=1",
              "crossbar:2x3", "crossbar:2x2x2", "hosts:2x2", "hosts:2x4"},
             {1, 3}, [&](const auto& topology, const auto& programs, const std::string& name) {
               if (!::testing::Test::HasFatalFailure())
                 compare(topology, programs, name, kTimesTheBound, tally);
             });
  print("valid", tally);
  EXPECT_GT(tally.proven, 100u);
  EXPECT_EQ(tally.refused, 0u);
}

// Mutants per schedule and scope; ESPALIER_WHOLE=1: any number.
const std::size_t kMaxMutants = kIsWhole ? SIZE_MAX : 20;

// Every `sample`th mutant, or fewer, of one node's program and of all alike.
void compare_mutants(const topology::Topology& topology, const Programs& programs,
                     const std::string& name, std::size_t sample, std::size_t& salt, Tally& tally) {
  for (const Scope scope : {Scope::kRank, Scope::kShared}) {
    const auto rank = static_cast<std::uint32_t>(salt % programs.size());
    const std::size_t edits = count_edits(programs[rank], scope);
    const std::size_t stride = std::max(sample, edits / kMaxMutants);
    for (std::size_t i = salt++ % stride; i < edits; i += stride) {
      if (::testing::Test::HasFatalFailure()) return;
      Programs mutant = programs;
      Edit edit;
      bool changed = false;
      for (std::uint32_t other = 0; other < mutant.size(); ++other) {
        if (scope == Scope::kRank && other != rank) continue;
        changed = make_edit(mutant[other], scope, i, edit) || changed;
      }
      if (!changed) continue;
      compare(topology, mutant, name + ": " + edit.field + " " + edit.change, 3, tally);
    }
  }
}

TEST(EveryBlocks, Mutants) {
  Tally tally;
  std::size_t salt = 0;
  for_groups(
      {"complete:2", "complete:3", "complete:4", "fattree:k=2,h=2,c=1", "fattree:k=2,h=2,c=k",
       "fattree:k=3x2,c=1", "crossbar:2x2", "crossbar:2x2x2", "hosts:2x2"},
      {2}, [&](const auto& topology, const auto& programs, const std::string& name) {
        compare_mutants(topology, programs, name, 11, salt, tally);
      });
  print("mutants", tally);
  EXPECT_GT(tally.proven, 50u);
  EXPECT_GT(tally.refused, 500u);
}

// Each row of their tables is a progression of its own.
TEST(EveryBlocks, LoweredSchedulesAndMutants) {
  Tally valid, mutants;
  std::size_t salt = 0;
  for (const char* spec : {"mesh:2x3", "fattree:k=2,h=2,c=1", "fattree:k=3,h=1,c=1",
                           "fattree:k=3x2,c=1", "crossbar:2x1x2"}) {
    const auto topology = or_throw(topology::parse(spec));
    for_lowered_schedules(*topology, {1}, 3, [&](const Made& made) {
      if (HasFatalFailure()) return;
      compare(*topology, made.programs, made.name, kTimesTheBound, valid);
      compare_mutants(*topology, made.programs, made.name, 101, salt, mutants);
    });
  }
  print("lowered, valid", valid);
  print("lowered, mutants", mutants);
  EXPECT_GT(valid.proven, 60u);
  EXPECT_EQ(valid.refused, 0u);
  EXPECT_GT(mutants.refused, 300u);
}

// Far too many ranks to expand; its programs are generated on demand.
class Million : public ::testing::Test {
 protected:
  verify::Verdict verdict_of(std::uint32_t ranks, const char* algorithm,
                             const std::function<void(Program&)>& change) {
    const auto topology = or_throw(topology::parse("complete:" + std::to_string(ranks)));
    CollectiveParameters parameters{.ranks = ranks, .topology_digest = topology->digest()};
    const Algorithm* made_by = find_algorithm(Collective::kBroadcast, algorithm);
    const auto generate = [&](std::uint32_t node) -> const Program& {
      ++calls;
      EXPECT_EQ(made_by->generate(parameters, node, program), Status::kOk);
      if (node == kBroken && change) change(program);
      return program;
    };
    return verify::verify(*topology, generate, {});
  }
  static constexpr std::uint32_t kBroken = 54321;
  Program program{};
  std::uint64_t calls = 0;
};

TEST_F(Million, TwoTreeBroadcast) {
  const verify::Verdict verdict = verdict_of(1u << 20, "two-tree", nullptr);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.for_all);
  EXPECT_TRUE(verdict.async);
  EXPECT_EQ(calls, 1u << 20);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 4l << 20) << "KiB";
}

// A mutant's header may claim more than its programs hold: it must be refused, and not be played.
TEST(Interpreter, PlaysNoMoreRanksThanThereArePrograms) {
  const auto topology = or_throw(topology::parse("complete:4"));
  Programs programs =
      programs_of(*find_algorithm(Collective::kAllreduce, "chain"), parameters_of(*topology, 0, 4));
  EXPECT_EQ(check_limits(unroll(*topology, programs, 1)), "");
  for (Program& program : programs) program.ranks = 5;
  EXPECT_EQ(check_limits(unroll(*topology, programs, 1)), "there are fewer nodes than ranks");
}

TEST_F(Million, ChainAndBinary) {
  for (const char* algorithm : {"chain", "binary"}) {
    const verify::Verdict verdict = verdict_of(200'000, algorithm, nullptr);
    EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
    EXPECT_TRUE(verdict.for_all) << verdict.limited;
  }
}

TEST_F(Million, CounterexamplesNameTheRank) {
  const auto expect = [this](verify::Property property,
                             const std::function<void(Program&)>& change) {
    const verify::Verdict verdict = verdict_of(100'000, "chain", change);
    ASSERT_FALSE(verdict.valid);
    EXPECT_EQ(verdict.counterexample.property, property) << verdict.counterexample.message;
    EXPECT_NE(verdict.counterexample.message.find("rank 54321"), std::string::npos)
        << verdict.counterexample.message;
    EXPECT_EQ(verdict.counterexample.block, 0) << verdict.counterexample.message;
    EXPECT_GE(verdict.counterexample.step, 54320) << verdict.counterexample.message;
  };
  const auto find = [](Program& of, ActionKind kind) -> Action& {
    std::uint32_t at = 0;
    while (of.actions[at].kind != kind) ++at;
    return of.actions[at];
  };
  expect(verify::Property::kHazards, [&](Program& of) { find(of, ActionKind::kSend).after = 0; });
  expect(verify::Property::kMatching, [&](Program& of) { of.peers[0] -= 5; });
  expect(verify::Property::kDeadlock, [&](Program& of) {
    Action& receive = find(of, ActionKind::kReceive);
    of.counts[of.counts_count] = of.counts[receive.t0_ref];
    of.counts[of.counts_count].a += 1;
    receive.t0_ref = static_cast<std::uint8_t>(of.counts_count++);
    find(of, ActionKind::kSend).after = 0;
    of.actions_count -= 1;  // its send
    of.phases[0].actions -= 1;
  });
}

}  // namespace
}  // namespace espalier::mutation
