#pragma once
// The arguments of a collective, and which of them the MPI library below refuses.

#include <cstdint>
#include <optional>

#include "bridge/counts.h"
#include "bridge/layout.h"
#include "bridge/operators.h"
#include "bridge/state.h"

namespace espalier::bridge {

// The arguments of any collective of MPI. A routine with one buffer, count or type has it as that
// of the receiver: MPI_Bcast, and the count and type of reductions.
struct Arguments {
  MPI_Comm comm = MPI_COMM_NULL;
  const void* send = nullptr;
  void* receive = nullptr;
  std::int64_t send_count = 0, receive_count = 0;
  Numbers send_counts, send_offsets, receive_counts, receive_offsets;  // by rank
  MPI_Datatype send_type = MPI_DATATYPE_NULL, receive_type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  std::optional<KnownOperator> user = {};  // of op

  [[nodiscard]] Data sent() const { return {send, send_count, send_type}; }
  [[nodiscard]] Data received() const { return {receive, receive_count, receive_type}; }
};

[[nodiscard]] inline bool is_in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }
[[nodiscard]] constexpr bool is_reduction(Routine routine) {
  return (routine >= Routine::kReduce && routine <= Routine::kExscan) ||
         routine == Routine::kReduceScatterBlock || routine == Routine::kReduceScatter;
}
[[nodiscard]] constexpr bool has_root(Routine routine) {
  return routine == Routine::kBcast || routine == Routine::kReduce ||
         (routine >= Routine::kScatter && routine <= Routine::kGatherv);
}

// Returns MPI_SUCCESS, or the error that the MPI library has for these arguments of this rank. It
// finds it on a communicator of this process alone, so that no rank waits for another: the others
// do not know what this rank's arguments are.
[[nodiscard]] int check_arguments(Routine routine, const Attached& to, const Arguments& arguments);

}  // namespace espalier::bridge
