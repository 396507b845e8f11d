#pragma once
// Which MPI library is below: the classes of some errors depend on it.

#include <string>

namespace espalier::bridge {

// Whether it is Open MPI. May be called before MPI_Init. The libraries of the standard's ABI differ
// only at run time.
[[nodiscard]] bool is_open_mpi();
// Returns why this bridge cannot serve, in one line: it was compiled for the other MPI library. Its
// constants are not those of the one below. Empty: it can.
[[nodiscard]] std::string wrong_library();

}  // namespace espalier::bridge
