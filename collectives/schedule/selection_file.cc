#include "collectives/schedule/selection_file.h"

#include <cstring>

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"

#if ESPALIER_MAX_SELECTIONS > 0
namespace espalier {
namespace {

constexpr std::size_t kSelectionHeaderBytes = 32;
constexpr std::size_t kScheduleRowBytes = 16;

}  // namespace

bool is_selection_file(const std::uint8_t* bytes, std::size_t size) {
  return bytes != nullptr && size >= 12 &&
         std::memcmp(bytes, kScheduleMagic, sizeof kScheduleMagic) == 0 &&
         load_u32(bytes + 8) == kSelectionFileVersion;
}

Status SelectionFile::open(const std::uint8_t* bytes, std::size_t size) {
  *this = SelectionFile();
  const Status status = open_into(bytes, size);
  if (status != Status::kOk) *this = SelectionFile();
  return status;
}

Status SelectionFile::open_into(const std::uint8_t* bytes, std::size_t size) {
  if (bytes == nullptr || size < sizeof kScheduleMagic) return Status::kTruncated;
  if (std::memcmp(bytes, kScheduleMagic, sizeof kScheduleMagic) != 0) return Status::kMalformed;
  if (size < kSelectionHeaderBytes) return Status::kTruncated;
  if (load_u32(bytes + 8) != kSelectionFileVersion) return Status::kBadVersion;
  const std::uint64_t schedules = load_u32(bytes + 16);
  const std::uint64_t selection = load_u32(bytes + 20);
  const std::uint64_t length = load_u64(bytes + 24);
  const std::uint64_t table = (kSelectionHeaderBytes + selection + 7) / 8 * 8;
  std::uint64_t next = table + schedules * kScheduleRowBytes;
  // The lengths are not verified yet: a flipped bit in one may look like a short file.
  if (size < next || size < length) return Status::kTruncated;
  if (crc32(0, bytes + 16, static_cast<std::size_t>(next - 16)) != load_u32(bytes + 12) ||
      length != size) {
    return Status::kCorrupt;
  }
  Status status = decode_selection(bytes + kSelectionHeaderBytes,
                                   static_cast<std::size_t>(selection), kAnyTopology, selected_);
  if (status != Status::kOk) return status;
  if (schedules != selected_.table.schedules_count) return Status::kMalformed;
  for (std::uint64_t i = kSelectionHeaderBytes + selection; i < table; ++i) {
    if (bytes[i] != 0) return Status::kMalformed;
  }
  bytes_ = bytes;
  table_ = bytes + table;
  for (std::uint32_t i = 0; i < schedules; ++i) {
    const std::uint8_t* row = table_ + i * kScheduleRowBytes;
    const std::uint64_t row_length = load_u64(row + 8);
    if (load_u64(row) != next || row_length > size - next) return Status::kMalformed;
    ScheduleFile& file = files_[i];
    status = file.open(bytes + next, static_cast<std::size_t>(row_length));
    if (status != Status::kOk) return status;
    if (file.topology_digest() != selected_.table.topology_digest ||
        file.ranks() != files_[0].ranks()) {
      return Status::kMalformed;
    }
    next += row_length;
  }
  return next == size ? Status::kOk : Status::kMalformed;
}

const std::uint8_t* SelectionFile::bytes(std::uint32_t index, std::size_t& size) const {
  const std::uint8_t* row = table_ + index * kScheduleRowBytes;
  size = static_cast<std::size_t>(load_u64(row + 8));
  return bytes_ + load_u64(row);
}

const std::uint8_t* SelectionFile::selection(std::size_t& size) const {
  size = load_u32(bytes_ + 20);
  return bytes_ + kSelectionHeaderBytes;
}

Status SelectionFile::program(std::uint32_t index, std::uint32_t node, DecodedProgram& out) const {
  Status status = files_[index].program(node, out);
  if (status == Status::kOk) status = check_selected(selected_, index, out);
  if (status != Status::kOk) out.clear();
  return status;
}

}  // namespace espalier
#endif
