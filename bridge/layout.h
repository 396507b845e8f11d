#pragma once
// Where the data of a collective is in the caller's memory, and how it becomes a row without gaps.

#include <cstdint>
#include <vector>

#include "bridge/mpi_below.h"
#include "bridge/state.h"

namespace espalier::bridge {

// Elements in the caller's memory.
struct Data {
  const void* bytes = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// Parts of one message, in order of ranks.
struct Parts {
  const void* bytes = nullptr;
  std::vector<int> counts;
  std::vector<int> offsets;  // elements
  MPI_Datatype type = MPI_DATATYPE_NULL;

  // Parts of `count` elements each, without gaps.
  static Parts equal(const void* bytes, int count, MPI_Datatype type, std::uint32_t ranks);
  // With the vectors of a caller.
  static Parts unequal(const void* bytes, const int* counts, const int* offsets, MPI_Datatype type,
                       std::uint32_t ranks);
  [[nodiscard]] std::uint64_t bytes_of(std::size_t part) const;
  [[nodiscard]] std::uint64_t all_bytes() const;
  // Whether the parts are a row of bytes as they are.
  [[nodiscard]] bool is_row() const;
  [[nodiscard]] void* address(std::size_t part) const;
};

// Returns the data as a row of bytes: where it is, or packed into work.send_copy.
[[nodiscard]] const void* row_of(Work& work, const Data& data, MPI_Comm comm);
[[nodiscard]] const void* row_of(Work& work, const Parts& parts, MPI_Comm comm);
// Returns where a row of bytes may be received, and lets work.finish unpack it if that is not where
// the caller has it.
[[nodiscard]] void* room_for(Work& work, const Data& data, MPI_Comm comm);
[[nodiscard]] void* room_for(Work& work, const Parts& parts, MPI_Comm comm);

}  // namespace espalier::bridge
