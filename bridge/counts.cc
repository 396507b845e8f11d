#include "bridge/counts.h"

#include <array>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <string>

#include "base/process/variables.h"

namespace espalier::bridge {
namespace {

constexpr std::size_t kRoutines = static_cast<std::size_t>(Routine::kCount);
constexpr std::size_t kForms = static_cast<std::size_t>(Form::kCount);
constexpr std::array<const char*, kRoutines> kNames = {
    "Barrier",
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
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
};

// The calls of each routine and form, below and by Espalier; last, those on intercommunicators.
constexpr std::size_t kCounters = 2 * kRoutines * kForms + 1;
std::array<std::atomic<std::uint64_t>, kCounters> calls;

std::size_t place_of(std::size_t routine, std::size_t form, bool is_handled) {
  return 2 * (routine * kForms + form) + (is_handled ? 1 : 0);
}

std::string name_of(std::size_t routine, std::size_t form) {
  std::string name = kNames[routine];
  if (form == static_cast<std::size_t>(Form::kPersistent)) return name + "_init";
  if (form == static_cast<std::size_t>(Form::kNonblocking)) {
    name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
    name.insert(0, "I");
  }
  return name;
}

void print_line(const std::string& name, std::uint64_t by_us, std::uint64_t by_mpi) {
  std::fprintf(stderr, "MPI_%-28s %12llu %12llu\n", name.c_str(),
               static_cast<unsigned long long>(by_us), static_cast<unsigned long long>(by_mpi));
}

}  // namespace

void count_call(Routine routine, Form form, bool is_handled) {
  ++calls[place_of(static_cast<std::size_t>(routine), static_cast<std::size_t>(form), is_handled)];
}

void count_below(Routine routine, Form form, MPI_Comm comm) {
  int is_inter = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0) {
    ++calls.back();
  } else {
    count_call(routine, form, false);
  }
}

void print_counts() {
  if (!is_set(Variable::kMpiCounts)) return;
  std::array<std::uint64_t, kCounters> own, sums = {};
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = calls[i];
  PMPI_Reduce(own.data(), sums.data(), static_cast<int>(own.size()), MPI_UINT64_T, MPI_SUM, 0,
              MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::uint64_t below = 0, handled = 0, apart = 0;
  std::fprintf(stderr, "%-32s %12s %12s\n", "calls on all ranks", "by Espalier", "by MPI");
  for (std::size_t routine = 0; routine < kRoutines; ++routine) {
    for (std::size_t form = 0; form < kForms; ++form) {
      const std::uint64_t by_us = sums[place_of(routine, form, true)];
      const std::uint64_t by_mpi = sums[place_of(routine, form, false)];
      if (by_us + by_mpi != 0) print_line(name_of(routine, form), by_us, by_mpi);
      (is_for_mpi(static_cast<Routine>(routine)) ? apart : below) += by_mpi;
      handled += by_us;
    }
  }
  print_line("* (all)", handled, below);
  print_line("(Alltoallw, Neighbor_*)", 0, apart);
  print_line("(on intercommunicators)", 0, sums.back());
}

}  // namespace espalier::bridge
