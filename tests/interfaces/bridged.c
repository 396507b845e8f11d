/* An MPI program of twelve collectives, for the library that takes them over. Each rank prints "member RANK CALLED RETURNED" for its first
   one, in us of the monotonic clock: that call joins the job. ESPALIER_MPI_COUNTS says at the end which calls were taken over. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime() */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kCalls = 12, kCount = 10000 };

static double values[kCount], sums[kCount];

static unsigned long long now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (unsigned long long)time.tv_sec * 1000000 + (unsigned long long)time.tv_nsec / 1000;
}

int main(int argc, char** argv) {
  int rank, size, i, call;
  unsigned long long called = 0, returned = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (call = 0; call < kCalls; ++call) {
    for (i = 0; i < kCount; ++i) values[i] = rank + 1;
    if (call == 0) called = now_us();
    MPI_Allreduce(values, sums, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (call == 0) returned = now_us();
    if (sums[kCount - 1] != size * (size + 1) / 2) {
      fprintf(stderr, "member: wrong sum\n");
      return 1;
    }
  }
  printf("member %d %llu %llu\n", rank, called, returned);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
