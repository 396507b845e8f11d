#include "bridge/layout.h"

#include <algorithm>

namespace espalier::bridge {
namespace {

// Packing between processes of one kind of host copies the elements' bytes, in order.
void pack(const void* from, int count, MPI_Datatype type, std::uint8_t* to, std::uint64_t bytes,
          MPI_Comm comm) {
  int position = 0;
  if (bytes != 0) PMPI_Pack(from, count, type, to, static_cast<int>(bytes), &position, comm);
}
void unpack(const std::uint8_t* from, std::uint64_t bytes, void* to, int count, MPI_Datatype type,
            MPI_Comm comm) {
  int position = 0;
  if (bytes == 0) return;
  PMPI_Unpack(from, static_cast<int>(bytes), &position, to, count, type, comm);
}

// A dummy for messages of no bytes, whose buffers the caller may leave out.
std::uint8_t nothing[16];

}  // namespace

Parts Parts::equal(const void* bytes, int count, MPI_Datatype type, std::uint32_t ranks) {
  Parts parts{bytes, std::vector<int>(ranks, count), std::vector<int>(ranks), type};
  for (std::uint32_t i = 0; i < ranks; ++i) parts.offsets[i] = static_cast<int>(i) * count;
  return parts;
}
Parts Parts::unequal(const void* bytes, const int* counts, const int* offsets, MPI_Datatype type,
                     std::uint32_t ranks) {
  return {bytes, {counts, counts + ranks}, {offsets, offsets + ranks}, type};
}

std::uint64_t Parts::bytes_of(std::size_t part) const {
  return static_cast<std::uint64_t>(counts[part]) * size_of(type);
}
std::uint64_t Parts::all_bytes() const {
  std::uint64_t sum = 0;
  for (std::size_t part = 0; part < counts.size(); ++part) sum += bytes_of(part);
  return sum;
}
bool Parts::is_row() const {
  if (!is_dense(type)) return false;
  std::int64_t next = 0;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    if (counts[part] != 0 && offsets[part] != next) return false;
    next += counts[part];
  }
  return true;
}
void* Parts::address(std::size_t part) const {
  auto* first = const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(bytes));
  return first + offsets[part] * extent_of(type);
}

const void* row_of(Work& work, const Data& data, MPI_Comm comm) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(data.count) * size_of(data.type);
  if (bytes == 0) return nothing;
  if (is_dense(data.type)) return data.bytes;
  work.send_copy.resize(bytes);
  pack(data.bytes, data.count, data.type, work.send_copy.data(), bytes, comm);
  return work.send_copy.data();
}

const void* row_of(Work& work, const Parts& parts, MPI_Comm comm) {
  const std::uint64_t bytes = parts.all_bytes();
  if (bytes == 0) return nothing;
  if (parts.is_row()) return parts.bytes;
  work.send_copy.resize(bytes);
  std::uint64_t next = 0;
  for (std::size_t part = 0; part < parts.counts.size(); ++part) {
    pack(parts.address(part), parts.counts[part], parts.type, work.send_copy.data() + next,
         parts.bytes_of(part), comm);
    next += parts.bytes_of(part);
  }
  return work.send_copy.data();
}

void* room_for(Work& work, const Data& data, MPI_Comm comm) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(data.count) * size_of(data.type);
  if (bytes == 0) return nothing;
  if (is_dense(data.type)) return const_cast<void*>(data.bytes);
  work.receive_copy.resize(bytes);
  work.finish = [&work, data, bytes, comm] {
    unpack(work.receive_copy.data(), bytes, const_cast<void*>(data.bytes), data.count, data.type,
           comm);
  };
  return work.receive_copy.data();
}

void* room_for(Work& work, const Parts& parts, MPI_Comm comm) {
  const std::uint64_t bytes = parts.all_bytes();
  if (bytes == 0) return nothing;
  if (parts.is_row()) return const_cast<void*>(parts.bytes);
  work.receive_copy.resize(bytes);
  work.finish = [&work, parts, comm] {
    std::uint64_t next = 0;
    for (std::size_t part = 0; part < parts.counts.size(); ++part) {
      unpack(work.receive_copy.data() + next, parts.bytes_of(part), parts.address(part),
             parts.counts[part], parts.type, comm);
      next += parts.bytes_of(part);
    }
  };
  return work.receive_copy.data();
}

}  // namespace espalier::bridge
