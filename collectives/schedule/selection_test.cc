// Selections: what a node chooses by the table, and that no other table passes for it.

#include "collectives/schedule/selection.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "collectives/schedule/testing/sample_selection.h"

namespace espalier {
namespace {

using Change = std::function<void(SelectionTable&)>;

// The schedule that is chosen; -1: none.
int chosen(const SelectionTable& table, std::uint64_t bytes, bool commutes) {
  const SelectionRow* row = find_row(table, bytes, commutes);
  return row == nullptr ? -1 : row->program;
}

TEST(Selection, ChoosesByBytesAndOperator) {
  const SelectionTable table = sample_table();
  ASSERT_EQ(check_selection_table(table), Status::kOk);
  EXPECT_EQ(chosen(table, 0, false), 0);
  EXPECT_EQ(chosen(table, 4095, false), 0);
  EXPECT_EQ(chosen(table, 4096, false), 1);
  EXPECT_EQ(chosen(table, kMaxMessageBytes, false), 1);
  EXPECT_EQ(chosen(table, 0, true), 2);
  EXPECT_EQ(chosen(table, 999, true), 2);
  EXPECT_EQ(chosen(table, 1000, true), 1);
}

TEST(Selection, RowsForAllOperatorsServeThoseThatCommute) {
  SelectionTable table = sample_table();
  table.rows_count = 2;
  table.schedules_count = 2;
  ASSERT_EQ(check_selection_table(table), Status::kOk);
  for (const bool commutes : {false, true}) {
    EXPECT_EQ(chosen(table, 10, commutes), 0);
    EXPECT_EQ(chosen(table, 5000, commutes), 1);
  }
}

TEST(Selection, OperatorsThatDoNotCommuteMayHaveNoRow) {
  SelectionTable table = sample_table();
  table.rows[0] = {0, true, 0};
  table.rows[1] = {10, true, 1};
  table.rows[2] = {20, true, 2};
  table.rows_count = 3;
  ASSERT_EQ(check_selection_table(table), Status::kOk);
  EXPECT_EQ(chosen(table, 15, true), 1);
  EXPECT_EQ(chosen(table, 15, false), -1);
}

TEST(Selection, BytesAreThoseThatACollectiveIsStartedWith) {
  EXPECT_EQ(started_bytes(0, 4), 0u);
  EXPECT_EQ(started_bytes(1000, 8), 8000u);
  EXPECT_EQ(started_bytes(~0ull, 8), kMaxMessageBytes);
  EXPECT_EQ(started_bytes(kMaxMessageBytes - 1, 2), kMaxMessageBytes);
  const std::uint64_t elements[] = {3, 70, 0};
  std::uint64_t offsets[4];
  EXPECT_EQ(started_bytes(ElementCounts(elements, 3, offsets), 4), 280u);
}

// Every rule of check_selection_table(), broken alone.
TEST(Selection, EachRuleIsChecked) {
  const auto status = [](const Change& change) {
    SelectionTable table = sample_table();
    change(table);
    std::uint8_t room[kMaxSelectionBytes];
    std::size_t written = 1;
    const Status found = check_selection_table(table);
    EXPECT_EQ(encode_selection(table, room, sizeof room, written), found);
    EXPECT_EQ(written == 0, found != Status::kOk);
    return found;
  };
  EXPECT_EQ(status([](SelectionTable&) {}), Status::kOk);
  EXPECT_EQ(status([](SelectionTable& t) { t.format_version = 2; }), Status::kBadVersion);
  EXPECT_EQ(status([](SelectionTable& t) { t.required_features = 1; }), Status::kUnknownFeature);
  const std::pair<const char*, Change> broken[] = {
      {"no topology", [](SelectionTable& t) { t.topology_digest = 0; }},
      {"no collective", [](SelectionTable& t) { t.collective = Collective::kNone; }},
      {"unknown collective",
       [](SelectionTable& t) { t.collective = static_cast<espalier_Collective>(12); }},
      {"a root of none", [](SelectionTable& t) { t.collective = Collective::kAllreduce; }},
      {"no schedules", [](SelectionTable& t) { t.schedules_count = 0; }},
      {"the same twice", [](SelectionTable& t) { t.schedules[2] = t.schedules[0]; }},
      {"an unused schedule", [](SelectionTable& t) { t.rows[2].program = 0; }},
      {"no rows", [](SelectionTable& t) { t.rows_count = 0; }},
      {"no such schedule", [](SelectionTable& t) { t.rows[1].program = 3; }},
      {"small messages have none", [](SelectionTable& t) { t.rows[0].from_bytes = 1; }},
      {"small messages of one class have none",
       [](SelectionTable& t) { t.rows[2].from_bytes = 1; }},
      {"not sorted", [](SelectionTable& t) { std::swap(t.rows[2], t.rows[3]); }},
      {"equal sizes",
       [](SelectionTable& t) {
         t.rows[t.rows_count++] = {1000, true, 2};
       }},
      {"neighbours of one schedule", [](SelectionTable& t) { t.rows[3].program = 2; }},
      {"beyond all messages", [](SelectionTable& t) { t.rows[3].from_bytes = 1ull << 41; }},
      {"a class in two pieces",
       [](SelectionTable& t) {
         t.rows[t.rows_count++] = {0, false, 0};
       }},
      {"nothing is combined", [](SelectionTable& t) { t.collective = Collective::kScatter; }},
  };
  for (const auto& [what, change] : broken) EXPECT_EQ(status(change), Status::kMalformed) << what;
}

TEST(Selection, ProgramsMustFit) {
  const Selected selected = selected_of(sample_table());
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(check_selected(selected, i, selected_program(selected, i, 1)), Status::kOk) << i;
  }
  const auto status = [&](const std::function<void(Program&)>& change) {
    OwnedProgram program = selected_program(selected, 0, 1);
    change(program);
    return check_selected(selected, 0, program);
  };
  EXPECT_EQ(status([](Program& p) { p.root = 1; }), Status::kMalformed);
  EXPECT_EQ(status([](Program& p) { p.collective = Collective::kScan; }), Status::kMalformed);
  EXPECT_EQ(status([](Program& p) { p.topology_digest = 7; }), Status::kMalformed);
  EXPECT_EQ(status([](Program& p) { p.schedule_digest = 0x1000; }), Status::kMalformed)
      << "as it is outside of the selection";
  EXPECT_EQ(status([](Program& p) { p.needs_commutative = true; }), Status::kMalformed)
      << "schedule 0 serves every operator";
  OwnedProgram program = selected_program(selected, 2, 1);
  EXPECT_EQ(check_selected(selected, 1, program), Status::kMalformed);
  EXPECT_EQ(check_selected(selected, 3, program), Status::kMalformed);
}

// Every table that differs in one number, or in one row.
std::vector<SelectionTable> mutants(const SelectionTable& table) {
  std::vector<SelectionTable> all;
  const auto add = [&](const Change& change) {
    SelectionTable mutant = table;
    change(mutant);
    all.push_back(mutant);
  };
  for (const std::uint64_t flip : {1ull, 2ull, 1ull << 20, 1ull << 63}) {
    add([&](SelectionTable& t) { t.topology_digest ^= flip; });
    add([&](SelectionTable& t) { t.model_digest ^= flip; });
    for (std::uint32_t i = 0; i < table.schedules_count; ++i) {
      add([&](SelectionTable& t) { t.schedules[i] ^= flip; });
    }
    for (std::uint32_t i = 0; i < table.rows_count; ++i) {
      add([&](SelectionTable& t) { t.rows[i].from_bytes ^= flip; });
    }
  }
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    add([&](SelectionTable& t) { t.rows[i].from_bytes += 1; });
    add([&](SelectionTable& t) { t.rows[i].from_bytes *= 2; });
    add([&](SelectionTable& t) { t.rows[i].needs_commutative ^= true; });
    for (std::uint8_t program = 0; program <= table.schedules_count; ++program) {
      add([&](SelectionTable& t) { t.rows[i].program = program; });
    }
    add([&](SelectionTable& t) {
      std::copy(t.rows + i + 1, t.rows + t.rows_count, t.rows + i);
      --t.rows_count;
    });
    add([&](SelectionTable& t) { std::swap(t.rows[i], t.rows[0]); });
    add([&](SelectionTable& t) {
      t.rows[t.rows_count++] = {t.rows[i].from_bytes + 5000, true, 0};
    });
  }
  add([](SelectionTable& t) { t.root = 1; });
  add([](SelectionTable& t) { t.collective = Collective::kScan; });
  add([](SelectionTable& t) { --t.schedules_count; });
  add([](SelectionTable& t) { t.schedules[t.schedules_count++] = 5; });
  return all;
}

// All that a table says, as text.
std::string text_of(const SelectionTable& table) {
  std::string text;
  const auto put = [&text](std::uint64_t value) { text += std::to_string(value) + " "; };
  put(table.topology_digest);
  put(table.model_digest);
  put(table.collective);
  put(table.root);
  for (std::uint32_t i = 0; i < table.schedules_count; ++i) put(table.schedules[i]);
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    text += "row ";
    put(table.rows[i].from_bytes);
    put(table.rows[i].needs_commutative);
    put(table.rows[i].program);
  }
  return text;
}

bool is_same(const SelectionTable& a, const SelectionTable& b) { return text_of(a) == text_of(b); }

// No mutant is accepted with the programs of the table that was proven. One that keeps the table's
// rules has other programs: their digests, which are in the tags of all messages, differ.
TEST(Selection, NoMutantPasses) {
  const Selected original = selected_of(sample_table());
  std::set<std::uint64_t> digests = {original.digest};
  std::size_t refused = 0, kept = 0;
  for (const SelectionTable& mutant : mutants(original.table)) {
    if (is_same(mutant, original.table)) continue;
    if (check_selection_table(mutant) != Status::kOk) {
      ++refused;
      continue;
    }
    ++kept;
    const Selected other = selected_of(mutant);
    EXPECT_NE(other.digest, original.digest);
    digests.insert(other.digest);
    for (std::uint32_t i = 0; i < original.table.schedules_count; ++i) {
      EXPECT_EQ(check_selected(other, i, selected_program(original, i, 1)), Status::kMalformed);
      EXPECT_NE(digest_in_selection(other.digest, original.table.schedules[i]),
                digest_in_selection(original.digest, original.table.schedules[i]));
    }
  }
  EXPECT_GT(refused, 30u);
  EXPECT_GT(kept, 20u);
  EXPECT_GT(digests.size(), 20u) << "different tables have different digests";
}

TEST(Selection, IsReadAsWritten) {
  const SelectionTable table = sample_table();
  const std::vector<std::uint8_t> bytes = selection_bytes(table);
  Selected read;
  ASSERT_EQ(decode_selection(bytes.data(), bytes.size(), table.topology_digest, read), Status::kOk);
  EXPECT_TRUE(is_same(read.table, table));
  EXPECT_EQ(read.digest, selected_of(table).digest);
  EXPECT_EQ(selection_bytes(read.table), bytes);
  EXPECT_EQ(decode_selection(bytes.data(), bytes.size(), 5, read), Status::kWrongTopology);
  EXPECT_EQ(read.table.rows_count, 0u);
  EXPECT_EQ(decode_selection(nullptr, 0, kAnyTopology, read), Status::kTruncated);
  std::uint8_t room[8];
  std::size_t written = 1;
  EXPECT_EQ(encode_selection(table, room, sizeof room, written), Status::kTooLarge);
}

// A flipped bit in the bytes is refused, or it is another selection, which no program is of.
TEST(Selection, NoFlippedBitPasses) {
  const Selected original = selected_of(sample_table());
  const std::vector<std::uint8_t> whole = selection_bytes(original.table);
  const OwnedProgram program = selected_program(original, 0, 1);
  const auto passes = [&](const std::vector<std::uint8_t>& bytes) {
    Selected read;
    return decode_selection(bytes.data(), bytes.size(), kAnyTopology, read) == Status::kOk &&
           check_selected(read, 0, program) != Status::kMalformed;
  };
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::vector<std::uint8_t> bytes = whole;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(passes(bytes)) << bit;
  }
  for (auto end = whole.begin(); end != whole.end(); ++end) {
    EXPECT_FALSE(passes({whole.begin(), end})) << end - whole.begin();
  }
}

TEST(Selection, AnyBytesAreSurvived) {
  EXPECT_TRUE(rc::check("decoding is total", [](const std::vector<std::uint8_t>& bytes) {
    Selected read;
    const Status status = decode_selection(bytes.data(), bytes.size(), kAnyTopology, read);
    RC_ASSERT(status == Status::kOk || read.table.rows_count == 0);
  }));
}

}  // namespace
}  // namespace espalier
