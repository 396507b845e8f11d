// Beginning and end, communicators, operators and requests: what has to be known of each.

#include <type_traits>

#include "bridge/counts.h"
#include "bridge/operators.h"
#include "bridge/persistent.h"
#include "bridge/requests.h"
#include "bridge/state.h"

// MPIX_Op_create_x(), with which MPICH 5 makes Fortran's operators, too.
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 50000000
#define HAS_STATEFUL_OPERATORS
#endif

using namespace espalier::bridge;  // NOLINT(google-build-using-namespace): functions of C

namespace {

// A new communicator gets one of Espalier.
int with_attached(int error, MPI_Comm* made) {
  if (error == MPI_SUCCESS) attach(*made);
  return error;
}

void remember(MPI_Op op, MPI_User_function* function, int commutes) {
  add_user_operator(op, {.function = reinterpret_cast<void (*)()>(function),
                         .commutes = commutes != 0,
                         .signature = KnownOperator::Signature::kC});
}

#ifdef HAS_STATEFUL_OPERATORS
// What the MPI library gets as the state of an operator: a share of the user's, which the active
// collectives also have.
struct StatefulOperator {
  MPIX_User_function_x* function;
  std::shared_ptr<void> state;
};
void call_stateful(void* left, void* right, MPI_Count length, MPI_Datatype type, void* context) {
  const auto& op = *static_cast<const StatefulOperator*>(context);
  op.function(left, right, length, type, op.state.get());
}
void destroy_stateful(void* context) { delete static_cast<StatefulOperator*>(context); }
#endif

}  // namespace

extern "C" {

int MPI_Init(int* argument_count, char*** arguments) {
  const int error = PMPI_Init(argument_count, arguments);
  if (error == MPI_SUCCESS) attach_first();
  return error;
}
int MPI_Init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  const int error = PMPI_Init_thread(argument_count, arguments, required, provided);
  if (error == MPI_SUCCESS) attach_first();
  return error;
}
int MPI_Finalize(void) {
  detach_first();
  print_counts();
  return PMPI_Finalize();
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return with_attached(PMPI_Comm_dup(comm, made), made);
}
int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return with_attached(PMPI_Comm_dup_with_info(comm, info, made), made);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  return with_attached(PMPI_Comm_split(comm, color, key, made), made);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return with_attached(PMPI_Comm_split_type(comm, type, key, info, made), made);
}
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return with_attached(PMPI_Comm_create(comm, group, made), made);
}
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return with_attached(PMPI_Comm_create_group(comm, group, tag, made), made);
}
int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  return with_attached(PMPI_Intercomm_merge(comm, high, made), made);
}
int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periods,
                    int reorder, MPI_Comm* made) {
  return with_attached(PMPI_Cart_create(comm, dimensions, sizes, periods, reorder, made), made);
}
int MPI_Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* made) {
  return with_attached(PMPI_Cart_sub(comm, remain, made), made);
}
int MPI_Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
                     MPI_Comm* made) {
  return with_attached(PMPI_Graph_create(comm, nodes, index, edges, reorder, made), made);
}
int MPI_Dist_graph_create(MPI_Comm comm, int count, const int* sources, const int* degrees,
                          const int* destinations, const int* weights, MPI_Info info, int reorder,
                          MPI_Comm* made) {
  return with_attached(PMPI_Dist_graph_create(comm, count, sources, degrees, destinations, weights,
                                              info, reorder, made),
                       made);
}
int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int* sources,
                                   const int* in_weights, int outdegree, const int* destinations,
                                   const int* out_weights, MPI_Info info, int reorder,
                                   MPI_Comm* made) {
  return with_attached(
      PMPI_Dist_graph_create_adjacent(comm, indegree, sources, in_weights, outdegree, destinations,
                                      out_weights, info, reorder, made),
      made);
}
int MPI_Comm_free(MPI_Comm* comm) {
  if (comm != nullptr) detach(*comm);
  return PMPI_Comm_free(comm);
}
int MPI_Comm_disconnect(MPI_Comm* comm) {
  if (comm != nullptr) detach(*comm);
  return PMPI_Comm_disconnect(comm);
}

int MPI_Op_create(MPI_User_function* function, int commutes, MPI_Op* op) {
  const int error = PMPI_Op_create(function, commutes, op);
  if (error == MPI_SUCCESS) remember(*op, function, commutes);
  return error;
}
#if MPI_VERSION >= 4
int MPI_Op_create_c(MPI_User_function_c* function, int commutes, MPI_Op* op) {
  const int error = PMPI_Op_create_c(function, commutes, op);
  if (error == MPI_SUCCESS) {
    add_user_operator(*op, {.function = reinterpret_cast<void (*)()>(function),
                            .commutes = commutes != 0,
                            .signature = KnownOperator::Signature::kLargeCount});
  }
  return error;
}
#endif
#ifdef HAS_STATEFUL_OPERATORS
int MPIX_Op_create_x(MPIX_User_function_x* function, MPIX_Destructor_function* destructor,
                     int commutes, void* state, MPI_Op* op) {
  // A failed call leaves the state to the caller.
  const auto may_destroy = std::make_shared<bool>(false);
  const std::shared_ptr<void> shared(state, [destructor, may_destroy](void* destroyed) {
    if (*may_destroy && destructor != nullptr) destructor(destroyed);
  });
  auto stateful = std::make_unique<StatefulOperator>(StatefulOperator{function, shared});
  const int error =
      PMPIX_Op_create_x(call_stateful, destroy_stateful, commutes, stateful.get(), op);
  if (error != MPI_SUCCESS) return error;
  *may_destroy = true;
  stateful.release();  // to the MPI library: destroy_stateful()
  add_user_operator(*op, {.function = reinterpret_cast<void (*)()>(function),
                          .commutes = commutes != 0,
                          .signature = KnownOperator::Signature::kWithState,
                          .state = shared});
  return error;
}
#endif
int MPI_Op_free(MPI_Op* op) {
  if (op != nullptr) remove_user_operator(*op);
  return PMPI_Op_free(op);
}

int MPI_Type_free(MPI_Datatype* type) {
  if (type == nullptr || !is_freed_later(*type)) return PMPI_Type_free(type);
  *type = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

int MPI_Start(MPI_Request* request) {
  int error = MPI_SUCCESS;
  return is_persistent_start(request, error) ? error : PMPI_Start(request);
}
int MPI_Startall(int count, MPI_Request* requests) {
  int first_error = MPI_SUCCESS;
  for (int i = 0; requests != nullptr && i < count; ++i) {
    const int error = MPI_Start(&requests[i]);
    if (first_error == MPI_SUCCESS) first_error = error;
  }
  return requests == nullptr || count < 0 ? PMPI_Startall(count, requests) : first_error;
}

// Requests of Espalier's collectives are generalized requests of the MPI library. Nothing but these
// functions completes them.
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  while (request != nullptr && progress(request, 1) > 0) let_mpi_progress();
  return PMPI_Wait(request, status);
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  while (progress(requests, count) > 0) let_mpi_progress();
  return PMPI_Waitall(count, requests, statuses);
}
int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!has_ours(requests, count)) return PMPI_Waitany(count, requests, index, status);
  while (true) {
    progress(requests, count);
    int is_complete = 0;
    const int error = PMPI_Testany(count, requests, index, &is_complete, status);
    if (error != MPI_SUCCESS || is_complete != 0) return error;
    let_mpi_progress();
  }
}
int MPI_Waitsome(int count, MPI_Request* requests, int* complete, int* indices,
                 MPI_Status* statuses) {
  if (!has_ours(requests, count))
    return PMPI_Waitsome(count, requests, complete, indices, statuses);
  while (true) {
    progress(requests, count);
    const int error = PMPI_Testsome(count, requests, complete, indices, statuses);
    if (error != MPI_SUCCESS || *complete != 0) return error;
    let_mpi_progress();
  }
}
int MPI_Test(MPI_Request* request, int* is_complete, MPI_Status* status) {
  if (request != nullptr) progress(request, 1);
  return PMPI_Test(request, is_complete, status);
}
int MPI_Testall(int count, MPI_Request* requests, int* is_complete, MPI_Status* statuses) {
  progress(requests, count);
  return PMPI_Testall(count, requests, is_complete, statuses);
}
int MPI_Testany(int count, MPI_Request* requests, int* index, int* is_complete,
                MPI_Status* status) {
  progress(requests, count);
  return PMPI_Testany(count, requests, index, is_complete, status);
}
int MPI_Testsome(int count, MPI_Request* requests, int* complete, int* indices,
                 MPI_Status* statuses) {
  progress(requests, count);
  return PMPI_Testsome(count, requests, complete, indices, statuses);
}
int MPI_Request_get_status(MPI_Request request, int* is_complete, MPI_Status* status) {
  progress(&request, 1);
  return PMPI_Request_get_status(request, is_complete, status);
}
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
// MPICH 4.2 has them without const.
using Requests =
    std::conditional_t<std::is_invocable_v<decltype(PMPI_Request_get_status_any), int,
                                           const MPI_Request*, int*, int*, MPI_Status*>,
                       const MPI_Request*, MPI_Request*>;
int MPI_Request_get_status_any(int count, Requests requests, int* index, int* is_complete,
                               MPI_Status* status) {
  progress(requests, count);
  return PMPI_Request_get_status_any(count, requests, index, is_complete, status);
}
int MPI_Request_get_status_all(int count, Requests requests, int* is_complete,
                               MPI_Status* statuses) {
  progress(requests, count);
  return PMPI_Request_get_status_all(count, requests, is_complete, statuses);
}
int MPI_Request_get_status_some(int count, Requests requests, int* complete, int* indices,
                                MPI_Status* statuses) {
  progress(requests, count);
  return PMPI_Request_get_status_some(count, requests, complete, indices, statuses);
}
#endif
int MPI_Cancel(MPI_Request* request) {
  int error = MPI_SUCCESS;
  if (request != nullptr && is_cancel_handled(*request, error)) return error;
  return PMPI_Cancel(request);
}
int MPI_Request_free(MPI_Request* request) {
  int error = MPI_SUCCESS;
  if (request != nullptr && is_free_handled(*request, error)) return error;
  if (request != nullptr) forget_persistent(*request);
  return PMPI_Request_free(request);
}

}  // extern "C"
