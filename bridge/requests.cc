#include "bridge/requests.h"

#include "bridge/library_below.h"
#include "bridge/state.h"
#include "bridge/take.h"

namespace espalier::bridge {
namespace {

int cancel_error() { return is_open_mpi() ? MPI_ERR_REQUEST : MPI_ERR_INTERN; }
int free_error() { return is_open_mpi() ? MPI_ERR_REQUEST : MPI_ERR_OTHER; }

bool is_refused(MPI_Request request, int error, int& result) {
  const MPI_Comm comm = comm_of(request);
  if (comm == MPI_COMM_NULL) return false;
  result = raise(comm, error);
  return true;
}

}  // namespace

bool is_cancel_handled(MPI_Request request, int& result) {
  return is_refused(request, cancel_error(), result);
}
bool is_free_handled(MPI_Request request, int& result) {
  return is_refused(request, free_error(), result);
}

}  // namespace espalier::bridge
