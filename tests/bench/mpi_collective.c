// Times one MPI collective for the comparison with Espalier:
//   mpi_collective broadcast|reduce BYTES REPETITIONS WARMUPS
// A repetition takes the longest time, over the ranks, from a rank's own begin to its own end, as in `espalier run`;
// rank 0 prints each in seconds. Ranks begin when they leave a barrier, as in MPI benchmarks. Every repetition's
// result is checked outside the timed part; exit status 1 if one was wrong.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Whole numbers: sums are exact in any order.
static float value(int rank, long i, int repetition) { return (float)((rank * 31L + i * 7 + repetition * 13L) % 1009); }

static long wrong(int reduce, int rank, int ranks, const float* result, long n, int repetition) {
  long bad = 0;
  if (reduce && rank != 0) return 0;
  for (long i = 0; i < n; ++i) {
    float expected = reduce ? 0 : value(0, i, repetition);
    for (int r = 0; reduce && r < ranks; ++r) expected += value(r, i, repetition);
    bad += result[i] != expected;
  }
  return bad;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  int reduce = strcmp(argv[1], "reduce") == 0, repetitions = atoi(argv[3]), warmups = atoi(argv[4]);
  long n = atol(argv[2]) / (long)sizeof(float), bad = 0;
  float* mine = malloc((size_t)n * sizeof(float));
  float* result = malloc((size_t)n * sizeof(float));
  for (int i = 0; i < warmups + repetitions; ++i) {
    for (long j = 0; j < n; ++j) mine[j] = value(rank, j, i);
    memset(result, 0xff, (size_t)n * sizeof(float));
    if (!reduce && rank == 0) memcpy(result, mine, (size_t)n * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    if (reduce) {
      MPI_Reduce(mine, result, (int)n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    } else {
      MPI_Bcast(result, (int)n, MPI_FLOAT, 0, MPI_COMM_WORLD);
    }
    double took = now() - start, longest = 0;
    bad += wrong(reduce, rank, ranks, result, n, i);
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && i >= warmups) printf("%.9f\n", longest);
  }
  long all = 0;
  MPI_Allreduce(&bad, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (all != 0 && rank == 0) fprintf(stderr, "mpi_collective: %ld wrong elements\n", all);
  MPI_Finalize();
  return all != 0;
}
