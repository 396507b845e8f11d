#include "collectives/schedule/selection_writer.h"

#include <algorithm>

#include "base/crc32.h"
#include "collectives/schedule/selection_file.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

void append(std::vector<std::uint8_t>& out, std::uint64_t value, unsigned size) {
  out.resize(out.size() + size);
  store_le(out.data() + out.size() - size, value, size);
}

}  // namespace

std::vector<std::uint8_t> selection_bytes(const SelectionTable& table) {
  std::vector<std::uint8_t> bytes(kMaxSelectionBytes);
  std::size_t written = 0;
  (void)encode_selection(table, bytes.data(), bytes.size(), written);
  bytes.resize(written);
  return bytes;
}

Status write_selection_file(const SelectionTable& table,
                            const std::vector<std::vector<std::uint8_t>>& schedules,
                            std::vector<std::uint8_t>& file) {
  if (const Status status = check_selection_table(table); status != Status::kOk) return status;
  if (schedules.size() != table.schedules_count) return Status::kBadArgument;
  const std::vector<std::uint8_t> selection = selection_bytes(table);
  const std::size_t rows = (32 + selection.size() + 7) / 8 * 8;
  std::uint64_t next = rows + 16 * schedules.size();
  std::uint64_t length = next;
  for (const auto& schedule : schedules) length += schedule.size();
  std::vector<std::uint8_t> out(kScheduleMagic, kScheduleMagic + sizeof kScheduleMagic);
  append(out, kSelectionFileVersion, 4);
  append(out, 0, 4);  // the checksum, below
  append(out, schedules.size(), 4);
  append(out, selection.size(), 4);
  append(out, length, 8);
  out.insert(out.end(), selection.begin(), selection.end());
  out.resize(rows);
  for (const auto& schedule : schedules) {
    append(out, next, 8);
    append(out, schedule.size(), 8);
    next += schedule.size();
  }
  store_le(out.data() + 12, crc32(0, out.data() + 16, out.size() - 16), 4);
  for (const auto& schedule : schedules) out.insert(out.end(), schedule.begin(), schedule.end());
  file = std::move(out);
  return Status::kOk;
}

}  // namespace espalier
