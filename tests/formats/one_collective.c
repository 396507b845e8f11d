/* one_collective NAME BYTES: calls one collective of MPI with a message of BYTES in all, as Open MPI's dynamic rules count them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  if (count != 3) return 2;
  const char* name = words[1];
  const int bytes = atoi(words[2]);
  int ranks = 1, status = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm world = MPI_COMM_WORLD;
  const int part = bytes / ranks;
  char *from = calloc(1, bytes + 1), *into = calloc(1, bytes + 1);
  int* parts = malloc(ranks * sizeof(int));
  for (int rank = 0; rank < ranks; ++rank) parts[rank] = part;
  if (strcmp(name, "allgather") == 0) {
    MPI_Allgather(from, part, MPI_CHAR, into, part, MPI_CHAR, world);
  } else if (strcmp(name, "allreduce") == 0) {
    MPI_Allreduce(from, into, bytes, MPI_BYTE, MPI_BOR, world);
  } else if (strcmp(name, "alltoall") == 0) {
    MPI_Alltoall(from, part, MPI_CHAR, into, part, MPI_CHAR, world);
  } else if (strcmp(name, "barrier") == 0) {
    MPI_Barrier(world);
  } else if (strcmp(name, "bcast") == 0) {
    MPI_Bcast(from, bytes, MPI_CHAR, 0, world);
  } else if (strcmp(name, "gather") == 0) {
    MPI_Gather(from, part, MPI_CHAR, into, part, MPI_CHAR, 0, world);
  } else if (strcmp(name, "reduce") == 0) {
    MPI_Reduce(from, into, bytes, MPI_BYTE, MPI_BOR, 0, world);
  } else if (strcmp(name, "reduce_scatter") == 0) {
    MPI_Reduce_scatter(from, into, parts, MPI_BYTE, MPI_BOR, world);
  } else if (strcmp(name, "reduce_scatter_block") == 0) {
    MPI_Reduce_scatter_block(from, into, part, MPI_BYTE, MPI_BOR, world);
  } else if (strcmp(name, "scatter") == 0) {
    MPI_Scatter(from, part, MPI_CHAR, into, part, MPI_CHAR, 0, world);
  } else {
    fprintf(stderr, "one_collective: unknown collective '%s'\n", name);
    status = 2;
  }
  free(parts);
  free(from);
  free(into);
  MPI_Finalize();
  return status;
}
