// Fuzz target: for any bytes that should be a selection, or the file of one, the loader refuses
// them or returns a table that has a schedule for every size, and programs that fit it. The first
// byte tells the form of the rest: a selection, a file, or a file whose checksum, lengths and
// offsets are corrected first, so that the code behind these checks is reached too.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/crc32.h"
#include "collectives/schedule/selection_file.h"
#include "espalier/internal/base/little_endian.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

constexpr std::uint32_t kMaxFuzzedNodes = 32;  // nodes of a file that are examined

// Uses a loaded table in every way that a node does.
void use(const Selected& selected) {
  const SelectionTable& table = selected.table;
  expect(check_selection_table(table) == Status::kOk, "what is loaded keeps the rules");
  expect(selected.digest != 0, "a selection has a digest");
  const bool serves_all = !table.rows[0].needs_commutative;
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    const std::uint64_t from = table.rows[i].from_bytes;
    for (const std::uint64_t bytes : {std::uint64_t{0}, from, from + 1, kMaxMessageBytes}) {
      const SelectionRow* row = find_row(table, bytes, true);
      expect(row != nullptr && row->program < table.schedules_count, "every size has a schedule");
      expect(row->from_bytes <= bytes, "a row begins at its size");
      row = find_row(table, bytes, false);
      expect((row != nullptr) == serves_all, "and so have operators that do not commute, or none");
      expect(row == nullptr || !row->needs_commutative, "which get their own rows");
    }
  }
  std::uint8_t bytes[kMaxSelectionBytes], again[kMaxSelectionBytes];
  std::size_t size = 0, size_again = 0;
  expect(encode_selection(table, bytes, sizeof bytes, size) == Status::kOk,
         "what is loaded can be written");
  Selected copy;
  expect(decode_selection(bytes, size, table.topology_digest, copy) == Status::kOk,
         "what is written can be loaded");
  expect(encode_selection(copy.table, again, sizeof again, size_again) == Status::kOk &&
             size == size_again && std::memcmp(bytes, again, size) == 0,
         "what is written stays as it is");
}

void load_selection(const std::vector<std::uint8_t>& bytes) {
  Selected selected;
  if (decode_selection(bytes.data(), bytes.size(), kAnyTopology, selected) == Status::kOk) {
    use(selected);
    return;
  }
  expect(selected.digest == 0 && selected.table.rows_count == 0, "nothing of a bad one is kept");
}

void load_file(const std::vector<std::uint8_t>& bytes) {
  const auto file = std::make_unique<SelectionFile>();
  if (file->open(bytes.data(), bytes.size()) != Status::kOk) {
    expect(file->schedules() == 0, "nothing of a bad file is kept");
    return;
  }
  use(file->selected());
  static DecodedProgram program;
  for (std::uint32_t i = 0; i < file->schedules(); ++i) {
    const std::uint32_t nodes = std::min(file->schedule(i).nodes(), kMaxFuzzedNodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (file->program(i, node, program) != Status::kOk) {
        expect(program.ranks == 0, "nothing of a bad program is kept");
        continue;
      }
      expect(check_selected(file->selected(), i, program) == Status::kOk, "a program fits");
    }
  }
}

// Makes the file as selection_file.h describes. Keeps the numbers of schedules and the lengths as
// far as they fit.
void put_right(std::vector<std::uint8_t>& file) {
  constexpr std::size_t kHeader = 32, kRow = 16;
  if (file.size() < kHeader + kRow + 8) return;
  std::memcpy(file.data(), kScheduleMagic, sizeof kScheduleMagic);
  store_le(&file[8], kSelectionFileVersion, 4);
  const std::size_t selection =
      std::min<std::size_t>(load_u32(&file[20]) % 512, file.size() - kHeader - kRow - 8);
  store_le(&file[20], selection, 4);
  const std::size_t table = (kHeader + selection + 7) / 8 * 8;
  std::fill(file.begin() + kHeader + static_cast<std::ptrdiff_t>(selection),
            file.begin() + static_cast<std::ptrdiff_t>(table), std::uint8_t{0});
  const std::size_t schedules =
      std::clamp<std::size_t>(load_u32(&file[16]) % 16, 1, (file.size() - table) / kRow);
  store_le(&file[16], schedules, 4);
  store_le(&file[24], file.size(), 8);
  std::size_t next = table + schedules * kRow;
  for (std::size_t i = 0; i < schedules; ++i) {
    std::uint8_t* row = &file[table + i * kRow];
    const std::size_t left = file.size() - next;
    const std::size_t length =
        i + 1 == schedules ? left : std::min<std::size_t>(load_u32(row + 8) % 8192, left);
    store_le(row, next, 8);
    store_le(row + 8, length, 8);
    next += length;
  }
  store_le(&file[12], crc32(0, &file[16], table + schedules * kRow - 16), 4);
}

}  // namespace

void run(Input& input) {
  const unsigned kind = input.below(3);
  std::vector<std::uint8_t> rest = input.copied_rest();
  if (kind == 0) {
    load_selection(rest);
    return;
  }
  if (kind == 2) put_right(rest);
  load_file(rest);
}

}  // namespace espalier::fuzz
