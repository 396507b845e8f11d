// The rows that a selection has, against predictions at sizes that were not ranked for it.

#include "planner/choose/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "base/testing/results.h"
#include "collectives/machine/affine.h"
#include "planner/choose/chosen_schedules.h"
#include "planner/workload/reference.h"

namespace espalier::planner {
namespace {

constexpr std::uint64_t kPercent = 5;
constexpr std::uint64_t kMost = std::uint64_t{1} << 30;

void set_collective(ChoiceRequest& request, const char* name) {
  ASSERT_TRUE(parse_collective(name, request.plan.collective));
  request.op = reference::default_operator(request.plan.collective);
}

ChoiceRequest request_of(const char* topology, const char* collective) {
  ChoiceRequest request{.plan = {.topology = or_throw(topology::parse(topology))}};
  set_collective(request, collective);
  return request;
}

Choice choice_of(const ChoiceRequest& request) { return or_throw(Choice::make(request)); }

const SizeRow& row_for(const std::vector<SizeRow>& rows, std::uint64_t bytes) {
  const SizeRow* found = &rows.front();
  for (const SizeRow& row : rows) {
    if (row.from_bytes <= bytes) found = &row;
  }
  return *found;
}

// The worst is at most three times as far from the best as at the sizes that were ranked: between
// two of them, the candidate of both may be overtaken for a while.
void check_sizes(const Choice& choice, const std::vector<SizeRow>& rows) {
  for (std::uint64_t bytes = 24; bytes < kMost; bytes = bytes / 16 * 36 + bytes % 16 * 4) {
    const std::uint64_t whole = bytes / 8 * 8;
    const predict::Picoseconds best = or_throw(choice.rank(whole)).best().time;
    const predict::Picoseconds taken =
        or_throw(choice.predict(row_for(rows, whole).candidate, whole)).time;
    EXPECT_LE(taken * 100, best * (100 + 3 * kPercent)) << whole << " bytes";
  }
}

// At a crossover the next candidate is no slower, or both are within the tolerance.
void check_crossovers(const Choice& choice, const std::vector<SizeRow>& rows) {
  EXPECT_EQ(rows.front().from_bytes, 0u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::uint64_t at = rows[i].from_bytes;
    EXPECT_LT(rows[i - 1].from_bytes, at);
    EXPECT_NE(rows[i - 1].candidate, rows[i].candidate);
    const predict::Picoseconds next = or_throw(choice.predict(rows[i].candidate, at)).time;
    const predict::Picoseconds before = or_throw(choice.predict(rows[i - 1].candidate, at)).time;
    EXPECT_LE(next * 100, before * (100 + kPercent)) << at;
  }
}

void check_tolerances(const Sizes& sizes) {
  std::size_t before = SIZE_MAX;
  for (const std::uint64_t percent : {0ull, 5ull, 50ull, 500ull, 1'000'000ull}) {
    const std::size_t rows = or_throw(sizes.rows(percent)).size();
    EXPECT_LE(rows, before) << percent;
    before = rows;
  }
  EXPECT_EQ(before, 1u);
}

class SizesOf : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(SizesOf, RowsAreWithinTheToleranceAndFew) {
  const Choice choice = choice_of(request_of(GetParam().first, GetParam().second));
  const Sizes sizes = or_throw(Sizes::make(choice, kMost));
  const std::vector<SizeRow> rows = or_throw(sizes.rows(kPercent));
  ASSERT_FALSE(rows.empty());
  check_sizes(choice, rows);
  check_crossovers(choice, rows);
  check_tolerances(sizes);
}

INSTANTIATE_TEST_SUITE_P(Choices, SizesOf,
                         testing::Values(std::pair{"complete:8", "allreduce"},
                                         std::pair{"complete:8", "all-to-all"},
                                         std::pair{"mesh:3x3", "broadcast"},
                                         std::pair{"fattree:k=2,h=2,c=1", "allgather"}));

// The name of the candidate that is taken for a message of `bytes`.
std::string best_of(const ChoiceRequest& request, std::uint64_t bytes) {
  const Choice choice = choice_of(request);
  return choice.candidates()[or_throw(choice.rank(bytes)).best().candidate].name;
}

// 2 KiB take 164 us at the rate of long messages: only a burst makes them a short message.
TEST(Choice, ShortMessagesAreThoseOfTheBurst) {
  predict::NetworkCost cost = {.message_ps = 64'000'000, .byte_fs = 80'000'000};
  ChoiceRequest request = request_of("complete:8", "reduce");
  request.model = predict::network_model(cost);
  EXPECT_NE(best_of(request, 2048), "knomial, radix 3");
  cost.burst_bytes = 10'240;
  request.model = predict::network_model(cost);
  EXPECT_EQ(best_of(request, 2048), "knomial, radix 3");
  set_collective(request, "broadcast");
  const std::string of_long = best_of(request, 1 << 20);
  EXPECT_TRUE(of_long == "chain" || of_long == "fractional") << of_long;
}

// Sixteen hosts, all on a machine of two processors, which do the work of every message.
TEST(Choice, HostsThatShareProcessorsSendFewMessages) {
  predict::NetworkCost cost = {
      .message_ps = 96'000'000, .byte_fs = 80'000'000, .burst_bytes = 10'240};
  ChoiceRequest request = request_of("complete:16", "allreduce");
  request.model = predict::network_model(cost);
  EXPECT_EQ(best_of(request, 8), "recursive-doubling");
  cost.shared_cores = 2;
  cost.ranks = 16;
  request.model = predict::network_model(cost);
  request.conditions.ranks_on_host = 16;
  EXPECT_EQ(best_of(request, 8), "dual-root");
  set_collective(request, "broadcast");
  EXPECT_EQ(best_of(request, 65'536), "chain");
}

// Over memory with fewer processors than ranks; a sum keeps the order of the other trees.
TEST(Choice, FlatTreesServeBroadcastsOfFewRanks) {
  const auto has_flat = [](const std::string& ranks, const char* collective) {
    const Choice choice = choice_of(request_of(("complete:" + ranks).c_str(), collective));
    const auto& all = choice.candidates();
    return std::any_of(all.begin(), all.end(),
                       [&](const Candidate& one) { return one.name == "knomial, radix " + ranks; });
  };
  EXPECT_TRUE(has_flat("8", "broadcast"));
  EXPECT_TRUE(has_flat("16", "broadcast"));
  EXPECT_FALSE(has_flat("17", "broadcast"));
  EXPECT_FALSE(has_flat("16", "reduce"));
  ChoiceRequest request = request_of("complete:8", "broadcast");
  request.model = predict::memory_model(2, 8);
  request.conditions.ranks_on_host = 8;
  EXPECT_EQ(best_of(request, 16'384), "knomial, radix 8");
  set_collective(request, "all-to-all");
  EXPECT_EQ(best_of(request, 128), "pairwise") << "a rank notices all that came at once";
}

// What the model knows of hosts that share links: a ring in place of an exchange that takes as
// long, and blocks that take turns.
TEST(Choice, CrowdingPrefersFewSendersAndShortBlocks) {
  constexpr std::uint64_t kMany = 1 << 20;
  ChoiceRequest request = request_of("complete:8", "allgather");
  request.model = predict::network_model({.message_ps = 64'000'000, .byte_fs = 80'000'000});
  EXPECT_EQ(best_of(request, kMany), "ring");
  const auto longest_block = [](ChoiceRequest one) {
    set_collective(one, "all-to-all");
    one.plan.algorithm = or_throw(find_entry(Collective::kAllToAll, "pairwise"));
    const Choice choice = choice_of(one);
    std::uint32_t most = 0;
    for (const BlockRule& rule : choice.candidates()[0].schedule->rules) {
      most = std::max(most, rule.block_bytes);
    }
    return most;
  };
  EXPECT_EQ(longest_block(request), request.model.crowding.max_block_bytes);
  EXPECT_EQ(request.model.crowding.max_block_bytes, 4096u);
  request.model = predict::network_model(
      {.message_ps = 256'000'000, .byte_fs = 80'000'000, .burst_bytes = 10'240});
  EXPECT_EQ(request.model.crowding.max_block_bytes, 4096u) << "less than the burst";
  request.model.crowding = {};
  EXPECT_NE(best_of(request, kMany), "ring");
  EXPECT_GT(longest_block(request), 4096u);
}

// Whether a candidate of the request has a window of its own.
bool tries_windows(const ChoiceRequest& request) {
  const Choice choice = choice_of(request);
  const auto& all = choice.candidates();
  return std::any_of(all.begin(), all.end(),
                     [&](const Candidate& one) { return one.plan.window != request.plan.window; });
}

// With a window of two steps, about two peers at a time send to a node. A schedule that forwards
// what it receives keeps its window.
TEST(Choice, ExchangesAreInTurnWhereMessagesCrowd) {
  ChoiceRequest request = request_of("complete:8", "all-to-all");
  request.model = predict::network_model(
      {.message_ps = 64'000'000, .byte_fs = 80'000'000, .burst_bytes = 10'240});
  EXPECT_EQ(best_of(request, 8192), "pairwise, window 2");
  for (const char* collective : {"allgather", "allreduce", "scan", "gather", "scatter"}) {
    set_collective(request, collective);
    EXPECT_FALSE(tries_windows(request)) << collective;
  }
  set_collective(request, "all-to-all");
  EXPECT_TRUE(tries_windows(request));
  request.plan.window = 4;
  EXPECT_FALSE(tries_windows(request)) << "the window is given";
  request.plan.window = 0;
  request.model.crowding = {};
  EXPECT_FALSE(tries_windows(request));
}

ChosenSchedules chosen_for(const char* topology, const char* collective, bool in_order = false) {
  ChoiceRequest request = request_of(topology, collective);
  if (in_order) request.op = affine();
  return or_throw(choose_for_all_sizes(request));
}

TEST(ChosenSchedules, HaveRowsForBothClassesOfOperators) {
  const ChosenSchedules chosen = chosen_for("complete:8", "reduce-scatter");
  ASSERT_EQ(check_selection_table(chosen.table), Status::kOk);
  bool commuting = false, general = false;
  for (std::uint32_t i = 0; i < chosen.table.rows_count; ++i) {
    const SelectionRow& row = chosen.table.rows[i];
    (row.needs_commutative ? commuting : general) = true;
    if (row.needs_commutative) continue;
    EXPECT_FALSE(chosen.schedules[row.program].algorithm.needs_commutative);
  }
  EXPECT_TRUE(commuting);
  EXPECT_TRUE(general);
  EXPECT_NE(chosen.table.model_digest, 0u);
}

TEST(ChosenSchedules, AreForOneOperatorThatDoesNotCommute) {
  const ChosenSchedules chosen = chosen_for("complete:8", "allreduce", true);
  ASSERT_EQ(check_selection_table(chosen.table), Status::kOk);
  for (std::uint32_t i = 0; i < chosen.table.rows_count; ++i) {
    EXPECT_FALSE(chosen.table.rows[i].needs_commutative);
  }
}

// A collective that combines nothing has one class; its schedules are those of every size.
TEST(ChosenSchedules, OfCollectivesThatCombineNothing) {
  const ChosenSchedules chosen = chosen_for("complete:8", "all-to-all");
  ASSERT_GE(chosen.schedules.size(), 2u);
  EXPECT_EQ(chosen.percent, kPercent);
  for (std::uint32_t i = 0; i < chosen.table.rows_count; ++i) {
    EXPECT_FALSE(chosen.table.rows[i].needs_commutative);
  }
  // The digest of the selection is part of every schedule's.
  for (std::size_t i = 0; i < chosen.schedules.size(); ++i) {
    OwnedProgram program;
    or_throw(generate(chosen.schedules[i], 0, program));
    EXPECT_EQ(program.schedule_digest,
              digest_in_selection(chosen.schedules[i].selection_digest, chosen.table.schedules[i]));
  }
}

}  // namespace
}  // namespace espalier::planner
