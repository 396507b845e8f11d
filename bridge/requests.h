#pragma once
// The functions that MPI forbids for the request of a collective that is not complete.

#include "bridge/mpi_below.h"

namespace espalier::bridge {

// MPI_Cancel() and MPI_Request_free(): whether the request is Espalier's and active. Then `result`
// is the error, of the class that the MPI library has for its own.
[[nodiscard]] bool is_cancel_handled(MPI_Request request, int& result);
[[nodiscard]] bool is_free_handled(MPI_Request request, int& result);

}  // namespace espalier::bridge
