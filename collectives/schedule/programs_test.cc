// The owner of a program's table. The types prevent that copies share a table: otherwise this file
// would not compile.

#include "espalier/collectives/schedule/programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>

#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/schedule/file.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Neither construction nor assignment makes a copy that shares its table.
static_assert(!std::is_copy_constructible_v<Program>);
static_assert(!std::is_move_constructible_v<Program>);
static_assert(!std::is_constructible_v<Program, const OwnedProgram&>);
static_assert(!std::is_constructible_v<Program, const DecodedProgram&>);
static_assert(!std::is_assignable_v<Program&, const Program&>);
static_assert(!std::is_assignable_v<Program&, const OwnedProgram&>);
static_assert(!std::is_assignable_v<Program&, OwnedProgram&&>);
static_assert(!std::is_assignable_v<DecodedProgram&, const Program&>);
static_assert(!std::is_assignable_v<DecodedProgram&, const DecodedProgram&>);
// Deep copies of every type are possible.
static_assert(std::is_convertible_v<const Program&, OwnedProgram>);
static_assert(std::is_convertible_v<const DecodedProgram&, OwnedProgram>);
static_assert(std::is_assignable_v<OwnedProgram&, const Program&>);
static_assert(std::is_nothrow_move_constructible_v<OwnedProgram>);

// Only a DecodedProgram has a table inside the descriptor's bytes.
template <typename Target>
concept Decodes = requires(const std::uint8_t* bytes, Target& target) {
  { decode_program(bytes, 1, kAnyTopology, kAnyNode, target) } -> std::same_as<Status>;
};
template <typename Target>
concept Loads = requires(const ScheduleFile& file, Target& target) {
  { file.program(0, target) } -> std::same_as<Status>;
};
static_assert(Decodes<DecodedProgram> && Loads<DecodedProgram>);
static_assert(!Decodes<Program> && !Loads<Program>);
static_assert(!Decodes<OwnedProgram> && !Loads<OwnedProgram>);

// Nodes hold nanopb's struct, which needs no constructor to run before main().
static_assert(sizeof(DecodedProgram) == sizeof(espalier_Program));
static_assert(std::is_standard_layout_v<DecodedProgram>);
static_assert(std::is_trivially_default_constructible_v<DecodedProgram>);

// Overwrites the memory of a freed object, so that a use after free shows even without a sanitizer.
Bytes scribbled(std::size_t size) { return Bytes(size, 0xa5); }

TEST(OwnedProgram, OutlivesTheBytesItWasDecodedFrom) {
  const Bytes expected = encoded(sample_program_with_table());
  auto bytes = std::make_unique<Bytes>(expected);
  DecodedProgram decoded;
  ASSERT_EQ(decode_program(bytes->data(), bytes->size(), kAnyTopology, kAnyNode, decoded),
            Status::kOk);
  const OwnedProgram program = decoded;
  std::fill(bytes->begin(), bytes->end(), 0xa5);
  bytes.reset();
  EXPECT_EQ(encoded(program), expected);
}

TEST(OwnedProgram, CopiesOutliveTheOriginal) {
  const Bytes expected = encoded(sample_program_with_table());
  std::optional<Programs> originals(Programs{sample_program_with_table(), sample_program()});
  const Programs copies = *originals;
  Programs assigned;
  assigned.assign(originals->begin(), originals->end());
  OwnedProgram one = sample_program();
  one = originals->front();
  originals.reset();
  const Bytes in_their_place = scribbled(64);
  EXPECT_EQ(encoded(copies.front()), expected);
  EXPECT_EQ(encoded(assigned.front()), expected);
  EXPECT_EQ(encoded(one), expected);
  EXPECT_EQ(copies.back().table.size, 0u);
}

TEST(OwnedProgram, MovesWithItsTable) {
  const Bytes expected = encoded(sample_program_with_table());
  Programs programs;
  for (int i = 0; i < 9; ++i) programs.push_back(sample_program_with_table());  // grows: moves
  for (const Program& program : programs) EXPECT_EQ(encoded(program), expected);
  OwnedProgram taken = std::move(programs.front());
  programs.clear();
  EXPECT_EQ(encoded(taken), expected);
}

// Sets fields directly, like code that edits a program.
TEST(OwnedProgram, KeepsATableThatWasPointedTo) {
  OwnedProgram program = sample_program_with_table();
  const Bytes expected = encoded(program);
  auto entries =
      std::make_unique<Bytes>(program.table.bytes, program.table.bytes + program.table.size);
  program.table.bytes = entries->data();
  OwnedProgram moved = std::move(program);
  OwnedProgram kept = moved;
  kept.table.bytes = entries->data();
  kept.keep_table();
  std::fill(entries->begin(), entries->end(), 0xa5);
  entries.reset();
  EXPECT_EQ(encoded(moved), expected);
  EXPECT_EQ(encoded(kept), expected);
}

TEST(OwnedProgram, TakesEntries) {
  OwnedProgram program = sample_program();
  program.set_table({300, -2});
  ASSERT_EQ(program.table.size, 4u);
  EXPECT_EQ(table_entry(program.table.bytes, 0), 300);
  EXPECT_EQ(table_entry(program.table.bytes, 1), -2);
  program.set_table({});
  EXPECT_EQ(program.table.size, 0u);
}

}  // namespace
}  // namespace espalier
