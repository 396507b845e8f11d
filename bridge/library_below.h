#pragma once
// Which MPI library is below: the classes of some errors depend on it.

namespace espalier::bridge {

// Whether it is Open MPI. May be called before MPI_Init. The libraries of the standard's ABI differ
// only at run time.
[[nodiscard]] bool is_open_mpi();

}  // namespace espalier::bridge
