/* MPI_BOTTOM with types of absolute addresses, in every kind of collective.

   addresses FOLDER */
#include "results.h"

enum { kMaxRanks = 16 };

/* `count` ints at each of these addresses. */
static MPI_Datatype at(int* first, int first_count, int* second, int second_count) {
  MPI_Aint addresses[2];
  const int counts[2] = {first_count, second_count};
  MPI_Datatype type;
  MPI_Get_address(first, &addresses[0]);
  MPI_Get_address(second, &addresses[1]);
  MPI_Type_create_hindexed(second_count == 0 ? 1 : 2, counts, addresses, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
  int near[4], *far = malloc(4 * sizeof(int)), all[2 * kMaxRanks], sum[2];
  MPI_Request request;
  for (int i = 0; i < 4; ++i) near[i] = far[i] = 10 * rank + i;
  MPI_Datatype both = at(near, 2, far, 3);
  MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD);
  result_row("broadcast near", near, 4);
  result_row("broadcast far", far, 4);
  near[0] = rank + 5;
  MPI_Ibcast(MPI_BOTTOM, 1, both, ranks - 1, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result_row("non-blocking broadcast near", near, 4);

  near[0] = 3 * rank;
  near[1] = 7 * rank;
  MPI_Datatype pair = at(near, 1, near + 1, 1), row = at(all, 2 * ranks, all, 0);
  for (int i = 0; i < 2 * ranks; ++i) all[i] = -1;
  MPI_Gather(MPI_BOTTOM, 1, pair, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) result_row("gathered", all, 2 * ranks);
  MPI_Bcast(MPI_BOTTOM, 1, row, 0, MPI_COMM_WORLD);
  result_row("the row", all, 2 * ranks);
  sum[0] = sum[1] = -1;
  MPI_Datatype result_type = at(sum, 1, sum + 1, 1);
  MPI_Scatter(all, 2, MPI_INT, MPI_BOTTOM, 1, result_type, 0, MPI_COMM_WORLD);
  result_row("scattered", sum, 2);
  MPI_Allgather(MPI_BOTTOM, 1, pair, all, 2, MPI_INT, MPI_COMM_WORLD);
  result_row("allgathered", all, 2 * ranks);
  MPI_Type_free(&both);
  MPI_Type_free(&pair);
  MPI_Type_free(&row);
  MPI_Type_free(&result_type);
  free(far);
  return end();
}
