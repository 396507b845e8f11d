// The postal model's numbers and schedules, compared with the prototype's values
// (testdata/golden.json). Every (lambda, p) of a range is replayed: p up to 64, or up to 199 with
// ESPALIER_WHOLE=1.

#include "collectives/algorithms/trees/postal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/trees/alpha.h"
#include "collectives/schedule/expand.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/expected_steps.h"
#include "tests/algorithms/prototype_values.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

std::uint32_t max_ranks() { return whole() ? 199 : small_sample() ? 24 : 64; }

const Algorithm& lambda_tree() { return *find_algorithm(Collective::kBroadcast, "lambda-tree"); }
const Algorithm& combine() { return *find_algorithm(Collective::kAllreduce, "combine"); }

std::vector<const Algorithm*> postal_algorithms() {
  return {&lambda_tree(), &combine(), find_algorithm(Collective::kBroadcast, "alpha-tree"),
          find_algorithm(Collective::kBroadcast, "alpha-table")};
}

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

void check_all_ranks(const Algorithm& algorithm, std::uint32_t send, std::uint32_t latency,
                     const Alpha& alpha = {0, 0}) {
  for (std::uint32_t ranks = 1; ranks <= max_ranks(); ++ranks) {
    for (const std::uint32_t window : {1u + ranks % 5, 16u}) {
      const std::uint32_t root = algorithm.collective == Collective::kBroadcast ? ranks / 3 : 0;
      const CollectiveParameters parameters{.ranks = ranks,
                                            .root = root,
                                            .window = window,
                                            .send_ticks = send,
                                            .latency_ticks = latency,
                                            .ratio_numerator = alpha.numerator,
                                            .ratio_denominator = alpha.denominator};
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

constexpr Alpha kAlphas[] = {
    {1, 2},  {3, 5},      {29, 50}, {3, 4},
    {9, 10}, {618, 1000}, {1, 100}, {kMaxAlphaDenominator - 1, kMaxAlphaDenominator}};

// The ticks of every size by its two parts.
TEST(Postal, TicksOfAlphaTreesByTheirDefinition) {
  constexpr std::uint32_t kRanks = 300, kLimit = 1u << 15;
  for (const Alpha& alpha : kAlphas) {
    for (const auto& [send, latency] :
         {std::pair{1u, 1u}, {1u, 2u}, {5u, 9u}, {2u, 5u}, {1u, 64u}}) {
      std::vector<std::uint32_t> ticks(kRanks + 1, 0), sends(kRanks + 1, 0);
      for (std::uint32_t n = 2; n <= kRanks; ++n) {
        const auto rounded = static_cast<std::uint32_t>(
            (2 * std::uint64_t{alpha.numerator} * n + alpha.denominator) /
            (2ull * alpha.denominator));
        const std::uint32_t kept = std::max(1u, std::min(rounded, n - 1));
        ASSERT_EQ(kept_by(alpha, n), kept);
        ticks[n] = std::max(ticks[kept] + send, ticks[n - kept] + latency);
        sends[n] = sends[kept] + 1;
        ASSERT_EQ(alpha_ticks(alpha, n, send, latency, kLimit), ticks[n])
            << alpha.numerator << '/' << alpha.denominator << " n " << n;
        ASSERT_EQ(alpha_ticks(alpha, n, send, latency, ticks[n] - 1), ticks[n]);
        ASSERT_EQ(alpha_ticks(alpha, n, send, latency, ticks[n] / 2), ticks[n] / 2 + 1);
        ASSERT_EQ(alpha_sends(alpha, n, kRanks), sends[n]);
        ASSERT_EQ(alpha_sends(alpha, n, sends[n] - 1), sends[n]);
      }
    }
  }
}

TEST(Postal, AlphaTreesTakeTheirTicks) {
  const Algorithm& tree = *find_algorithm(Collective::kBroadcast, "alpha-tree");
  for (const auto& [send, latency] : {std::pair{1u, 1u}, {1u, 2u}, {5u, 9u}, {2u, 5u}, {2u, 10u}}) {
    ASSERT_NO_FATAL_FAILURE(check_all_ranks(tree, send, latency));
    for (const Alpha& alpha : kAlphas) {
      // A chain, or a root that sends to all, is replayed in the end.
      if (alpha.numerator > 1 && alpha.denominator > 1000) continue;
      ASSERT_NO_FATAL_FAILURE(check_all_ranks(tree, send, latency, alpha));
    }
  }
}

TEST(Postal, AlphaTablesAreOptimal) {
  const Algorithm& table = *find_algorithm(Collective::kBroadcast, "alpha-table");
  for (std::uint32_t send = 1; send <= 5; ++send) {
    for (std::uint32_t latency = send; latency <= 6 * send; latency += send == 1 ? 1 : 2) {
      ASSERT_NO_FATAL_FAILURE(check_all_ranks(table, send, latency));
    }
  }
}

// [Bruck96], Fig. 6: one alpha is optimal for lambda = 2. No alpha is for lambda = 1.95, and the
// default is at most 10 % slower than the optimum.
TEST(Postal, DefaultAlphas) {
  const Algorithm& tree = *find_algorithm(Collective::kBroadcast, "alpha-tree");
  int slower = 0;
  for (std::uint32_t ranks = 2; ranks <= 3000; ranks += ranks < 300 ? 1 : 97) {
    for (const auto& [send, latency] : {std::pair{1u, 2u}, {20u, 39u}}) {
      Program program;
      const CollectiveParameters parameters{
          .ranks = ranks, .send_ticks = send, .latency_ticks = latency};
      ASSERT_EQ(tree.generate(parameters, 1, program), Status::kOk);
      const std::int64_t steps = count_value(program.counts[program.steps_ref], 1);
      const std::int64_t least = postal_ticks(ranks, send, latency);
      if (send == 1) {
        ASSERT_EQ(steps, least) << ranks;
      }
      ASSERT_LE(10 * steps, 11 * least) << ranks;
      slower += steps > least;
    }
  }
  EXPECT_GT(slower, 10);
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
  for (const Algorithm* algorithm : postal_algorithms()) {
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
  for (const Algorithm* algorithm : postal_algorithms()) {
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

TEST(Postal, RefusalsOfAlphas) {
  const Algorithm& tree = *find_algorithm(Collective::kBroadcast, "alpha-tree");
  Program program;
  const auto status = [&](std::uint32_t ranks, const Alpha& alpha, std::uint32_t me = 0) {
    return tree.generate({.ranks = ranks,
                          .ratio_numerator = alpha.numerator,
                          .ratio_denominator = alpha.denominator},
                         me, program);
  };
  EXPECT_EQ(status(5, {0, 2}), Status::kBadArgument);
  EXPECT_EQ(status(5, {2, 2}), Status::kBadArgument);
  EXPECT_EQ(status(5, {1, kMaxAlphaDenominator + 1}), Status::kBadArgument);
  EXPECT_EQ(program.actions_count, 0);
  EXPECT_EQ(status(5, {1, kMaxAlphaDenominator}), Status::kOk);
  // The root has a link to every other rank.
  EXPECT_EQ(status(129, {kMaxAlphaDenominator - 1, kMaxAlphaDenominator}), Status::kOk);
  // More ticks than kMaxAlphaTicks; more sends than links; more sends of another rank than counts.
  for (const auto& [ranks, alpha] : {std::pair{20000u, Alpha{1, kMaxAlphaDenominator}},
                                     {130u, {kMaxAlphaDenominator - 1, kMaxAlphaDenominator}},
                                     {1u << 29, {19, 20}}}) {
    for (std::uint32_t me = 0; me < ranks; me += 1 + ranks / 7) {
      EXPECT_EQ(status(ranks, alpha, me), Status::kTooLarge) << ranks << " rank " << me;
    }
    EXPECT_EQ(program.actions_count, 0);
  }
}

}  // namespace
}  // namespace espalier
