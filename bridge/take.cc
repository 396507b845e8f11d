#include "bridge/take.h"

#include "bridge/library_below.h"
#include "bridge/persistent.h"
#include "bridge/prepare.h"

namespace espalier::bridge {
namespace {

// The class of a null pointer to a request. Open MPI's collectives follow the pointer.
int no_request_error() { return is_open_mpi() ? MPI_ERR_REQUEST : MPI_ERR_ARG; }

}  // namespace

int raise(MPI_Comm comm, int error) {
  PMPI_Comm_call_errhandler(comm, error);
  return error;
}

bool is_handled(Routine routine, Form form, Arguments& arguments, MPI_Request* request,
                int& result) {
  const MPI_Comm comm = arguments.comm;
  // A non-blocking collective must not wait for other ranks.
  Attached* const to = is_for_mpi(routine)          ? nullptr
                       : form == Form::kNonblocking ? attached(comm)
                                                    : attached_at_last(comm);
  const bool lacks_request = form != Form::kBlocking && request == nullptr;
  if (to == nullptr) {
    count_below(routine, form, comm);
    if (!lacks_request || comm == MPI_COMM_NULL) return false;
    result = raise(comm, no_request_error());
    return true;
  }
  if (is_reduction(routine)) arguments.user = find_user_operator(arguments.op);
  bool takes = is_taken(routine, *to, arguments);
  // All ranks reserve, also one whose arguments are wrong.
  std::shared_ptr<Attached> own;
  if (takes && form == Form::kPersistent) own = reserve_for_persistent(comm, *to);
  if (form == Form::kPersistent && own == nullptr) takes = false;
  count_call(routine, form, takes || lacks_request);
  if (lacks_request) {
    result = raise(comm, no_request_error());
    return true;
  }
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
    result = make_persistent(routine, std::move(own), arguments, request);
  }
  return true;
}

}  // namespace espalier::bridge
