#pragma once
// How many calls of each function Espalier took, and how many the MPI library below.

#include <cstdint>

#include "bridge/mpi_below.h"

namespace espalier::bridge {

// The functions that Espalier can take.
enum class Function : std::uint8_t {
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
  kIbarrier,
  kIbcast,
  kIreduce,
  kIallreduce,
  kIscan,
  kIexscan,
  kIscatter,
  kIscatterv,
  kIgather,
  kIgatherv,
  kIallgather,
  kIallgatherv,
  kIreduceScatterBlock,
  kIreduceScatter,
  kIalltoall,
  kIalltoallv,
  kIalltoallw,
  kCount
};

void count_call(Function function, bool is_handled);
// Prints the sums over all processes at rank 0, if ESPALIER_MPI_COUNTS is set. All processes call
// it before PMPI_Finalize().
void print_counts();

}  // namespace espalier::bridge
