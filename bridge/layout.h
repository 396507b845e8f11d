#pragma once
// Where the data of a collective is in the caller's memory, and how it becomes a row without gaps.

#include <cstdint>
#include <vector>

#include "bridge/mpi_below.h"

namespace espalier::bridge {

struct Work;

// A vector of an MPI function: of int, of MPI_Count or of MPI_Aint.
struct Numbers {
  const int* narrow = nullptr;
  const MPI_Count* wide = nullptr;
  const MPI_Aint* offsets = nullptr;

  Numbers() = default;
  Numbers(const int* values) : narrow(values) {}      // NOLINT(google-explicit-constructor)
  Numbers(const MPI_Count* values) : wide(values) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] static Numbers of_offsets(const MPI_Aint* values) {
    Numbers made;
    made.offsets = values;
    return made;
  }
  [[nodiscard]] bool is_given() const {
    return narrow != nullptr || wide != nullptr || offsets != nullptr;
  }
  [[nodiscard]] std::int64_t operator[](std::size_t i) const {
    return narrow != nullptr ? narrow[i] : wide != nullptr ? wide[i] : offsets[i];
  }
};

// Elements in the caller's memory.
struct Data {
  const void* bytes = nullptr;
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  [[nodiscard]] std::uint64_t size() const;  // bytes of the elements' data
};

// Parts of one message, in order of ranks.
struct Parts {
  const void* bytes = nullptr;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> offsets;  // elements
  MPI_Datatype type = MPI_DATATYPE_NULL;

  // Parts of `count` elements each, without gaps.
  static Parts equal(const void* bytes, std::int64_t count, MPI_Datatype type, std::uint32_t ranks);
  // With the vectors of a caller.
  static Parts unequal(const void* bytes, Numbers counts, Numbers offsets, MPI_Datatype type,
                       std::uint32_t ranks);
  [[nodiscard]] std::uint64_t bytes_of(std::size_t part) const;
  [[nodiscard]] std::uint64_t all_bytes() const;
  // Whether the parts are a row of bytes as they are.
  [[nodiscard]] bool is_row() const;
  [[nodiscard]] void* address(std::size_t part) const;
  [[nodiscard]] Data data(std::size_t part) const { return {address(part), counts[part], type}; }
};

// Copies `count` elements to a row of their bytes, or back. Takes MPI_BOTTOM and any size.
void pack(const void* from, std::int64_t count, MPI_Datatype type, std::uint8_t* row);
void unpack(const std::uint8_t* row, void* to, std::int64_t count, MPI_Datatype type);

// Returns the data as a row of bytes: where it is, or packed into work.send_copy.
[[nodiscard]] const void* row_of(Work& work, const Data& data);
[[nodiscard]] const void* row_of(Work& work, const Parts& parts);
// Returns where a row of bytes may be received. If the caller has the row elsewhere, work.finish
// unpacks it. The work keeps the type.
[[nodiscard]] void* room_for(Work& work, const Data& data);
[[nodiscard]] void* room_for(Work& work, const Parts& parts);

}  // namespace espalier::bridge
