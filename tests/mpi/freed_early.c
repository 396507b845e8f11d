/* Frees types, operators and communicators before the collectives that use them are complete.

   freed_early FOLDER */
#include "results.h"

enum { kCount = 6, kMaxRanks = 16 };

/* Every second int. */
static MPI_Datatype make_spaced(void) {
  MPI_Datatype type, resized;
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  MPI_Type_create_resized(type, 0, 6 * sizeof(int), &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&type);
  return resized;
}

/* Open MPI 4.1 uses what is freed: the types and operators of persistent collectives, and communicators. */
static int uses_freed(void) { return is_open_mpi(); }

static MPI_Datatype expected_type;
static int other_types;

static void add_spaced(void* left, void* right, int* length, MPI_Datatype* type) {
  other_types += *type != expected_type;
  for (int i = 0; i < *length; ++i)
    for (int j = 0; j < 3; ++j)
      ((int*)right)[6 * i + 2 * j] += 2 * ((const int*)left)[6 * i + 2 * j];
}

static void fill(int* values, int count) {
  for (int i = 0; i < count; ++i) values[i] = 100 * rank + i;
}

static void broadcast_and_gather(void) {
  int data[6 * kCount], all[6 * kMaxRanks], counts[kMaxRanks], offsets[kMaxRanks];
  MPI_Request requests[2];
  MPI_Datatype spaced = make_spaced();
  fill(data, 6 * kCount);
  MPI_Ibcast(data, kCount, spaced, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_free(&spaced);
  result("the type is null: %d", spaced == MPI_DATATYPE_NULL);
  spaced = make_spaced();
  for (int i = 0; i < 6 * ranks; ++i) all[i] = -1;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
    offsets[i] = ranks - 1 - i;
  }
  const int part[3] = {rank, rank + 10, rank + 20};
  MPI_Igatherv(part, 3, MPI_INT, all, counts, offsets, spaced, ranks - 1, MPI_COMM_WORLD,
               &requests[1]);
  MPI_Type_free(&spaced);
  /* Other types take the place of the freed ones. */
  MPI_Datatype others[20];
  for (int i = 0; i < 20; ++i) {
    MPI_Type_contiguous(i + 1, MPI_DOUBLE, &others[i]);
    MPI_Type_commit(&others[i]);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 20; ++i) MPI_Type_free(&others[i]);
  result_row("broadcast", data, 6 * kCount);
  if (rank == ranks - 1) result_row("gathered", all, 6 * ranks);
}

static void reduce(void) {
  int data[6 * kCount], sum[6 * kCount];
  MPI_Request request;
  MPI_Op op;
  MPI_Datatype spaced = make_spaced();
  expected_type = spaced;
  fill(data, 6 * kCount);
  for (int i = 0; i < 6 * kCount; ++i) sum[i] = -1;
  MPI_Op_create(add_spaced, 0, &op);
  MPI_Iallreduce(data, sum, kCount, spaced, op, MPI_COMM_WORLD, &request);
  MPI_Op_free(&op);
  MPI_Type_free(&spaced);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result_row("sum", sum, 6 * kCount);
  result("the operator got another type: %d", other_types);
}

/* MPICH 5 calls the destructor of an operator's state when nothing uses the operator any more: at some time after the last collective, which
   differs from run to run. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 50000000
static int is_destroyed, calls_when_destroyed;

static void add_scaled(void* left, void* right, MPI_Count length, MPI_Datatype type, void* scale) {
  (void)type;
  calls_when_destroyed += is_destroyed;
  for (MPI_Count i = 0; i < length; ++i) ((int*)right)[i] += *(const int*)scale * ((int*)left)[i];
}
static void destroy(void* scale) { is_destroyed += *(int*)scale == 2; }

static void reduce_with_state(void) {
  int data[kCount], sum[kCount], scale = 2;
  MPI_Request request;
  MPI_Op op;
  fill(data, kCount);
  MPIX_Op_create_x(add_scaled, destroy, 0, &scale, &op);
  MPI_Allreduce(data, sum, kCount, MPI_INT, op, MPI_COMM_WORLD);
  result_row("sum with a state", sum, kCount);
  MPI_Iallreduce(data, sum, kCount, MPI_INT, op, MPI_COMM_WORLD, &request);
  MPI_Op_free(&op);
  result("the operator is null: %d", op == MPI_OP_NULL);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result_row("sum with a state, freed", sum, kCount);
  result("calls with a destroyed state: %d", calls_when_destroyed);
}
#else
static void reduce_with_state(void) {}
#endif

static void persist(void) {
  int data[6 * kCount];
  MPI_Request request;
  MPI_Op op;
  MPI_Datatype spaced = make_spaced();
  PERSISTENT(Bcast)(data, kCount, spaced, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (!uses_freed()) MPI_Type_free(&spaced);
  for (int turn = 0; turn < 3; ++turn) {
    fill(data, 6 * kCount);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    result_row("persistent broadcast", data, 6 * kCount);
  }
  MPI_Request_free(&request);
  int sums[6 * kCount];
  spaced = make_spaced();
  expected_type = spaced;
  MPI_Op_create(add_spaced, 0, &op);
  PERSISTENT(Allreduce)
  (data, sums, kCount, spaced, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (!uses_freed()) {
    MPI_Op_free(&op);
    MPI_Type_free(&spaced);
  }
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < 6 * kCount; ++i) sums[i] = -2;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    result_row("persistent sum", sums, 6 * kCount);
  }
  result("the request is null: %d", request == MPI_REQUEST_NULL);
  MPI_Request_free(&request);
}

static void free_communicator(void) {
  MPI_Comm copy;
  MPI_Request request;
  int sum = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copy, &request);
  MPI_Comm_free(&copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result("sum on a freed communicator: %d", sum);
}

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
  broadcast_and_gather();
  reduce();
  reduce_with_state();
  persist();
  if (!uses_freed()) free_communicator();
  return end();
}
