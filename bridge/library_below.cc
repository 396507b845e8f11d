#include "bridge/library_below.h"

#include <algorithm>
#include <vector>

#include "base/one_line.h"
#include "bridge/mpi_below.h"

namespace espalier::bridge {

namespace {

std::string read_version() {
  // MPICH writes up to 8192 bytes, many more than the constant of Open MPI.
  std::vector<char> version(std::max(MPI_MAX_LIBRARY_VERSION_STRING, 8192));
  int length = 0;
  PMPI_Get_library_version(version.data(), &length);
  return version.data();
}

}  // namespace

bool is_open_mpi() {
  static const bool is_open = read_version().starts_with("Open MPI");
  return is_open;
}

std::string wrong_library() {
#ifdef ESPALIER_MPI_ABI
  return "";
#else
#ifdef OPEN_MPI
  constexpr bool kIsOfOpenMpi = true;
#else
  constexpr bool kIsOfOpenMpi = false;
#endif
  std::string version = read_version();
  std::replace(version.begin(), version.end(), '\t', ' ');
  // Derivatives of either have names of their own.
  const bool is_other = kIsOfOpenMpi ? version.find("MPICH") != std::string::npos : is_open_mpi();
  if (!is_other) return "";
  const std::string is = kIsOfOpenMpi ? "openmpi" : "mpich";
  const std::string expected = kIsOfOpenMpi ? "mpich" : "openmpi";
  const std::string name = one_line(version.substr(0, version.find_first_of(",\n")));
  return "libespalier-mpi-" + is + ".so does not serve this program's MPI library, '" + name +
         "'; expected libespalier-mpi-" + expected + ".so";
#endif
}

}  // namespace espalier::bridge
