/* Arguments that MPI forbids, with MPI_ERRORS_RETURN: the classes of the errors, and that the communicator can still be used.

   wrong_arguments FOLDER */
#include <limits.h>

#include "results.h"

enum { kMaxRanks = 16 };

static MPI_Comm comm;

static void check(const char* name, int error) {
  int class = -1, sum = 0;
  MPI_Error_class(error, &class);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  result("%s: class %d, then a sum of %d", name, class, sum);
}
#define CHECK(CALL) check(#CALL, CALL)

/* Returns 100 * major + minor of MPICH's version, and 0 for another library. */
static int mpich_version(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0, minor = 0;
  MPI_Get_library_version(version, &length);
  return sscanf(version, "MPICH Version: %d.%d", &major, &minor) == 2 ? 100 * major + minor : 0;
}

/* MPICH 5.0.2 ends the program for a reduction of MPI_DATATYPE_NULL (an assertion in mpir_datatype.h). */
static int survives_null_types(void) { return mpich_version() < 500; }

/* MPICH 4.2.1 and 5.0.2 free the request of an active collective, for which another rank then waits for ever. 4.0.2 refuses to. */
static int refuses_active_frees(void) { return mpich_version() < 402; }

static void check_forbidden(void) {
  int a[2 * kMaxRanks] = {0}, b[2 * kMaxRanks] = {0}, counts[kMaxRanks], offsets[kMaxRanks];
  MPI_Datatype raw, null = MPI_DATATYPE_NULL;
  const int root = 0, no_root = ranks;
  /* Another pair that is for the MPI library takes its place. */
  const MPI_Datatype no_type = survives_null_types() ? null : MPI_DOUBLE;
  const MPI_Op no_op = survives_null_types() ? MPI_SUM : MPI_BAND;
  MPI_Type_contiguous(2, MPI_INT, &raw);
  for (int i = 0; i < ranks; ++i) {
    counts[i] = i == ranks - 1 ? -1 : 1;
    offsets[i] = i;
  }
  CHECK(MPI_Bcast(a, -1, MPI_INT, root, comm));
  CHECK(MPI_Bcast(a, 1, null, root, comm));
  CHECK(MPI_Bcast(a, 1, raw, root, comm));
  CHECK(MPI_Bcast(a, 1, MPI_INT, no_root, comm));
  CHECK(MPI_Bcast(a, 1, MPI_INT, -1, comm));
  CHECK(MPI_Bcast(a, 1, MPI_INT, INT_MIN, comm));
  CHECK(MPI_Allreduce(a, b, 1, no_type, no_op, comm));
  CHECK(MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, comm));
  CHECK(MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, comm));
  CHECK(MPI_Allreduce(a, b, 1, raw, MPI_SUM, comm));
  CHECK(MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
  CHECK(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, no_root, comm));
  CHECK(MPI_Exscan(a, b, 1, no_type, no_op, comm));
  CHECK(MPI_Allgather(a, 1, MPI_INT, b, -1, MPI_INT, comm));
  CHECK(MPI_Allgather(a, 1, raw, b, 2, MPI_INT, comm));
  CHECK(MPI_Allgather(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
  CHECK(MPI_Alltoall(a, -1, MPI_INT, b, 1, MPI_INT, comm));
  CHECK(MPI_Alltoall(a, 1, MPI_INT, b, 1, null, comm));
  CHECK(MPI_Alltoallv(a, counts, offsets, MPI_INT, b, counts, offsets, MPI_INT, comm));
  CHECK(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, no_root, comm));
  CHECK(MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, -5, comm));
  if (rank == root) {
    int class = 0;
    const int error = MPI_Gather(a, 1, MPI_INT, b, -1, MPI_INT, root, MPI_COMM_SELF);
    MPI_Error_class(error, &class);
    result("gather alone: class %d", class);
  }
  MPI_Type_free(&raw);
}

/* Open MPI accepts an alias and does not survive a null buffer. MPICH does not survive some negative counts. */
static void check_where_refused(void) {
  int a[2 * kMaxRanks] = {0}, b[2 * kMaxRanks] = {0};
  if (is_open_mpi()) {
    CHECK(MPI_Allreduce(a, b, -1, MPI_INT, MPI_SUM, comm));
    CHECK(MPI_Scan(a, b, -2, MPI_INT, MPI_SUM, comm));
    CHECK(MPI_Reduce_scatter_block(a, b, -1, MPI_INT, MPI_SUM, comm));
    return;
  }
  CHECK(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, comm));
  CHECK(MPI_Scan(a, a, 1, MPI_INT, MPI_SUM, comm));
  CHECK(MPI_Allgather(b + rank, 1, MPI_INT, b, 1, MPI_INT, comm));
  CHECK(MPI_Alltoall(a, 1, MPI_INT, a, 1, MPI_INT, comm));
  CHECK(MPI_Bcast(NULL, 1, MPI_INT, 0, comm));
  CHECK(MPI_Allreduce(NULL, b, 1, MPI_INT, MPI_SUM, comm));
  CHECK(MPI_Allreduce(a, NULL, 1, MPI_INT, MPI_SUM, comm));
}

/* Open MPI's collectives do not survive a null request; of its other calls, MPI_Isend() has the class that is expected. */
#define CHECK_REQUEST(CALL)                                        \
  check(#CALL, is_open_mpi() && getenv("LD_PRELOAD") == NULL       \
                   ? MPI_Isend(a, 1, MPI_INT, rank, 0, comm, NULL) \
                   : CALL)

static void check_no_request(void) {
  int a[kMaxRanks] = {0}, b[kMaxRanks] = {0}, counts[kMaxRanks], offsets[kMaxRanks];
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
    offsets[i] = i;
  }
  CHECK_REQUEST(MPI_Ibarrier(comm, NULL));
  CHECK_REQUEST(MPI_Ibcast(a, 1, MPI_INT, 0, comm, NULL));
  CHECK_REQUEST(MPI_Ireduce(a, b, 1, MPI_INT, MPI_SUM, 0, comm, NULL));
  CHECK_REQUEST(MPI_Iallreduce(a, b, 1, MPI_INT, MPI_SUM, comm, NULL));
  CHECK_REQUEST(MPI_Iscan(a, b, 1, MPI_INT, MPI_SUM, comm, NULL));
  CHECK_REQUEST(MPI_Iexscan(a, b, 1, MPI_INT, MPI_SUM, comm, NULL));
  CHECK_REQUEST(MPI_Iscatter(a, 1, MPI_INT, b, 1, MPI_INT, 0, comm, NULL));
  CHECK_REQUEST(MPI_Iscatterv(a, counts, offsets, MPI_INT, b, 1, MPI_INT, 0, comm, NULL));
  CHECK_REQUEST(MPI_Igather(a, 1, MPI_INT, b, 1, MPI_INT, 0, comm, NULL));
  CHECK_REQUEST(MPI_Igatherv(a, 1, MPI_INT, b, counts, offsets, MPI_INT, 0, comm, NULL));
  CHECK_REQUEST(MPI_Iallgather(a, 1, MPI_INT, b, 1, MPI_INT, comm, NULL));
  CHECK_REQUEST(MPI_Iallgatherv(a, 1, MPI_INT, b, counts, offsets, MPI_INT, comm, NULL));
  CHECK_REQUEST(MPI_Ireduce_scatter_block(a, b, 1, MPI_INT, MPI_SUM, comm, NULL));
  CHECK_REQUEST(MPI_Ireduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm, NULL));
  CHECK_REQUEST(MPI_Ialltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm, NULL));
  CHECK_REQUEST(
      MPI_Ialltoallv(a, counts, offsets, MPI_INT, b, counts, offsets, MPI_INT, comm, NULL));
  CHECK_REQUEST(PERSISTENT(Barrier)(comm, MPI_INFO_NULL, NULL));
  CHECK_REQUEST(PERSISTENT(Bcast)(a, 1, MPI_INT, 0, comm, MPI_INFO_NULL, NULL));
  CHECK_REQUEST(PERSISTENT(Allreduce)(a, b, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, NULL));
  CHECK_REQUEST(PERSISTENT(Alltoall)(a, 1, MPI_INT, b, 1, MPI_INT, comm, MPI_INFO_NULL, NULL));
}

static void check_requests(void) {
  static int a[1000], b[1000];
  MPI_Request request = MPI_REQUEST_NULL;
  int class = 0;
  if (is_open_mpi())
    CHECK(MPI_Iallreduce(a, b, -1, MPI_INT, MPI_SUM, comm, &request)); /* MPICH: MPI_ERR_OTHER */
  CHECK(MPI_Ibcast(a, 1, MPI_DATATYPE_NULL, 0, comm, &request));
  CHECK(MPI_Igather(a, 1, MPI_INT, b, 1, MPI_INT, ranks, comm, &request));
  /* The last rank starts after the others have tried. */
  if (rank == ranks - 1) {
    for (int other = 0; other < ranks - 1; ++other)
      MPI_Recv(NULL, 0, MPI_INT, other, 5, comm, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 1000; ++i) a[i] = i;
  MPI_Iallreduce(a, b, 1000, MPI_INT, MPI_SUM, comm, &request);
  if (rank < ranks - 1) {
    MPI_Error_class(MPI_Cancel(&request), &class);
    result("cancel: class %d", class);
    if (refuses_active_frees()) {
      MPI_Error_class(MPI_Request_free(&request), &class);
      result("free: class %d, null %d", class, request == MPI_REQUEST_NULL);
    }
    MPI_Send(NULL, 0, MPI_INT, ranks - 1, 5, comm);
  }
  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
  result("wait: class %d, sum %d", class, b[999]);
}

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check_forbidden();
  check_where_refused();
  check_no_request();
  check_requests();
  MPI_Comm_free(&comm);
  return end();
}
