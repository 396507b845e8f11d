#include "espalier/collectives/schedule/file.h"

#include <cstring>

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

constexpr std::size_t kHeaderBytes = 44;
constexpr std::size_t kRowBytes = 16;

}  // namespace

Status ScheduleFile::open(const std::uint8_t* bytes, std::size_t size) {
  *this = ScheduleFile();
  if (bytes == nullptr || size < sizeof kScheduleMagic) return Status::kTruncated;
  if (std::memcmp(bytes, kScheduleMagic, sizeof kScheduleMagic) != 0) return Status::kMalformed;
  if (size < kHeaderBytes) return Status::kTruncated;
  if (load_u32(bytes + 8) != kScheduleFileVersion) return Status::kBadVersion;
  const std::uint64_t nodes = load_u32(bytes + 16);
  const std::uint64_t spec_size = load_u32(bytes + 40);
  const std::uint64_t length = load_u64(bytes + 32);
  const std::uint64_t table_offset = (kHeaderBytes + spec_size + 7) / 8 * 8;
  const std::uint64_t table_end = table_offset + nodes * kRowBytes;
  // The lengths are not verified yet: a flipped bit in one may look like a short file.
  if (size < table_end || size < length) return Status::kTruncated;
  if (crc32(0, bytes + 16, static_cast<std::size_t>(table_end - 16)) != load_u32(bytes + 12) ||
      length != size) {
    return Status::kCorrupt;
  }
  const std::uint32_t ranks = load_u32(bytes + 20);
  if (nodes == 0 || nodes > kMaxNodes || ranks == 0 || ranks > nodes) return Status::kMalformed;
  bytes_ = bytes;
  size_ = size;
  nodes_ = static_cast<std::uint32_t>(nodes);
  ranks_ = ranks;
  topology_digest_ = load_u64(bytes + 24);
  spec_ = reinterpret_cast<const char*>(bytes + kHeaderBytes);
  spec_size_ = static_cast<std::uint32_t>(spec_size);
  table_ = bytes + table_offset;
  return check_table();
}

// Checks that every byte after the table belongs to exactly one descriptor. So some checksum covers
// every byte.
Status ScheduleFile::check_table() {
  std::uint64_t next =
      static_cast<std::uint64_t>(table_ - bytes_) + nodes_ * std::uint64_t{kRowBytes};
  for (std::uint32_t node = 0; node < nodes_; ++node) {
    const std::uint8_t* row = table_ + node * std::size_t{kRowBytes};
    if (load_u64(row) != next) break;
    next += load_u32(row + 8);
    if (next > size_) break;
    if (node + 1 == nodes_ && next == size_) return Status::kOk;
  }
  *this = ScheduleFile();
  return Status::kMalformed;
}

Status ScheduleFile::descriptor(std::uint32_t node, const std::uint8_t*& bytes,
                                std::size_t& size) const {
  if (node >= nodes_) return Status::kBadArgument;
  const std::uint8_t* row = table_ + node * std::size_t{kRowBytes};
  const std::uint8_t* found = bytes_ + load_u64(row);
  const std::size_t length = load_u32(row + 8);
  if (crc32(0, found, length) != load_u32(row + 12)) return Status::kCorrupt;
  bytes = found;
  size = length;
  return Status::kOk;
}

Status ScheduleFile::program(std::uint32_t node, DecodedProgram& out) const {
  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  Status status = descriptor(node, bytes, size);
  if (status == Status::kOk) status = decode_program(bytes, size, topology_digest_, node, out);
  const bool fits = out.ranks == ranks_ && program_nodes(out) == nodes_;
  if (status == Status::kOk && !fits) status = Status::kMalformed;
  if (status != Status::kOk) out.clear();
  return status;
}

}  // namespace espalier
