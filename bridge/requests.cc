#include "bridge/requests.h"

#include "bridge/state.h"
#include "bridge/take.h"

namespace espalier::bridge {
namespace {

#ifdef OPEN_MPI
constexpr int kCancelError = MPI_ERR_REQUEST, kFreeError = MPI_ERR_REQUEST;
#else
constexpr int kCancelError = MPI_ERR_INTERN, kFreeError = MPI_ERR_OTHER;
#endif

bool is_refused(MPI_Request request, int error, int& result) {
  const MPI_Comm comm = comm_of(request);
  if (comm == MPI_COMM_NULL) return false;
  result = raise(comm, error);
  return true;
}

}  // namespace

bool is_cancel_handled(MPI_Request request, int& result) {
  return is_refused(request, kCancelError, result);
}
bool is_free_handled(MPI_Request request, int& result) {
  return is_refused(request, kFreeError, result);
}

}  // namespace espalier::bridge
