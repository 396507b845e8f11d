#include <algorithm>

#include "base/crc32.h"
#include "espalier/collectives/schedule/file.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier {
namespace {

void put(std::vector<std::uint8_t>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

}  // namespace

ScheduleFileWriter::ScheduleFileWriter(std::string_view spec, std::uint64_t topology_digest,
                                       std::uint32_t ranks, std::uint32_t nodes)
    : spec_(spec), topology_digest_(topology_digest), ranks_(ranks), nodes_(nodes) {}

Status ScheduleFileWriter::add(const Program& program) {
  if (lengths_.size() >= nodes_ || program.node != lengths_.size() || program.ranks != ranks_ ||
      program_nodes(program) != nodes_ || program.topology_digest != topology_digest_) {
    return Status::kBadArgument;
  }
  const std::size_t before = descriptors_.size();
  const std::size_t room = kMaxDescriptorBytes - kMaxTableBytes + program.table.size;
  descriptors_.resize(before + room);
  std::size_t written = 0;
  const Status status = encode_program(program, descriptors_.data() + before, room, written);
  descriptors_.resize(before + written);
  if (status == Status::kOk) lengths_.push_back(static_cast<std::uint32_t>(written));
  return status;
}

Status ScheduleFileWriter::finish(std::vector<std::uint8_t>& file) const {
  if (nodes_ == 0 || lengths_.size() != nodes_) return Status::kBadArgument;
  const std::size_t table_offset = (44 + spec_.size() + 7) / 8 * 8;
  const std::size_t descriptors_offset = table_offset + 16 * lengths_.size();
  std::vector<std::uint8_t> out(kScheduleMagic, kScheduleMagic + sizeof kScheduleMagic);
  out.reserve(descriptors_offset + descriptors_.size());
  put(out, kScheduleFileVersion, 4);
  put(out, 0, 4);  // the checksum, below
  put(out, nodes_, 4);
  put(out, ranks_, 4);
  put(out, topology_digest_, 8);
  put(out, descriptors_offset + descriptors_.size(), 8);
  put(out, spec_.size(), 4);
  out.insert(out.end(), spec_.begin(), spec_.end());
  out.resize(table_offset);
  std::size_t offset = 0;
  for (const std::uint32_t length : lengths_) {
    put(out, descriptors_offset + offset, 8);
    put(out, length, 4);
    put(out, crc32(0, descriptors_.data() + offset, length), 4);
    offset += length;
  }
  std::vector<std::uint8_t> checksum;
  put(checksum, crc32(0, out.data() + 16, out.size() - 16), 4);
  std::copy(checksum.begin(), checksum.end(), out.begin() + 12);
  out.insert(out.end(), descriptors_.begin(), descriptors_.end());
  file = std::move(out);
  return Status::kOk;
}

}  // namespace espalier
