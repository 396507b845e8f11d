#pragma once
// Datatypes: facts of each, and keeping one that the program frees while a collective needs it.

#include <cstdint>
#include <vector>

#include "bridge/mpi_below.h"

namespace espalier::bridge {

// Lists the predefined types of the MPI library. After MPI_Init; later calls do nothing.
void list_named_types();

// Whether the MPI library has this predefined type, of those that list_named_types() knows.
[[nodiscard]] bool is_listed(MPI_Datatype type);
// Whether `type` is predefined. False for MPI_DATATYPE_NULL and for derived types.
[[nodiscard]] bool is_named(MPI_Datatype type);
// Whether elements of the type follow each other without gaps, each with its bytes in the order of
// memory: a basic type, or a row of them.
[[nodiscard]] bool is_dense(MPI_Datatype type);
// Returns the bytes of one element's data, and from one element to the next.
[[nodiscard]] std::uint64_t size_of(MPI_Datatype type);
[[nodiscard]] std::int64_t extent_of(MPI_Datatype type);

// Types that must stay until this object ends. A type that the program frees before is freed then,
// so that a user's operator still gets the program's own handle.
class KeptTypes {
 public:
  KeptTypes() = default;
  ~KeptTypes();
  KeptTypes(const KeptTypes&) = delete;
  KeptTypes& operator=(const KeptTypes&) = delete;
  void keep(MPI_Datatype type);

 private:
  std::vector<MPI_Datatype> types_;  // derived ones
};

// MPI_Type_free(): whether a collective keeps the type, which is then freed later.
[[nodiscard]] bool is_freed_later(MPI_Datatype type);

}  // namespace espalier::bridge
