/* Ranks whose arguments differ as MPI lets them: types of the same signature, buffers without data, forms of a function.

   ranks_differ FOLDER */
#include <string.h>

#include "results.h"

enum { kMaxRanks = 16 };

/* Pairs of ints with a gap on odd ranks; on even ranks in a row. */
static MPI_Datatype make_pair(int stride) {
  MPI_Datatype type, resized;
  MPI_Type_vector(2, 1, stride, MPI_INT, &type);
  MPI_Type_create_resized(type, 0, (MPI_Aint)(2 * stride * (int)sizeof(int)), &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&type);
  return resized;
}

static int stride_of_user;
static void compose(void* left, void* right, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) {
    unsigned* const a = (unsigned*)left + 2 * stride_of_user * i;
    unsigned* const b = (unsigned*)right + 2 * stride_of_user * i;
    const unsigned shift = a[stride_of_user] * b[0] + b[stride_of_user];
    b[0] *= a[0];
    b[stride_of_user] = shift;
  }
}

static void check_types(void) {
  const int stride = 1 + rank % 2;
  int data[64], other[64];
  MPI_Datatype pair = make_pair(stride);
  MPI_Op op;
  memset(data, 0, sizeof(data));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j) data[2 * stride * i + stride * j] = 10 * rank + 2 * i + j + 1;
  memcpy(other, data, sizeof(data));
  MPI_Bcast(other, 3, pair, ranks - 1, MPI_COMM_WORLD);
  result_row("broadcast of pairs", other, 6 * stride);
  memcpy(other, data, sizeof(data));
  if (rank == 0)
    MPI_Bcast(other, 3, pair, 0, MPI_COMM_WORLD);
  else if (rank == 1)
    MPI_Bcast(other, 6, MPI_INT, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(other, 24, MPI_BYTE, 0, MPI_COMM_WORLD);
  result_row("broadcast to other types", other, 6);
  stride_of_user = stride;
  MPI_Op_create(compose, 0, &op);
  memset(other, 0, sizeof(other));
  MPI_Allreduce(data, other, 3, pair, op, MPI_COMM_WORLD);
  result_row("composed", other, 6 * stride);
  memset(other, 0, sizeof(other));
  MPI_Exscan(data, other, 3, pair, op, MPI_COMM_WORLD);
  if (rank > 0) result_row("composed before", other, 6 * stride);
  memcpy(other, data, sizeof(data));
  MPI_Reduce(rank == 1 ? MPI_IN_PLACE : data, other, 3, pair, op, 1, MPI_COMM_WORLD);
  if (rank == 1) result_row("composed at rank 1", other, 6 * stride);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
}

static void check_no_data(void) {
  const MPI_Datatype null = MPI_DATATYPE_NULL;
  int own = rank, all[kMaxRanks] = {0}, counts[kMaxRanks], offsets[kMaxRanks], part[kMaxRanks];
  const int is_root = rank == 0;
  MPI_Gather(&own, 1, MPI_INT, is_root ? all : NULL, is_root, is_root ? MPI_INT : null, 0,
             MPI_COMM_WORLD);
  if (is_root) result_row("gathered", all, ranks);
  MPI_Scatter(is_root ? all : NULL, is_root, is_root ? MPI_INT : null, &own, 1, MPI_INT, 0,
              MPI_COMM_WORLD);
  result("scattered: %d", own);
  for (int i = 0; i < ranks; ++i) {
    counts[i] = i % 2;
    offsets[i] = i;
    part[i] = -1;
  }
  /* Ranks without data. */
  MPI_Gatherv(rank % 2 ? &own : NULL, rank % 2, MPI_INT, is_root ? part : NULL,
              is_root ? counts : NULL, is_root ? offsets : NULL, is_root ? MPI_INT : null, 0,
              MPI_COMM_WORLD);
  if (is_root) result_row("gathered from some", part, ranks);
  own = -2;
  MPI_Scatterv(is_root ? all : NULL, is_root ? counts : NULL, is_root ? offsets : NULL,
               is_root ? MPI_INT : null, rank % 2 ? &own : NULL, rank % 2, MPI_INT, 0,
               MPI_COMM_WORLD);
  result("scattered to some: %d", own);
  MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* The first rank calls the functions with large counts. */
static void check_large_counts(void) {
#if MPI_VERSION >= 4
  int data[4], sum[4] = {0}, all[kMaxRanks * 4];
  MPI_Request request;
  for (int i = 0; i < 4; ++i) data[i] = rank + i;
  if (rank == 0) {
    MPI_Bcast_c(data, 4, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    MPI_Allreduce_c(data, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallgather_c(data, 4, MPI_INT, all, 4, MPI_INT, MPI_COMM_WORLD, &request);
  } else {
    MPI_Bcast(data, 4, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    MPI_Allreduce(data, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallgather(data, 4, MPI_INT, all, 4, MPI_INT, MPI_COMM_WORLD, &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result_row("large broadcast", data, 4);
  result_row("large sum", sum, 4);
  result_row("large gather", all, 4 * ranks);
  MPI_Count counts[kMaxRanks];
  MPI_Aint offsets[kMaxRanks];
  int narrow_counts[kMaxRanks], narrow_offsets[kMaxRanks];
  for (int i = 0; i < ranks; ++i) {
    counts[i] = narrow_counts[i] = 1 + i % 2;
    offsets[i] = narrow_offsets[i] = 2 * (ranks - 1 - i);
  }
  for (int i = 0; i < 2 * ranks; ++i) all[i] = -1;
  if (rank == 0)
    MPI_Allgatherv_c(data, 1, MPI_INT, all, counts, offsets, MPI_INT, MPI_COMM_WORLD);
  else
    MPI_Allgatherv(data, 1 + rank % 2, MPI_INT, all, narrow_counts, narrow_offsets, MPI_INT,
                   MPI_COMM_WORLD);
  result_row("large parts", all, 2 * ranks);
#endif
}

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
  check_types();
  check_no_data();
  check_large_counts();
  return end();
}
