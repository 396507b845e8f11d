#include "bridge/counts.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace espalier::bridge {
namespace {

constexpr std::size_t kFunctions = static_cast<std::size_t>(Function::kCount);
constexpr std::array<const char*, kFunctions> kNames = {"Barrier",
                                                        "Bcast",
                                                        "Reduce",
                                                        "Allreduce",
                                                        "Scan",
                                                        "Exscan",
                                                        "Scatter",
                                                        "Scatterv",
                                                        "Gather",
                                                        "Gatherv",
                                                        "Allgather",
                                                        "Allgatherv",
                                                        "Reduce_scatter_block",
                                                        "Reduce_scatter",
                                                        "Alltoall",
                                                        "Alltoallv",
                                                        "Alltoallw",
                                                        "Ibarrier",
                                                        "Ibcast",
                                                        "Ireduce",
                                                        "Iallreduce",
                                                        "Iscan",
                                                        "Iexscan",
                                                        "Iscatter",
                                                        "Iscatterv",
                                                        "Igather",
                                                        "Igatherv",
                                                        "Iallgather",
                                                        "Iallgatherv",
                                                        "Ireduce_scatter_block",
                                                        "Ireduce_scatter",
                                                        "Ialltoall",
                                                        "Ialltoallv",
                                                        "Ialltoallw"};

std::array<std::atomic<std::uint64_t>, 2 * kFunctions> calls;  // below, by Espalier

}  // namespace

void count_call(Function function, bool is_handled) {
  ++calls[2 * static_cast<std::size_t>(function) + (is_handled ? 1 : 0)];
}

void print_counts() {
  if (std::getenv("ESPALIER_MPI_COUNTS") == nullptr) return;
  std::array<std::uint64_t, 2 * kFunctions> own, sums = {};
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = calls[i];
  PMPI_Reduce(own.data(), sums.data(), static_cast<int>(own.size()), MPI_UINT64_T, MPI_SUM, 0,
              MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::uint64_t below = 0, handled = 0;
  std::fprintf(stderr, "%-26s %12s %12s\n", "calls on all ranks", "by Espalier", "by MPI");
  const auto line = [](const char* name, std::uint64_t by_us, std::uint64_t by_mpi) {
    std::fprintf(stderr, "MPI_%-22s %12llu %12llu\n", name, static_cast<unsigned long long>(by_us),
                 static_cast<unsigned long long>(by_mpi));
  };
  for (std::size_t i = 0; i < kFunctions; ++i) {
    if (sums[2 * i] + sums[2 * i + 1] != 0) line(kNames[i], sums[2 * i + 1], sums[2 * i]);
    below += sums[2 * i];
    handled += sums[2 * i + 1];
  }
  line("* (all)", handled, below);
}

}  // namespace espalier::bridge
