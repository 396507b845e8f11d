/* Ends a program of Fortran in C. */
#include <mpi.h>
#include <stdio.h>

void end_in_c_(void) {
  int one = 1, ranks = 0;
  MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d\n", ranks);
  MPI_Finalize();
}
