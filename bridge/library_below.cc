#include "bridge/library_below.h"

#include <array>
#include <string_view>

#include "bridge/mpi_below.h"

namespace espalier::bridge {

bool is_open_mpi() {
  static const bool is_open = [] {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version = {};
    int length = 0;
    PMPI_Get_library_version(version.data(), &length);
    return std::string_view(version.data()).starts_with("Open MPI");
  }();
  return is_open;
}

}  // namespace espalier::bridge
