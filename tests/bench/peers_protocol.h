// How peers_mpi.c and peers_gloo.cc time collectives: the protocol of espalier-bench
// (communicator/bench/), for other libraries. A C header, which C++ reads, too.
//   PROGRAM COLLECTIVES SIZES STARTS REPETITIONS WARMUPS
// Lists have commas. A size is that of the message, or of each rank's part (scatter, gather,
// allgather, reduce-scatter, all-to-all); STARTS are warm, cold or warm,cold. Rank 0 prints JSON:
// of each row, the seconds of each repetition (the slowest rank, from its own start to its end),
// and the number of wrong results. Combining is a sum of f32. Exit status 2 for bad input.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum PeerCollective {
  kBroadcast,
  kReduce,
  kAllreduce,
  kScan,
  kExscan,
  kScatter,
  kGather,
  kAllgather,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kPeerCollectives
};

static const char* const kPeerNames[kPeerCollectives] = {
    "broadcast", "reduce",    "allreduce",      "scan",       "exscan", "scatter",
    "gather",    "allgather", "reduce-scatter", "all-to-all", "barrier"};

struct PeerRow {
  int collective;
  long n;  // elements of the message, or of each rank's part
};

// What a library gives.
struct Peer {
  int rank, ranks;
  void (*barrier)(void);
  void (*run)(const struct PeerRow* row, float* send,
              float* receive);                 // a broadcast is in place, in `receive`
  void (*maximum)(double* values, int count);  // over all ranks, for rank 0
};

static double peer_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A number from 1 to 512 for each position and repetition. Rank r gives r + 1 times it: sums are
// exact in any order.
static float peer_number(long i, int repetition) {
  return (float)(1 + (((uint32_t)i * 2654435761u + (uint32_t)repetition * 40503u) >> 23));
}

static long peer_input(const struct Peer* peer, const struct PeerRow* row) {
  switch (row->collective) {
    case kScatter: return peer->rank == 0 ? row->n * peer->ranks : 0;
    case kReduceScatter:
    case kAllToAll: return row->n * peer->ranks;
    default: return row->n;
  }
}

static long peer_output(const struct Peer* peer, const struct PeerRow* row) {
  switch (row->collective) {
    case kReduce: return peer->rank == 0 ? row->n : 0;
    case kExscan: return peer->rank == 0 ? 0 : row->n;
    case kGather: return peer->rank == 0 ? row->n * peer->ranks : 0;
    case kAllgather:
    case kAllToAll: return row->n * peer->ranks;
    default: return row->n;
  }
}

// The sum of r + 1 over the first `ranks` ranks.
static float peer_weights(int ranks) { return (float)(ranks * (ranks + 1) / 2); }

static float peer_expected(const struct Peer* peer, const struct PeerRow* row, long i,
                           int repetition) {
  const long n = row->n;
  switch (row->collective) {
    case kReduce:
    case kAllreduce: return peer_weights(peer->ranks) * peer_number(i, repetition);
    case kScan: return peer_weights(peer->rank + 1) * peer_number(i, repetition);
    case kExscan: return peer_weights(peer->rank) * peer_number(i, repetition);
    case kScatter: return peer_number(peer->rank * n + i, repetition);
    case kReduceScatter:
      return peer_weights(peer->ranks) * peer_number(peer->rank * n + i, repetition);
    case kGather:
    case kAllgather: return (float)(i / n + 1) * peer_number(i % n, repetition);
    case kAllToAll: return (float)(i / n + 1) * peer_number(peer->rank * n + i % n, repetition);
    default: return peer_number(i, repetition);
  }
}

static void peer_fill(const struct Peer* peer, const struct PeerRow* row, int repetition,
                      float* send, float* receive) {
  memset(receive, 0x5a, (size_t)peer_output(peer, row) * sizeof *receive);
  for (long i = 0; i < peer_input(peer, row); ++i)
    send[i] = (float)(peer->rank + 1) * peer_number(i, repetition);
  if (row->collective == kBroadcast && peer->rank == 0)
    memcpy(receive, send, (size_t)row->n * sizeof *send);
}

static int peer_is_wrong(const struct Peer* peer, const struct PeerRow* row, int repetition,
                         const float* receive) {
  for (long i = 0; i < peer_output(peer, row); ++i) {
    if (receive[i] != peer_expected(peer, row, i, repetition)) return 1;
  }
  return 0;
}

// Times the row's repetitions, and counts in `wrong`. `seconds` gets those after the warm-ups, the
// slowest rank's at rank 0.
static void peer_repeat(const struct Peer* peer, const struct PeerRow* row, int cold,
                        int repetitions, int warmups, double* seconds, double* wrong) {
  float* send = (float*)malloc((size_t)peer_input(peer, row) * sizeof *send + 64);
  float* receive = (float*)malloc((size_t)(peer_output(peer, row) + row->n) * sizeof *receive +
                                  64);  // Gloo reduces there on every rank
  const struct timespec pause = {0, 3000000};
  if (send == NULL || receive == NULL) {
    fprintf(stderr, "peers: no memory for %ld elements\n", row->n);
    exit(2);
  }
  for (int i = 0; i < warmups + repetitions; ++i) {
    peer_fill(peer, row, i, send, receive);
    peer->barrier();
    if (cold) nanosleep(&pause, NULL);
    const double start = peer_now();
    peer->run(row, send, receive);
    const double took = peer_now() - start;
    peer->barrier();  // A rank that compares would take the processor of one that is not done.
    *wrong += peer_is_wrong(peer, row, i, receive);
    if (i >= warmups) seconds[i - warmups] = took;
  }
  peer->maximum(seconds, repetitions);
  free(send);
  free(receive);
}

static void peer_print(const char* name, const double* seconds, int count) {
  printf(", \"%s_s\": [", name);
  for (int i = 0; i < count; ++i) printf("%s%.9f", i > 0 ? ", " : "", seconds[i]);
  printf("]");
}

static int peer_bad_input(const char* what, const char* value) {
  fprintf(stderr, "peers: %s '%s'; expected COLLECTIVES SIZES STARTS REPETITIONS WARMUPS\n", what,
          value);
  return 2;
}

static void peer_row(const struct Peer* peer, const struct PeerRow* row, const char* starts,
                     int repetitions, int warmups) {
  double* seconds = (double*)malloc((size_t)repetitions * sizeof *seconds);
  double wrong = 0;
  static int rows = 0;
  if (peer->rank == 0) {
    printf("%s{\"collective\": \"%s\", \"bytes\": %ld", rows++ > 0 ? ",\n " : "[",
           kPeerNames[row->collective], row->n * (long)sizeof(float));
  }
  for (int cold = 0; cold < 2; ++cold) {
    if (strstr(starts, cold ? "cold" : "warm") == NULL) continue;
    peer_repeat(peer, row, cold, repetitions, warmups, seconds, &wrong);
    if (peer->rank == 0) peer_print(cold ? "cold" : "warm", seconds, repetitions);
  }
  peer->maximum(&wrong, 1);
  if (peer->rank == 0) printf(", \"wrong\": %.0f}", wrong);
  free(seconds);
}

// Returns the exit status. Every rank calls it with the same arguments.
static int peer_main(const struct Peer* peer, int argc, char** argv) {
  if (argc != 6) return peer_bad_input("the number of arguments is wrong after", argv[0]);
  const int repetitions = atoi(argv[4]), warmups = atoi(argv[5]);
  if (repetitions < 1) return peer_bad_input("no number of repetitions:", argv[4]);
  char *next_name = NULL, *next_size = NULL;
  for (char* name = strtok_r(argv[1], ",", &next_name); name != NULL;
       name = strtok_r(NULL, ",", &next_name)) {
    struct PeerRow row = {0, 0};
    while (row.collective < kPeerCollectives && strcmp(name, kPeerNames[row.collective]) != 0)
      ++row.collective;
    if (row.collective == kPeerCollectives) return peer_bad_input("unknown collective", name);
    char* sizes = strdup(row.collective == kBarrier ? "0" : argv[2]);
    for (char* size = strtok_r(sizes, ",", &next_size); size != NULL;
         size = strtok_r(NULL, ",", &next_size)) {
      row.n = atol(size) / (long)sizeof(float);
      if (row.n < 1 && row.collective != kBarrier)
        return peer_bad_input("no size of at least 4 bytes:", size);
      peer_row(peer, &row, argv[3], repetitions, warmups);
    }
    free(sizes);
  }
  if (peer->rank == 0) printf("]\n");
  fflush(stdout);
  return 0;
}
