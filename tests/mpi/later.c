/* Non-blocking collectives with a count for each rank, several at once, and persistent ones.

   later FOLDER            all
   later FOLDER blocking   blocking ones in place of persistent ones: MPICH 4.0 has wrong results for some persistent ones */
#include <string.h>

#include "results.h"

enum { kMaxRanks = 16, kMost = 4 * kMaxRanks };

static int counts[kMaxRanks], offsets[kMaxRanks], total;

/* The last rank's part is empty. */
static void cut(void) {
  total = 0;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = i == ranks - 1 ? 0 : 1 + i % 3;
    offsets[i] = total;
    total += counts[i] + 1;
  }
}

static void clear(int* values) {
  for (int i = 0; i < kMost; ++i) values[i] = -1;
}

/* The number of elements from one rank to another. */
static int sent(int from, int to) { return (from + 2 * to) % 3; }

static void check_vectors(void) {
  int part[4], message = 0, gathered[kMost], scattered[4] = {-1, -1, -1, -1}, whole[kMost],
               row[kMost], sum = 0;
  int out[kMaxRanks], out_offsets[kMaxRanks], in[kMaxRanks], in_offsets[kMaxRanks], next = 0;
  int sends[kMost], exchanged[kMost];
  MPI_Request requests[6];
  for (int i = 0; i < 4; ++i) part[i] = 10 * rank + i;
  for (int i = 0; i < kMost; ++i) whole[i] = 100 * rank + i;
  for (int i = 0; i < kMost; ++i) sends[i] = 1000 * rank + i;
  clear(gathered);
  clear(row);
  clear(exchanged);
  for (int i = 0; i < ranks; ++i) {
    out[i] = sent(rank, i);
    in[i] = sent(i, rank);
    out_offsets[i] = 2 * (ranks - 1 - i);
    in_offsets[i] = next;
    next += in[i];
  }
  for (int root = 0; root < ranks; ++root) {
    MPI_Igatherv(part, counts[rank], MPI_INT, gathered, counts, offsets, MPI_INT, root,
                 MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Iscatterv(whole, counts, offsets, MPI_INT, scattered, counts[rank], MPI_INT, root,
                  MPI_COMM_WORLD, &requests[2]);
    MPI_Ialltoallv(sends, out, out_offsets, MPI_INT, exchanged, in, in_offsets, MPI_INT,
                   MPI_COMM_WORLD, &requests[3]);
    MPI_Iallgatherv(part, counts[rank], MPI_INT, row, counts, offsets, MPI_INT, MPI_COMM_WORLD,
                    &requests[4]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[5]);
    /* A message that waits for a collective of another rank. */
    if (rank == 0) {
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      for (int other = 1; other < ranks; ++other)
        MPI_Send(&message, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&message, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (root % 2 == 0)
      MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
    else
      for (int i = 6; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (rank == root) result_row("gathered", gathered, total);
    result_row("scattered", scattered, counts[rank]);
    result_row("exchanged", exchanged, next);
    result_row("row", row, total);
    result("sum: %d", sum);
  }
  MPI_Igatherv(rank == 0 ? MPI_IN_PLACE : part, counts[rank], MPI_INT, gathered, counts, offsets,
               MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Iscatterv(whole, counts, offsets, MPI_INT, rank == 0 ? MPI_IN_PLACE : scattered, counts[rank],
                MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (rank == 0) result_row("gathered in place", gathered, total);
  if (rank != 0) result_row("scattered in place", scattered, counts[rank]);
}

/* MPI 4.1: the status of several requests, which stay. The program waits for a collective by no other call. */
static void check_statuses(void) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  int sums[3] = {0}, indices[3], index = 0, done = 0;
  MPI_Request requests[3];
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 3; ++i)
      MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    done = 0;
    while (turn == 0 && !done) MPI_Request_get_status_all(3, requests, &done, MPI_STATUSES_IGNORE);
    while (turn == 1 && !done)
      MPI_Request_get_status_any(3, requests, &index, &done, MPI_STATUS_IGNORE);
    while (turn == 2 && done < 1)
      MPI_Request_get_status_some(3, requests, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    result_row("sums after statuses", sums, 3);
  }
#endif
}

/* Each persistent collective: its request's number, its name, and the arguments before the communicator. */
#define ROUTINES(CALL)                                                                \
  CALL(0, Bcast, each[0], 3, MPI_INT, 0)                                              \
  CALL(1, Reduce, in, each[1], 3, MPI_INT, MPI_SUM, ranks - 1)                        \
  CALL(2, Allreduce, in, each[2], 3, MPI_INT, MPI_MAX)                                \
  CALL(3, Scan, in, each[3], 3, MPI_INT, MPI_SUM)                                     \
  CALL(4, Exscan, in, each[4], 3, MPI_INT, MPI_SUM)                                   \
  CALL(5, Scatter, in, 1, MPI_INT, each[5], 1, MPI_INT, 0)                            \
  CALL(6, Scatterv, in, counts, offsets, MPI_INT, each[6], counts[rank], MPI_INT, 1)  \
  CALL(7, Gather, in, 2, MPI_INT, each[7], 2, MPI_INT, 0)                             \
  CALL(8, Gatherv, in, counts[rank], MPI_INT, each[8], counts, offsets, MPI_INT, 1)   \
  CALL(9, Allgather, in, 2, MPI_INT, each[9], 2, MPI_INT)                             \
  CALL(10, Allgatherv, in, counts[rank], MPI_INT, each[10], counts, offsets, MPI_INT) \
  CALL(11, Reduce_scatter_block, in, each[11], 2, MPI_INT, MPI_SUM)                   \
  CALL(12, Reduce_scatter, in, each[12], counts, MPI_INT, MPI_SUM)                    \
  CALL(13, Alltoall, in, 1, MPI_INT, each[13], 1, MPI_INT)                            \
  CALL(14, Alltoallv, in, ones, places, MPI_INT, each[14], ones, places, MPI_INT)
enum { kRoutines = 15, kRequests = kRoutines + 3 };

static int in[kMost], each[kRoutines][kMost], ones[kMaxRanks], places[kMaxRanks];

static void run_blocking(void) {
#define RUN(INDEX, NAME, ...) MPI_##NAME(__VA_ARGS__, MPI_COMM_WORLD);
  ROUTINES(RUN)
}

static void make_persistent(MPI_Request* requests) {
#define MAKE(INDEX, NAME, ...) \
  PERSISTENT(NAME)(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[INDEX]);
  ROUTINES(MAKE)
  PERSISTENT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[kRoutines]);
}

/* In odd turns each rank begins with another request, and has another collective among the starts. */
static void start_all(MPI_Request* requests, int count, int turn) {
  int sum = 0;
  if (turn % 2 == 0) {
    MPI_Startall(count, requests);
    return;
  }
  for (int i = 0; i < count; ++i) {
    MPI_Start(&requests[(turn == 1 ? i + rank : i * (count - 1) + rank) % count]);
    if (i == rank % count) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  result("sum among the starts: %d", sum);
}

/* Each turn in another of MPI's ways. */
static void wait_all(MPI_Request* requests, int count, int turn) {
  int indices[kRequests], done = 0, index, left = count;
  if (turn == 0) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (; turn == 1 && left > 0; --left) MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
  for (; turn == 2 && left > 0; left -= done)
    MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
  for (int i = 0; turn == 3 && i < count; ++i)
    for (done = 0; !done;) MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
}

static void check_persistent(int is_blocking) {
  int ring = -1;
  MPI_Request requests[kRequests], *const own = &requests[kRoutines + 1];
  for (int i = 0; i < kRoutines; ++i) clear(each[i]);
  for (int i = 0; i < ranks; ++i) {
    ones[i] = 1;
    places[i] = i;
  }
  if (!is_blocking) make_persistent(requests);
  /* Messages of MPI's own beside them. */
  MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % ranks, 9, MPI_COMM_WORLD, &own[0]);
  MPI_Recv_init(&ring, 1, MPI_INT, (rank + ranks - 1) % ranks, 9, MPI_COMM_WORLD, &own[1]);
  for (int turn = 0; turn < 4; ++turn) {
    for (int i = 0; i < kMost; ++i) in[i] = 100 * turn + 10 * rank + i;
    for (int i = 0; i < 3; ++i) each[0][i] = in[i];
    MPI_Request* const first = is_blocking ? own : requests;
    const int count = is_blocking ? 2 : kRequests;
    start_all(first, count, turn);
    if (is_blocking) run_blocking();
    wait_all(first, count, turn);
    for (int i = 0; i < kRoutines; ++i) result_row("persistent", each[i], 2 * ranks + 2);
    result("ring: %d", ring);
  }
  const int first = is_blocking ? kRoutines + 1 : 0, count = kRequests - first;
  for (int i = 0; i < count; ++i) MPI_Request_free(&requests[first + (i + rank) % count]);
}

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
  cut();
  check_vectors();
  check_statuses();
  /* The second time each rank has freed its requests in another order. */
  for (int i = 0; i < 2; ++i)
    check_persistent(argument_count > 2 && strcmp(arguments[2], "blocking") == 0);
  return end();
}
