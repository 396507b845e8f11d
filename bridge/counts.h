#pragma once
// How many calls of each routine Espalier took, and how many the MPI library below.

#include <cstdint>

#include "bridge/mpi_below.h"

namespace espalier::bridge {

// The collectives of MPI. Those from kAlltoallw on are for the MPI library.
enum class Routine : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kScan,
  kExscan,
  kScatter,
  kScatterv,
  kGather,
  kGatherv,
  kAllgather,
  kAllgatherv,
  kReduceScatterBlock,
  kReduceScatter,
  kAlltoall,
  kAlltoallv,
  kAlltoallw,
  kNeighborAllgather,
  kNeighborAllgatherv,
  kNeighborAlltoall,
  kNeighborAlltoallv,
  kNeighborAlltoallw,
  kCount
};
// MPI_Bcast, MPI_Ibcast, and MPI_Bcast_init, which is counted once for all its starts.
enum class Form : std::uint8_t { kBlocking, kNonblocking, kPersistent, kCount };

[[nodiscard]] constexpr bool is_for_mpi(Routine routine) { return routine >= Routine::kAlltoallw; }

// Counts a call on an intracommunicator.
void count_call(Routine routine, Form form, bool is_handled);
// Counts a call that the MPI library gets because of its communicator: perhaps of two groups.
void count_below(Routine routine, Form form, MPI_Comm comm);
// Prints the sums over all processes at rank 0, if ESPALIER_MPI_COUNTS is set. All processes call
// it before PMPI_Finalize().
void print_counts();

}  // namespace espalier::bridge
