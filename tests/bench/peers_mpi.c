// The collectives of an MPI library, timed for peers.py; peers_protocol.h has the arguments.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include "peers_protocol.h"

static struct Peer g_peer;
static int* g_counts;  // of MPI_Reduce_scatter

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void maximum(double* values, int count) {
  MPI_Reduce(g_peer.rank == 0 ? MPI_IN_PLACE : values, values, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

// Bytes are moved and floats are summed, as espalier-bench does it.
static void run(const struct PeerRow* row, float* send, float* receive) {
  const int n = (int)row->n, bytes = n * (int)sizeof(float);
  MPI_Comm all = MPI_COMM_WORLD;
  switch (row->collective) {
    case kBroadcast: MPI_Bcast(receive, bytes, MPI_BYTE, 0, all); break;
    case kReduce: MPI_Reduce(send, receive, n, MPI_FLOAT, MPI_SUM, 0, all); break;
    case kAllreduce: MPI_Allreduce(send, receive, n, MPI_FLOAT, MPI_SUM, all); break;
    case kScan: MPI_Scan(send, receive, n, MPI_FLOAT, MPI_SUM, all); break;
    case kExscan: MPI_Exscan(send, receive, n, MPI_FLOAT, MPI_SUM, all); break;
    case kScatter: MPI_Scatter(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, all); break;
    case kGather: MPI_Gather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, all); break;
    case kAllgather: MPI_Allgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, all); break;
    case kReduceScatter:
      for (int i = 0; i < g_peer.ranks; ++i) g_counts[i] = n;
      MPI_Reduce_scatter(send, receive, g_counts, MPI_FLOAT, MPI_SUM, all);
      break;
    case kAllToAll: MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, all); break;
    default: MPI_Barrier(all);
  }
}

static int g_status;

static void leave(int signal_number) {
  (void)signal_number;
  _exit(g_status);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  g_peer.barrier = barrier;
  g_peer.run = run;
  g_peer.maximum = maximum;
  MPI_Comm_rank(MPI_COMM_WORLD, &g_peer.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_peer.ranks);
  g_counts = malloc((size_t)g_peer.ranks * sizeof *g_counts);
  const int status = peer_main(&g_peer, argc, argv);
  MPI_Barrier(MPI_COMM_WORLD);
  // MPICH 4.0.2 hangs here now and then, over UCX's tcp.
  g_status = status;
  signal(SIGALRM, leave);
  alarm(1);
  MPI_Finalize();
  return status;
}
