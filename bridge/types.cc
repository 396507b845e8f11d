#include "bridge/types.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace espalier::bridge {
namespace {

struct NamedType {
  MPI_Datatype type;
  std::uint64_t size;
  std::int64_t extent;
  bool operator<(const NamedType& other) const { return type < other.type; }
};

// A type that collectives keep.
struct Use {
  std::size_t collectives = 0;
  bool is_freed = false;  // by the program
};

std::vector<NamedType> named_types;  // sorted; constant after list_named_types()
std::map<MPI_Datatype, Use> uses;
std::mutex uses_mutex;

const NamedType* find_named(MPI_Datatype type) {
  const auto found =
      std::lower_bound(named_types.begin(), named_types.end(), NamedType{type, 0, 0});
  return found != named_types.end() && found->type == type ? &*found : nullptr;
}

}  // namespace

void list_named_types() {
  if (!named_types.empty()) return;
  for (MPI_Datatype type : {MPI_CHAR,
                            MPI_SIGNED_CHAR,
                            MPI_UNSIGNED_CHAR,
                            MPI_BYTE,
                            MPI_WCHAR,
                            MPI_SHORT,
                            MPI_UNSIGNED_SHORT,
                            MPI_INT,
                            MPI_UNSIGNED,
                            MPI_LONG,
                            MPI_UNSIGNED_LONG,
                            MPI_LONG_LONG,
                            MPI_UNSIGNED_LONG_LONG,
                            MPI_FLOAT,
                            MPI_DOUBLE,
                            MPI_LONG_DOUBLE,
                            MPI_INT8_T,
                            MPI_INT16_T,
                            MPI_INT32_T,
                            MPI_INT64_T,
                            MPI_UINT8_T,
                            MPI_UINT16_T,
                            MPI_UINT32_T,
                            MPI_UINT64_T,
                            MPI_AINT,
                            MPI_COUNT,
                            MPI_OFFSET,
                            MPI_C_BOOL,
                            MPI_C_FLOAT_COMPLEX,
                            MPI_C_DOUBLE_COMPLEX,
                            MPI_C_LONG_DOUBLE_COMPLEX,
                            MPI_CXX_BOOL,
                            MPI_PACKED,
                            MPI_2INT,
                            MPI_FLOAT_INT,
                            MPI_DOUBLE_INT,
                            MPI_LONG_INT,
                            MPI_SHORT_INT,
                            MPI_LONG_DOUBLE_INT,
                            MPI_CHARACTER,
                            MPI_LOGICAL,
                            MPI_INTEGER,
                            MPI_INTEGER1,
                            MPI_INTEGER2,
                            MPI_INTEGER4,
                            MPI_INTEGER8,
                            MPI_REAL,
                            MPI_REAL4,
                            MPI_REAL8,
                            MPI_DOUBLE_PRECISION,
                            MPI_COMPLEX,
                            MPI_DOUBLE_COMPLEX,
                            MPI_2INTEGER,
                            MPI_2REAL,
                            MPI_2DOUBLE_PRECISION}) {
    if (type == MPI_DATATYPE_NULL) continue;
    int size = 0;
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_size(type, &size);
    if (size == MPI_UNDEFINED) continue;  // in the standard's ABI: a type that the library lacks
    PMPI_Type_get_extent(type, &lower, &extent);
    named_types.push_back({type, static_cast<std::uint64_t>(size), extent});
  }
  std::sort(named_types.begin(), named_types.end());
}

bool is_listed(MPI_Datatype type) { return find_named(type) != nullptr; }

bool is_named(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return false;
  if (find_named(type) != nullptr) return true;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

std::uint64_t size_of(MPI_Datatype type) {
  if (const NamedType* const named = find_named(type)) return named->size;
  MPI_Count size = 0;  // an int cannot have every size
#if MPI_VERSION >= 4
  PMPI_Type_size_c(type, &size);
#else
  PMPI_Type_size_x(type, &size);  // deprecated since MPI 4.1
#endif
  return static_cast<std::uint64_t>(size);
}

std::int64_t extent_of(MPI_Datatype type) {
  if (const NamedType* const named = find_named(type)) return named->extent;
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

bool is_dense(MPI_Datatype type) {
  if (const NamedType* const named = find_named(type)) {
    return named->size == static_cast<std::uint64_t>(named->extent);
  }
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner == MPI_COMBINER_NAMED) {
    return size_of(type) == static_cast<std::uint64_t>(extent_of(type));
  }
  if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) return false;
  // MPICH has other numbers for the contents of a type that was made with MPI_Count.
  if (types != 1 || addresses != 0 || integers > 1) return false;
  int count = 0;
  MPI_Aint no_address = 0;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if (PMPI_Type_get_contents(type, integers, 0, 1, &count, &no_address, &inner) != MPI_SUCCESS) {
    return false;
  }
  const bool dense = is_dense(inner);
  if (!is_named(inner)) PMPI_Type_free(&inner);
  return dense;
}

KeptTypes::~KeptTypes() {
  std::vector<MPI_Datatype> unused;
  {
    const std::lock_guard lock(uses_mutex);
    for (const MPI_Datatype type : types_) {
      const auto found = uses.find(type);
      if (--found->second.collectives != 0) continue;
      if (found->second.is_freed) unused.push_back(type);
      uses.erase(found);
    }
  }
  for (MPI_Datatype& type : unused) PMPI_Type_free(&type);
}

void KeptTypes::keep(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL || is_named(type)) return;
  const std::lock_guard lock(uses_mutex);
  ++uses[type].collectives;
  types_.push_back(type);
}

bool is_freed_later(MPI_Datatype type) {
  const std::lock_guard lock(uses_mutex);
  const auto found = uses.find(type);
  // A second free of the same type is the program's error, for the MPI library.
  return found != uses.end() && !std::exchange(found->second.is_freed, true);
}

}  // namespace espalier::bridge
