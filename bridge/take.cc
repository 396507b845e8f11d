#include "bridge/take.h"

#include <memory>

#include "bridge/persistent.h"
#include "bridge/prepare.h"

namespace espalier::bridge {

int raise(MPI_Comm comm, int error) {
  PMPI_Comm_call_errhandler(comm, error);
  return error;
}

bool is_handled(Routine routine, Form form, Arguments& arguments, MPI_Request* request,
                int& result) {
  const MPI_Comm comm = arguments.comm;
  Attached* const to = is_for_mpi(routine) ? nullptr : attached(comm);
  if (to == nullptr) {
    count_below(routine, form, comm);
    return false;
  }
  if (is_reduction(routine)) arguments.user = find_user_operator(arguments.op);
  // Without a request the MPI library has its error, and no other rank is concerned.
  const bool is_complete = form == Form::kBlocking || request != nullptr;
  const bool takes = is_complete && is_taken(routine, *to, arguments);
  count_call(routine, form, takes);
  if (!takes) return false;
  result = check_arguments(routine, *to, arguments);
  if (result != MPI_SUCCESS) {
    result = raise(comm, result);
  } else if (form == Form::kBlocking) {
    Work work;
    prepare(routine, *to, arguments, work);
    result = run(comm, *to, work);
  } else if (form == Form::kNonblocking) {
    auto work = std::make_unique<Work>();
    prepare(routine, *to, arguments, *work);
    result = start(comm, *to, std::move(work), request);
  } else {
    result = make_persistent(routine, *to, arguments, request);
  }
  return true;
}

}  // namespace espalier::bridge
