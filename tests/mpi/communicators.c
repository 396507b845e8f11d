// Communicators of MPI by the hundred, freed in any order, and used by several threads.
//
//   communicators many COUNT   COUNT live communicators: memory, threads and descriptors of rank 0
//   communicators frees        frees in different orders, and a message after a free
//   communicators churn COUNT  makes and frees COUNT communicators: descriptors and threads stay
//   communicators threads      one thread waits for a request while others start collectives
//   communicators persistent COUNT  makes and frees COUNT persistent requests: memory, descriptors and threads stay
//   communicators starts       each thread starts and waits for its persistent requests, with others of the communicator
//   communicators routines     every collective once
//
// Prints `ok` lines by rank 0; a wrong result ends the job.
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Bcast_init MPIX_Bcast_init
#endif

static int rank, size;

static void expect(int holds, const char* text) {
  if (holds) return;
  printf("rank %d: expected %s\n", rank, text);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define EXPECT(condition) expect(condition, #condition)

static int entries_of(const char* folder) {
  int count = 0;
  DIR* const open = opendir(folder);
  while (readdir(open) != NULL) ++count;
  closedir(open);
  return count - 2;
}

struct Footprint {
  long kilobytes;
  int threads, files;
};

static struct Footprint footprint(void) {
  struct Footprint found = {0, entries_of("/proc/self/task"), entries_of("/proc/self/fd") - 1};
  char line[256];
  FILE* const status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) != NULL) sscanf(line, "VmRSS: %ld", &found.kilobytes);
  fclose(status);
  return found;
}

static void add(MPI_Comm comm) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  EXPECT(sum == size);
}

static void many(int count) {
  MPI_Comm* const comms = malloc((size_t)count * sizeof *comms);
  add(MPI_COMM_WORLD);
  const struct Footprint before = footprint();
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  const double made = MPI_Wtime();
  const struct Footprint after = footprint();
  for (int i = 0; i < count; ++i) add(comms[i]);
  const struct Footprint used = footprint();
  const double free_start = MPI_Wtime();
  for (int i = 0; i < count; ++i) MPI_Comm_free(&comms[rank % 2 == 0 ? i : count - 1 - i]);
  const double freed = MPI_Wtime();
  if (rank == 0) {
    printf("communicators %d made_kb %ld used_kb %ld threads %d files %d make_us %.0f free_us %.0f\n",
           count, (after.kilobytes - before.kilobytes) / count,
           (used.kilobytes - before.kilobytes) / count, used.threads - before.threads,
           used.files - before.files, (made - start) * 1e6 / count,
           (freed - free_start) * 1e6 / count);
  }
  free(comms);
}

static void frees(void) {
  MPI_Comm first, second;
  for (int round = 0; round < 20; ++round) {
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    add(first);
    MPI_Request request;
    int one = 1, sum = 0, token = 0;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, second, &request);
    if (rank == 0) {
      MPI_Comm_free(&first);
      MPI_Comm_free(&second);
      for (int to = 1; to < size; ++to) MPI_Send(&token, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Comm_free(&second);
      MPI_Comm_free(&first);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(sum == size);
  }
}

static void churn(int count) {
  struct Footprint before = {0, 0, 0};
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    add(comm);
    MPI_Comm_free(&comm);
    if (i == 10) before = footprint();
  }
  const struct Footprint after = footprint();
  EXPECT(after.threads <= before.threads);
  EXPECT(after.files <= before.files + 32);
  EXPECT(after.kilobytes <= before.kilobytes + 16 * 1024);
}

static void* wait_for(void* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
  return NULL;
}

static void threads(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0; round < 100; ++round) {
    MPI_Request requests[4];
    int one = 1, sums[4] = {0};
    pthread_t waiting[4];
    for (int i = 0; i < 4; ++i) {
      MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
      pthread_create(&waiting[i], NULL, wait_for, &requests[i]);
      add(comm);
    }
    for (int i = 0; i < 4; ++i) {
      pthread_join(waiting[i], NULL);
      EXPECT(sums[i] == size);
    }
  }
  MPI_Comm_free(&comm);
}

// Two at once, of which each rank frees another first.
static void persistent(int count) {
  struct Footprint before = {0, 0, 0};
  for (int i = 0; i < count; ++i) {
    int sum = 0, root = rank, one = 1;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&root, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    EXPECT(sum == size && root == size - 1);
    MPI_Request_free(&requests[rank % 2]);
    MPI_Request_free(&requests[1 - rank % 2]);
    if (i == 10) before = footprint();
  }
  const struct Footprint after = footprint();
  EXPECT(after.threads <= before.threads);
  EXPECT(after.files <= before.files);
  EXPECT(after.kilobytes <= before.kilobytes + 4 * 1024);
}

enum { kThreads = 4, kStarts = 50 };

struct Starter {
  pthread_t thread;
  MPI_Request request;
  int one, sum, wrong;
};

// The threads start in any order, so the ranks do, too.
static void* start_often(void* argument) {
  struct Starter* const own = argument;
  for (int i = 0; i < kStarts; ++i) {
    own->one = i;
    MPI_Start(&own->request);
    MPI_Wait(&own->request, MPI_STATUS_IGNORE);
    own->wrong += own->sum != i * size;
  }
  return NULL;
}

static void starts(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  struct Starter starters[kThreads] = {0};
  for (int i = 0; i < kThreads; ++i) {
    MPI_Allreduce_init(&starters[i].one, &starters[i].sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                       &starters[i].request);
  }
  for (int i = 0; i < kThreads; ++i)
    pthread_create(&starters[i].thread, NULL, start_often, &starters[i]);
  for (int i = 0; i < kStarts; ++i) add(comm);
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(starters[i].thread, NULL);
    EXPECT(starters[i].wrong == 0);
    MPI_Request_free(&starters[i].request);
  }
  MPI_Comm_free(&comm);
}

// Ints of each rank for each other one; those from rank i to rank j have the value 1000 i + j.
enum { kMaxRanks = 256, kLong = 600 };

static void check_routines(int count) {
  static int part[kMaxRanks * kLong], all[kMaxRanks * kLong], counts[kMaxRanks], offsets[kMaxRanks];
  const MPI_Comm comm = MPI_COMM_WORLD;
  const int last = size - 1, end = size * count - 1;
  for (int i = 0; i < size; ++i) {
    counts[i] = count;
    offsets[i] = i * count;
    for (int j = 0; j < count; ++j) part[i * count + j] = 1000 * rank + i;
  }
  MPI_Barrier(comm);
  all[0] = rank;
  MPI_Bcast(all, count, MPI_INT, last, comm);
  EXPECT(all[0] == last);
  MPI_Reduce(part, all, count, MPI_INT, MPI_MAX, 0, comm);
  EXPECT(rank != 0 || all[0] == 1000 * last);
  MPI_Allreduce(part, all, count, MPI_INT, MPI_MAX, comm);
  EXPECT(all[0] == 1000 * last);
  MPI_Scan(part, all, count, MPI_INT, MPI_MAX, comm);
  EXPECT(all[0] == 1000 * rank);
  MPI_Exscan(part, all, count, MPI_INT, MPI_MAX, comm);
  EXPECT(rank == 0 || all[0] == 1000 * (rank - 1));
  MPI_Scatter(part, count, MPI_INT, all, count, MPI_INT, 0, comm);
  EXPECT(all[count - 1] == rank);
  MPI_Scatterv(part, counts, offsets, MPI_INT, all, count, MPI_INT, last, comm);
  EXPECT(all[count - 1] == 1000 * last + rank);
  MPI_Gather(part, count, MPI_INT, all, count, MPI_INT, 0, comm);
  EXPECT(rank != 0 || all[end] == 1000 * last);
  MPI_Gatherv(part, count, MPI_INT, all, counts, offsets, MPI_INT, 0, comm);
  EXPECT(rank != 0 || all[end] == 1000 * last);
  MPI_Allgather(part, count, MPI_INT, all, count, MPI_INT, comm);
  EXPECT(all[end] == 1000 * last);
  MPI_Reduce_scatter_block(part, all, count, MPI_INT, MPI_MAX, comm);
  EXPECT(all[count - 1] == 1000 * last + rank);
  MPI_Alltoall(part, count, MPI_INT, all, count, MPI_INT, comm);
  EXPECT(all[end] == 1000 * last + rank);
  MPI_Alltoallv(part, counts, offsets, MPI_INT, all, counts, offsets, MPI_INT, comm);
  EXPECT(all[end] == 1000 * last + rank);
  // Unequal parts.
  counts[0] = 2 * count;
  counts[1] = 0;
  offsets[1] = 2 * count;
  MPI_Reduce_scatter(part, all, counts, MPI_INT, MPI_MAX, comm);
  EXPECT(counts[rank] == 0 || all[count - 1] == 1000 * last + rank);
  MPI_Allgatherv(part, counts[rank], MPI_INT, all, counts, offsets, MPI_INT, comm);
  EXPECT(all[0] == 0 && (size == 2 || all[end] == 1000 * last));
}

int main(int argc, char** argv) {
  int level = 0;
  const char* const what = argc > 1 ? argv[1] : "";
  const int has_threads = strcmp(what, "threads") == 0 || strcmp(what, "starts") == 0;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(what, "many") == 0) many(count);
  if (strcmp(what, "frees") == 0) frees();
  if (strcmp(what, "churn") == 0) churn(count);
  if (strcmp(what, "persistent") == 0) persistent(count);
  if (strcmp(what, "routines") == 0) {
    check_routines(1);
    check_routines(kLong);
  }
  EXPECT(!has_threads || level == MPI_THREAD_MULTIPLE);
  if (strcmp(what, "threads") == 0) threads();
  if (strcmp(what, "starts") == 0) starts();
  if (rank == 0) printf("%s ok\n", what);
  return MPI_Finalize();
}
