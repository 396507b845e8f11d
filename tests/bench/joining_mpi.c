// The time of MPI_Init, measured as joining.cc measures espalier::join. Rank 0 prints one line.
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now_ms(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  const double cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID), wall = now_ms(CLOCK_MONOTONIC);
  MPI_Init(&argc, &argv);
  double mine[2] = {now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu, now_ms(CLOCK_MONOTONIC) - wall};
  double sums[2];
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Reduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("MPI_Init: %.1f ms of processor time per rank; %.0f ms until it returns\n",
           sums[0] / ranks, sums[1] / ranks);
  }
  return MPI_Finalize();
}
