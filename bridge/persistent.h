#pragma once
// Persistent collectives: MPI_Allreduce_init() and the others, and their starts.
//
// Such a request is a persistent receive of the MPI library for an empty message of this process to
// itself. MPI_Start() starts the receive with Espalier's collective, whose completion sends the
// message. So the MPI library's own MPI_Wait(), MPI_Testany() and all others find the request
// active, complete and inactive again.
//
// Processes may start such requests in different orders, also among other collectives of their
// communicator. So each has an Espalier communicator of its own while it lives.

#include <memory>

#include "bridge/arguments.h"
#include "bridge/counts.h"

namespace espalier::bridge {

// Makes the request on `own`, of reserve_for_persistent(). Returns an MPI error.
[[nodiscard]] int make_persistent(Routine routine, std::shared_ptr<Attached> own,
                                  const Arguments& arguments, MPI_Request* request);
// Starts the request if it is one of these; then `result` is its error. False: it is not.
[[nodiscard]] bool is_persistent_start(MPI_Request* request, int& result);
// Forgets the request before the MPI library frees it.
void forget_persistent(MPI_Request request);

}  // namespace espalier::bridge
