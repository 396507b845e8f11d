#include "bridge/layout.h"

#include <algorithm>
#include <climits>

#include "bridge/state.h"
#include "bridge/types.h"

namespace espalier::bridge {
namespace {

// PMPI_Pack() counts bytes in an int.
constexpr std::uint64_t kMaxPackedBytes = std::uint64_t{1} << 30;

// A dummy for messages of no bytes, whose buffers the caller may leave out.
std::uint8_t nothing[16];

// `base` may be MPI_BOTTOM, which is a null pointer in both MPI libraries.
void* moved(const void* base, std::int64_t bytes) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base) +
                                 static_cast<std::uintptr_t>(bytes));
}

// A type of this many bytes in a row.
MPI_Datatype make_row_type(std::uint64_t bytes) {
  constexpr std::uint64_t kUnit = std::uint64_t{1} << 20;
  MPI_Datatype unit = MPI_DATATYPE_NULL, units = MPI_DATATYPE_NULL, row = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(static_cast<int>(kUnit), MPI_BYTE, &unit);
  PMPI_Type_contiguous(static_cast<int>(bytes / kUnit), unit, &units);
  const int counts[] = {1, static_cast<int>(bytes % kUnit)};
  const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(bytes / kUnit * kUnit)};
  const MPI_Datatype types[] = {units, MPI_BYTE};
  PMPI_Type_create_struct(2, counts, offsets, types, &row);
  PMPI_Type_commit(&row);
  PMPI_Type_free(&unit);
  PMPI_Type_free(&units);
  return row;
}

// Copies by a message of this process to itself. MPICH's PMPI_Pack() refuses MPI_BOTTOM, and no
// PMPI_Pack() of both libraries takes an element of 2 GiB.
void send_to_self(const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count,
                  MPI_Datatype to_type) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  PMPI_Sendrecv(from, from_count, from_type, 0, kCopyTag, to, to_count, to_type, 0, kCopyTag,
                own_comm(), MPI_STATUS_IGNORE);
}

// Calls `copy` with the place, elements and bytes of as many elements as one PMPI_Pack() can count.
// What it does not take goes by a message, whose other side has the type `row`; else that is null.
template <typename Copy>
void in_pieces(const void* data, std::int64_t count, MPI_Datatype type, Copy copy) {
  const std::uint64_t size = size_of(type);
  if (size == 0) return;
  const std::int64_t extent = extent_of(type);
  for (std::int64_t done = 0; done < count;) {
    const void* const base = moved(data, done * extent);
    const bool by_message = base == nullptr || size > kMaxPackedBytes;
    const std::uint64_t most = by_message ? INT_MAX : kMaxPackedBytes / size;
    const std::int64_t now = std::min(count - done, static_cast<std::int64_t>(most));
    const std::uint64_t bytes = static_cast<std::uint64_t>(now) * size;
    MPI_Datatype row = by_message ? make_row_type(bytes) : MPI_DATATYPE_NULL;
    copy(const_cast<void*>(base), static_cast<int>(now), bytes, row);
    if (by_message) PMPI_Type_free(&row);
    done += now;
  }
}

}  // namespace

std::uint64_t Data::size() const { return static_cast<std::uint64_t>(count) * size_of(type); }

void pack(const void* from, std::int64_t count, MPI_Datatype type, std::uint8_t* row) {
  in_pieces(from, count, type,
            [&](const void* base, int elements, std::uint64_t bytes, MPI_Datatype row_type) {
              int position = 0;
              if (row_type != MPI_DATATYPE_NULL) {
                send_to_self(base, elements, type, row, 1, row_type);
              } else {
                PMPI_Pack(base, elements, type, row, static_cast<int>(bytes), &position,
                          own_comm());
              }
              row += bytes;
            });
}

void unpack(const std::uint8_t* row, void* to, std::int64_t count, MPI_Datatype type) {
  in_pieces(
      to, count, type, [&](void* base, int elements, std::uint64_t bytes, MPI_Datatype row_type) {
        int position = 0;
        if (row_type != MPI_DATATYPE_NULL) {
          send_to_self(row, 1, row_type, base, elements, type);
        } else {
          PMPI_Unpack(row, static_cast<int>(bytes), &position, base, elements, type, own_comm());
        }
        row += bytes;
      });
}

Parts Parts::equal(const void* bytes, std::int64_t count, MPI_Datatype type, std::uint32_t ranks) {
  Parts parts{bytes, std::vector<std::int64_t>(ranks, count), std::vector<std::int64_t>(ranks),
              type};
  for (std::uint32_t i = 0; i < ranks; ++i) parts.offsets[i] = i * count;
  return parts;
}
Parts Parts::unequal(const void* bytes, Numbers counts, Numbers offsets, MPI_Datatype type,
                     std::uint32_t ranks) {
  Parts parts{bytes, {}, {}, type};
  for (std::uint32_t i = 0; i < ranks; ++i) {
    parts.counts.push_back(counts[i]);
    parts.offsets.push_back(offsets[i]);
  }
  return parts;
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
  return moved(bytes, offsets[part] * extent_of(type));
}

const void* row_of(Work& work, const Data& data) {
  const std::uint64_t bytes = data.size();
  if (bytes == 0) return nothing;
  if (is_dense(data.type)) return data.bytes;
  work.send_copy.resize(bytes);
  pack(data.bytes, data.count, data.type, work.send_copy.data());
  return work.send_copy.data();
}

const void* row_of(Work& work, const Parts& parts) {
  const std::uint64_t bytes = parts.all_bytes();
  if (bytes == 0) return nothing;
  if (parts.is_row()) return parts.bytes;
  work.send_copy.resize(bytes);
  std::uint64_t next = 0;
  for (std::size_t part = 0; part < parts.counts.size(); ++part) {
    pack(parts.address(part), parts.counts[part], parts.type, work.send_copy.data() + next);
    next += parts.bytes_of(part);
  }
  return work.send_copy.data();
}

void* room_for(Work& work, const Data& data) {
  const std::uint64_t bytes = data.size();
  if (bytes == 0) return nothing;
  if (is_dense(data.type)) return const_cast<void*>(data.bytes);
  work.receive_copy.resize(bytes);
  work.kept.keep(data.type);
  work.finish = [&work, data] {
    unpack(work.receive_copy.data(), const_cast<void*>(data.bytes), data.count, data.type);
  };
  return work.receive_copy.data();
}

void* room_for(Work& work, const Parts& parts) {
  const std::uint64_t bytes = parts.all_bytes();
  if (bytes == 0) return nothing;
  if (parts.is_row()) return const_cast<void*>(parts.bytes);
  work.receive_copy.resize(bytes);
  work.kept.keep(parts.type);
  work.finish = [&work, parts] {
    std::uint64_t next = 0;
    for (std::size_t part = 0; part < parts.counts.size(); ++part) {
      unpack(work.receive_copy.data() + next, parts.address(part), parts.counts[part], parts.type);
      next += parts.bytes_of(part);
    }
  };
  return work.receive_copy.data();
}

}  // namespace espalier::bridge
