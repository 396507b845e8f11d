#pragma once
// Every call of a collective passes here: Espalier takes it, or the MPI library below.

#include "bridge/arguments.h"
#include "bridge/counts.h"

namespace espalier::bridge {

// Takes the call and sets `result` to its error or MPI_SUCCESS. False: the MPI library takes it.
// `request`: of a non-blocking or persistent call.
[[nodiscard]] bool is_handled(Routine routine, Form form, Arguments& arguments,
                              MPI_Request* request, int& result);

// Gives the error to the communicator's handler, and returns it.
int raise(MPI_Comm comm, int error);

}  // namespace espalier::bridge
