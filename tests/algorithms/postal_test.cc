// The postal model's numbers and schedules, compared with the prototype's values
// (testdata/golden.json). Every (lambda, p) of a range is replayed: p up to 64, or up to 199 with
// ESPALIER_WHOLE=1.

#include "collectives/algorithms/trees/postal.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/expand.h"
#include "tests/algorithms/expected_steps.h"
#include "tests/algorithms/prototype_values.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

std::uint32_t max_ranks() { return whole() ? 199 : small_sample() ? 24 : 64; }

const Algorithm& lambda_tree() { return *find_algorithm(Collective::kBroadcast, "lambda-tree"); }
const Algorithm& combine() { return *find_algorithm(Collective::kAllreduce, "combine"); }

// "9/5" or "2".
struct Fraction {
  std::uint32_t over = 1, under = 1;
};
Fraction fraction(const std::string& text) {
  const std::size_t slash = text.find('/');
  Fraction value{static_cast<std::uint32_t>(std::stoul(text)), 1};
  if (slash != std::string::npos) {
    value.under = static_cast<std::uint32_t>(std::stoul(text.substr(slash + 1)));
  }
  return value;
}

// N_lambda computed from its definition.
std::vector<std::uint32_t> reach_by_definition(std::uint32_t send, std::uint32_t latency,
                                               std::uint32_t last) {
  std::vector<std::uint32_t> reach;
  for (std::uint32_t t = 0; reach.empty() || reach.back() < last; ++t) {
    reach.push_back(t < latency ? 1 : reach[t - send] + reach[t - latency]);
  }
  return reach;
}

TEST(Postal, ReachOfThePrototype) {
  const nlohmann::json values = prototype_values()["postal_N"];
  ASSERT_GE(values.size(), 5u);
  for (const auto& [key, rows] : values.items()) {
    const Fraction lambda = fraction(key);
    ASSERT_GE(rows.size(), 6u);
    for (const auto& row : rows) {
      const Fraction time = fraction(row[0].get<std::string>());
      const std::uint32_t t = time.over * lambda.under / time.under;
      const auto reach = row[1].get<std::uint32_t>();
      EXPECT_EQ(reach_by_definition(lambda.under, lambda.over, 1u << 20)[t], reach) << key;
      EXPECT_LE(postal_ticks(reach, lambda.under, lambda.over), t) << key;
      EXPECT_GT(postal_ticks(reach + 1, lambda.under, lambda.over), t) << key;
    }
  }
}

// Up and down again, for all ticks.
TEST(Postal, ReachRunsBothWays) {
  for (std::uint32_t latency = 1; latency <= kMaxTicks; latency += latency < 12 ? 1 : 13) {
    for (std::uint32_t send = 1; send <= latency; send += latency < 12 ? 1 : 9) {
      constexpr std::uint32_t kLast = 1u << 29;
      const std::vector<std::uint32_t> wanted = reach_by_definition(send, latency, kLast);
      Reach reach(send, latency);
      reach.up_to(kLast);
      ASSERT_EQ(reach.ticks(), wanted.size() - 1);
      for (;; reach.down(1)) {
        const std::uint32_t t = reach.ticks();
        for (std::uint32_t back = 0; back <= latency; ++back) {
          ASSERT_EQ(reach.value(back), back > t ? 0 : wanted[t - back])
              << latency << '/' << send << " t " << t << " back " << back;
        }
        if (t == 0) break;
      }
    }
  }
}

// golden: "lambda,n": [t, [M_0 .. M_t], {"R": e_R if it is 1}]. In round R a rank sends to the rank
// M_{R-1} - e_R after it, if there is anything to send.
TEST(Postal, DeficienciesOfThePrototype) {
  const nlohmann::json values = prototype_values()["combine_eps"];
  ASSERT_GE(values.size(), 18u);
  for (const auto& [key, value] : values.items()) {
    const auto lambda = static_cast<std::uint32_t>(std::stoul(key));
    const auto n = static_cast<std::uint32_t>(std::stoul(key.substr(key.find(',') + 1)));
    const auto rounds = value[0].get<std::uint32_t>();
    const auto held = value[1].get<std::vector<std::uint32_t>>();
    EXPECT_EQ(postal_ticks(n, 1, lambda), rounds) << key;
    std::vector<std::pair<std::int64_t, std::int64_t>> wanted, sent;  // step, to
    for (std::uint32_t round = lambda; round <= rounds; ++round) {
      const std::uint32_t less = value[2].contains(std::to_string(round)) ? 1 : 0;
      if (held[round - lambda] == less) continue;
      wanted.emplace_back(round - lambda, held[round - 1] - less);
    }
    Program program;
    const CollectiveParameters parameters{.ranks = n, .latency_ticks = lambda};
    ASSERT_EQ(combine().generate(parameters, 0, program), Status::kOk) << key;
    for (const Instance& instance : expand(program, 1)) {
      if (instance.kind == ActionKind::kSend) sent.emplace_back(instance.step, instance.peer);
    }
    EXPECT_EQ(sent, wanted) << key;
  }
}

void check_all_ranks(const Algorithm& algorithm, std::uint32_t send, std::uint32_t latency) {
  for (std::uint32_t ranks = 1; ranks <= max_ranks(); ++ranks) {
    for (const std::uint32_t window : {1u + ranks % 5, 16u}) {
      const std::uint32_t root = algorithm.collective == Collective::kBroadcast ? ranks / 3 : 0;
      const CollectiveParameters parameters{.ranks = ranks,
                                            .root = root,
                                            .window = window,
                                            .send_ticks = send,
                                            .latency_ticks = latency};
      const Programs programs = or_throw(replay::generate(algorithm, parameters));
      const auto steps = replay::run(programs, 1);
      ASSERT_EQ(message_of(steps), "") << latency << '/' << send;
      const Steps wanted = expected_steps(algorithm, parameters, 1);
      ASSERT_EQ(*steps, wanted.least) << "p " << ranks << ' ' << latency << '/' << send;
      const Program& program = programs[0];
      ASSERT_GE(program.window, latency);
      // No schedule can reach all ranks sooner.
      ASSERT_EQ(count_value(program.counts[program.bound_ref], 1),
                ranks == 1 ? 0 : postal_ticks(ranks, send, latency));
    }
  }
}

TEST(Postal, LambdaTreesAreOptimal) {
  for (std::uint32_t send = 1; send <= 5; ++send) {
    for (std::uint32_t latency = send; latency <= 6 * send; latency += send == 1 ? 1 : 2) {
      ASSERT_NO_FATAL_FAILURE(check_all_ranks(lambda_tree(), send, latency));
    }
  }
}

TEST(Postal, CombineForIntegerLambda) {
  for (std::uint32_t lambda = 1; lambda <= 6; ++lambda) {
    ASSERT_NO_FATAL_FAILURE(check_all_ranks(combine(), 1, lambda));
    ASSERT_NO_FATAL_FAILURE(check_all_ranks(combine(), 3, 3 * lambda));
  }
}

TEST(Postal, CombineForRationalLambda) {
  for (std::uint32_t send = 2; send <= 7; ++send) {
    for (std::uint32_t latency = send + 1; latency <= 5 * send; latency += send > 3 ? 3 : 1) {
      ASSERT_NO_FATAL_FAILURE(check_all_ranks(combine(), send, latency));
    }
  }
}

// Whether a program's tables suffice does not depend on the rank.
TEST(Postal, AllRanksAreRefused) {
  for (const Algorithm* algorithm : {&lambda_tree(), &combine()}) {
    int refused = 0;
    for (const std::uint32_t ranks : {1u << 12, 1u << 20, 1u << 28}) {
      for (std::uint32_t latency = 1; latency <= kMaxTicks; ++latency) {
        Program program;
        const CollectiveParameters parameters{.ranks = ranks, .latency_ticks = latency};
        const Status status = algorithm->generate(parameters, 0, program);
        refused += status == Status::kTooLarge;
        for (std::uint32_t rank = 1; rank < ranks; rank += ranks / 37 + rank % 5) {
          ASSERT_EQ(algorithm->generate(parameters, rank, program), status)
              << algorithm->name << " p " << ranks << " lambda " << latency << " rank " << rank;
        }
      }
    }
    EXPECT_GT(refused, 10) << algorithm->name;
  }
}

// The exact choice, at the break-even lambda of [Bruck96] and where a finite n moves it.
TEST(Postal, TheCheaperDelayIsChosen) {
  int sends = 0, receives = 0;
  for (const std::uint32_t n : {8u, 64u, 100u}) {
    for (std::uint32_t latency = 21; latency < 40; ++latency) {  // 1 < lambda < 2, by 1/20
      const std::int64_t receive = 20 * (postal_ticks(n, 1, 2) - 2) + latency;
      const std::int64_t send = latency * postal_ticks(n, 1, 1);
      Program program;
      const CollectiveParameters parameters{.ranks = n, .send_ticks = 20, .latency_ticks = latency};
      ASSERT_EQ(combine().generate(parameters, 1, program), Status::kOk);
      EXPECT_EQ(count_value(program.counts[program.steps_ref], 1), std::min(send, receive));
      ++(send < receive ? sends : receives);
    }
  }
  EXPECT_GT(sends, 15);
  EXPECT_GT(receives, 15);
}

TEST(Postal, Refusals) {
  Program program;
  for (const Algorithm* algorithm : {&lambda_tree(), &combine()}) {
    const auto status = [&](std::uint32_t ranks, std::uint32_t send, std::uint32_t latency) {
      return algorithm->generate({.ranks = ranks, .send_ticks = send, .latency_ticks = latency}, 0,
                                 program);
    };
    EXPECT_EQ(status(5, 0, 1), Status::kBadArgument);
    EXPECT_EQ(status(5, 3, 2), Status::kBadArgument);
    EXPECT_EQ(status(5, 1, kMaxTicks + 1), Status::kBadArgument);
    EXPECT_EQ(status(5, kMaxTicks, kMaxTicks), Status::kOk);
    EXPECT_EQ(status(1u << 28, 1, kMaxTicks), Status::kTooLarge);  // more rounds than actions
    EXPECT_EQ(program.actions_count, 0);
  }
}

}  // namespace
}  // namespace espalier
