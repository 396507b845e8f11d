// Files of selections: any flipped or missing bit is an error, and so is a forged table.

#include "collectives/schedule/selection_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/crc32.h"
#include "collectives/schedule/testing/sample_selection.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes sample_bytes() {
  const Selected selected = selected_of(sample_table());
  return sample_selection_file(selected.table, selected);
}

// Opens the file and loads all programs, from memory of exactly the file's size.
Status load_all(const Bytes& bytes) {
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  const auto file = std::make_unique<SelectionFile>();
  Status status = file->open(exact.get(), bytes.size());
  const auto program = std::make_unique<DecodedProgram>();
  for (std::uint32_t i = 0; status == Status::kOk && i < file->schedules(); ++i) {
    for (std::uint32_t node = 0; status == Status::kOk && node < 3; ++node) {
      status = file->program(i, node, *program);
    }
  }
  return status;
}

// Corrects the header's checksum, as a careful forger would.
void seal(Bytes& bytes) {
  const std::size_t table = (32 + load_u32(bytes.data() + 20) + 7) / 8 * 8;
  const std::size_t end = table + 16 * load_u32(bytes.data() + 16);
  store_le(bytes.data() + 12, crc32(0, bytes.data() + 16, end - 16), 4);
}

TEST(SelectionFile, HoldsWhatWasWritten) {
  const Bytes bytes = sample_bytes();
  ASSERT_TRUE(is_selection_file(bytes.data(), bytes.size()));
  SelectionFile file;
  ASSERT_EQ(file.open(bytes.data(), bytes.size()), Status::kOk);
  EXPECT_EQ(file.schedules(), 3u);
  const Selected selected = selected_of(sample_table());
  EXPECT_EQ(file.selected().digest, selected.digest);
  std::size_t size = 0;
  const std::uint8_t* encoded = file.selection(size);
  EXPECT_EQ(Bytes(encoded, encoded + size), selection_bytes(selected.table));
  DecodedProgram program;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::uint8_t* begin = file.bytes(i, size);
    EXPECT_EQ(Bytes(begin, begin + size), selected_file(selected, i));
    EXPECT_FALSE(is_selection_file(begin, size));
    ASSERT_EQ(file.program(i, 2, program), Status::kOk);
    EXPECT_EQ(program.node, 2u);
    EXPECT_EQ(program.needs_commutative, i == 2);
  }
  EXPECT_EQ(file.program(0, 3, program), Status::kBadArgument);
  // A reader of single schedules refuses it.
  EXPECT_EQ(ScheduleFile().open(bytes.data(), bytes.size()), Status::kBadVersion);
}

TEST(SelectionFile, TruncatedAnywhereIsRefused) {
  const Bytes whole = sample_bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(load_all(Bytes(whole.begin(), whole.begin() + size)), Status::kTruncated) << size;
  }
}

TEST(SelectionFile, AnyFlippedBitIsRefused) {
  const Bytes whole = sample_bytes();
  ASSERT_EQ(load_all(whole), Status::kOk);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_NE(load_all(bytes), Status::kOk) << bit;
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_EQ(load_all(longer), Status::kCorrupt);
}

// Correct checksums do not make another table, or other offsets, valid.
TEST(SelectionFile, ForgedTablesAreRefused) {
  const Selected selected = selected_of(sample_table());
  SelectionTable other = selected.table;
  other.rows[1].from_bytes = 4097;
  EXPECT_EQ(load_all(sample_selection_file(other, selected)), Status::kMalformed);
  other = selected.table;
  std::swap(other.rows[0].program, other.rows[1].program);
  EXPECT_EQ(load_all(sample_selection_file(other, selected)), Status::kMalformed);
  // Even with programs that are of this table: schedule 2 needs an operator that commutes.
  other = selected.table;
  other.rows[0].program = 2;
  other.rows[2].program = 0;
  EXPECT_EQ(load_all(sample_selection_file(other, selected_of(other))), Status::kMalformed);

  const Bytes whole = sample_bytes();
  const std::size_t rows = (32 + load_u32(whole.data() + 20) + 7) / 8 * 8;
  for (std::size_t i = rows; i < rows + 3 * 16; ++i) {
    Bytes bytes = whole;
    bytes[i] ^= 0x40;
    seal(bytes);
    EXPECT_NE(load_all(bytes), Status::kOk) << i;
  }
  Bytes fewer = whole;
  fewer[16] = 2;
  seal(fewer);
  EXPECT_EQ(load_all(fewer), Status::kMalformed);
}

TEST(SelectionFile, SchedulesAreOfOneTopology) {
  const Selected selected = selected_of(sample_table());
  std::vector<Bytes> files;
  for (std::uint32_t i = 0; i < 3; ++i) files.push_back(selected_file(selected, i));
  ScheduleFileWriter writer("complete:3", 5, 3, 3);
  for (std::uint32_t node = 0; node < 3; ++node) {
    OwnedProgram program = selected_program(selected, 2, node);
    program.topology_digest = 5;
    ASSERT_EQ(writer.add(program), Status::kOk);
  }
  ASSERT_EQ(writer.finish(files[2]), Status::kOk);
  Bytes bytes;
  ASSERT_EQ(write_selection_file(selected.table, files, bytes), Status::kOk);
  EXPECT_EQ(load_all(bytes), Status::kMalformed);
  files.pop_back();
  EXPECT_EQ(write_selection_file(selected.table, files, bytes), Status::kBadArgument);
}

}  // namespace
}  // namespace espalier
