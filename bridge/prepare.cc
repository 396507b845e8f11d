#include "bridge/prepare.h"

#include <numeric>

namespace espalier::bridge {
namespace {

// A rank has at most 128 links. The direct schedules of vectors need one to each other rank, and no
// schedule of an all-to-all takes more ranks.
constexpr std::uint32_t kMaxDirectRanks = 129;

void set(Work& work, Collective collective, const void* send, void* receive, std::uint64_t bytes,
         int root) {
  work.call.collective = collective;
  work.call.send = send;
  work.call.receive = receive;
  work.call.count = bytes;
  work.call.op = {.type = Type::kBytes};
  work.call.root = static_cast<std::uint32_t>(root);
}
void set_counts(Work& work) { work.call.counts = work.counts; }
void set_own_counts(Work& work) {
  work.call.counts = work.counts;
  work.has_own_counts = true;
}

// The root's own part, in the whole row that it has.
void* part_of_row(const void* row, std::uint64_t offset) {
  return const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(row)) + offset;
}

void prepare_bcast(const Attached& to, const Arguments& a, Work& work) {
  const Data data = a.received();
  if (to.rank == static_cast<std::uint32_t>(a.root)) {
    const void* row = row_of(work, data);
    set(work, Collective::kBroadcast, row, const_cast<void*>(row), data.size(), a.root);
  } else {
    void* room = room_for(work, data);
    set(work, Collective::kBroadcast, room, room, data.size(), a.root);
  }
}

Collective collective_of(Routine routine) {
  switch (routine) {
    case Routine::kReduce: return Collective::kReduce;
    case Routine::kAllreduce: return Collective::kAllreduce;
    case Routine::kScan: return Collective::kScan;
    default: return Collective::kExscan;
  }
}

// Reduce, allreduce, scan and exscan.
void prepare_reduction(Routine routine, const Attached& to, const Arguments& a, Work& work) {
  const void* send = is_in_place(a.send) ? a.receive : a.send;
  const bool gets_result =
      routine != Routine::kReduce || to.rank == static_cast<std::uint32_t>(a.root);
  void* receive = gets_result ? a.receive : nullptr;
  if (has_packed_operands(a.user, a.receive_type)) {
    send = row_of(work, {send, a.receive_count, a.receive_type});
    if (gets_result) receive = room_for(work, a.received());
    // The first rank's receive buffer keeps its content.
    if (routine == Routine::kExscan && to.rank == 0) work.finish = {};
  }
  work.call.collective = collective_of(routine);
  work.call.send = send;
  work.call.receive = receive;
  work.call.count = static_cast<std::uint64_t>(a.receive_count);
  work.call.root = static_cast<std::uint32_t>(a.root);
}

// Whether all ranks get parts of one size. All ranks have the same vector.
bool has_equal_parts(const Arguments& a, std::uint32_t ranks) {
  if (!a.receive_counts.is_given()) return true;
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    if (a.receive_counts[rank] != a.receive_counts[0]) return false;
  }
  return true;
}

void prepare_reduce_scatter(const Attached& to, const Arguments& a, Work& work) {
  const bool is_equal = has_equal_parts(a, to.size);
  const std::int64_t own =
      a.receive_counts.is_given() ? a.receive_counts[to.rank] : a.receive_count;
  std::int64_t all = own * to.size;
  if (!is_equal) {
    all = 0;
    for (std::uint32_t rank = 0; rank < to.size; ++rank) {
      work.counts.push_back(static_cast<std::uint64_t>(a.receive_counts[rank]));
      all += a.receive_counts[rank];
    }
  }
  const bool in_place = is_in_place(a.send);
  const void* send = in_place ? a.receive : a.send;
  void* receive = a.receive;
  if (has_packed_operands(a.user, a.receive_type)) {
    send = row_of(work, {send, all, a.receive_type});
    receive = room_for(work, {a.receive, own, a.receive_type});
  } else if (in_place) {
    // MPI has the result at the beginning of the input, not at the place of the rank's part.
    const auto* bytes = static_cast<const std::uint8_t*>(send);
    work.send_copy.assign(bytes, bytes + all * extent_of(a.receive_type));
    send = work.send_copy.data();
  }
  work.call.collective = Collective::kReduceScatter;
  work.call.send = send;
  work.call.receive = receive;
  work.call.count = static_cast<std::uint64_t>(own);
  if (!is_equal) set_counts(work);
}

void prepare_scatter(const Attached& to, const Arguments& a, Work& work) {
  const bool is_root = to.rank == static_cast<std::uint32_t>(a.root);
  const std::uint64_t part = is_root ? a.sent().size() : a.received().size();
  const void* row = nullptr;
  if (is_root) row = row_of(work, Parts::equal(a.send, a.send_count, a.send_type, to.size));
  void* const room = is_in_place(a.receive)
                         ? part_of_row(row, part * static_cast<std::uint64_t>(a.root))
                         : room_for(work, a.received());
  set(work, Collective::kScatter, row, room, part, a.root);
}

void prepare_gather(const Attached& to, const Arguments& a, Work& work) {
  const bool is_root = to.rank == static_cast<std::uint32_t>(a.root);
  Data own = a.sent();
  void* room = nullptr;
  if (is_root) {
    const Parts parts = Parts::equal(a.receive, a.receive_count, a.receive_type, to.size);
    room = room_for(work, parts);
    if (is_in_place(a.send)) own = parts.data(to.rank);
  }
  set(work, Collective::kGather, row_of(work, own), room, own.size(), a.root);
}

void prepare_allgather(const Attached& to, const Arguments& a, Work& work) {
  const Parts parts = Parts::equal(a.receive, a.receive_count, a.receive_type, to.size);
  void* room = room_for(work, parts);
  const void* row = row_of(work, is_in_place(a.send) ? parts.data(to.rank) : a.sent());
  set(work, Collective::kAllgather, row, room, a.received().size(), 0);
}

void prepare_alltoall(const Attached& to, const Arguments& a, Work& work) {
  const Parts parts = Parts::equal(a.receive, a.receive_count, a.receive_type, to.size);
  void* room = room_for(work, parts);
  const void* row = row_of(
      work, is_in_place(a.send) ? parts : Parts::equal(a.send, a.send_count, a.send_type, to.size));
  set(work, Collective::kAllToAll, row, room, a.received().size(), 0);
}

void prepare_scatterv(const Attached& to, const Arguments& a, Work& work) {
  work.counts.assign(to.size, 0);
  const void* row = nullptr;
  if (to.rank == static_cast<std::uint32_t>(a.root)) {
    const Parts all = Parts::unequal(a.send, a.send_counts, a.send_offsets, a.send_type, to.size);
    for (std::size_t rank = 0; rank < to.size; ++rank) work.counts[rank] = all.bytes_of(rank);
    row = row_of(work, all);
  } else {
    work.counts[to.rank] = a.received().size();
  }
  const std::uint64_t before =
      std::accumulate(work.counts.begin(), work.counts.begin() + a.root, std::uint64_t{0});
  void* const room =
      is_in_place(a.receive) ? part_of_row(row, before) : room_for(work, a.received());
  set(work, Collective::kScatter, row, room, 0, a.root);
  set_own_counts(work);
}

void prepare_gatherv(const Attached& to, const Arguments& a, Work& work) {
  work.counts.assign(to.size, 0);
  Data own = a.sent();
  void* room = nullptr;
  if (to.rank == static_cast<std::uint32_t>(a.root)) {
    const Parts all =
        Parts::unequal(a.receive, a.receive_counts, a.receive_offsets, a.receive_type, to.size);
    for (std::size_t rank = 0; rank < to.size; ++rank) work.counts[rank] = all.bytes_of(rank);
    room = room_for(work, all);
    if (is_in_place(a.send)) own = all.data(to.rank);
  } else {
    work.counts[to.rank] = own.size();
  }
  set(work, Collective::kGather, row_of(work, own), room, 0, a.root);
  set_own_counts(work);
}

void prepare_allgatherv(const Attached& to, const Arguments& a, Work& work) {
  const Parts all =
      Parts::unequal(a.receive, a.receive_counts, a.receive_offsets, a.receive_type, to.size);
  void* room = room_for(work, all);
  const void* row = row_of(work, is_in_place(a.send) ? all.data(to.rank) : a.sent());
  set(work, Collective::kAllgather, row, room, 0, 0);
  for (std::size_t rank = 0; rank < to.size; ++rank) work.counts.push_back(all.bytes_of(rank));
  set_counts(work);
}

void prepare_alltoallv(const Attached& to, const Arguments& a, Work& work) {
  const std::uint32_t ranks = to.size;
  const Parts into =
      Parts::unequal(a.receive, a.receive_counts, a.receive_offsets, a.receive_type, ranks);
  const Parts from = is_in_place(a.send) ? into
                                         : Parts::unequal(a.send, a.send_counts, a.send_offsets,
                                                          a.send_type, ranks);
  work.counts.assign(std::size_t{ranks} * ranks, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    work.counts[rank * ranks + to.rank] = into.bytes_of(rank);
    work.counts[to.rank * ranks + rank] = from.bytes_of(rank);
  }
  set(work, Collective::kAllToAll, row_of(work, from), room_for(work, into), 0, 0);
  set_own_counts(work);
}

}  // namespace

bool is_taken(Routine routine, const Attached& to, const Arguments& arguments) {
  if (is_for_mpi(routine)) return false;
  if (is_reduction(routine)) {
    // For many numbers of ranks no schedule takes a count for each rank and keeps their order. All
    // ranks know the counts.
    const bool keeps_order = arguments.user && !arguments.user->commutes;
    if (keeps_order && !has_equal_parts(arguments, to.size)) return false;
    UserOperator user;
    return arguments.receive_type != MPI_DATATYPE_NULL &&
           operator_of(arguments.op, arguments.user, arguments.receive_type, user).has_value();
  }
  const bool is_direct = routine == Routine::kScatterv || routine == Routine::kGatherv ||
                         routine == Routine::kAlltoall || routine == Routine::kAlltoallv;
  return !is_direct || to.size <= kMaxDirectRanks;
}

void prepare(Routine routine, const Attached& to, const Arguments& arguments, Work& work) {
  if (is_reduction(routine)) {
    work.call.op = *operator_of(arguments.op, arguments.user, arguments.receive_type, work.user);
    if (arguments.user) work.kept.keep(arguments.receive_type);
  }
  switch (routine) {
    case Routine::kBarrier: work.call = call::barrier(); return;
    case Routine::kBcast: return prepare_bcast(to, arguments, work);
    case Routine::kReduce:
    case Routine::kAllreduce:
    case Routine::kScan:
    case Routine::kExscan: return prepare_reduction(routine, to, arguments, work);
    case Routine::kReduceScatterBlock:
    case Routine::kReduceScatter: return prepare_reduce_scatter(to, arguments, work);
    case Routine::kScatter: return prepare_scatter(to, arguments, work);
    case Routine::kGather: return prepare_gather(to, arguments, work);
    case Routine::kAllgather: return prepare_allgather(to, arguments, work);
    case Routine::kAlltoall: return prepare_alltoall(to, arguments, work);
    case Routine::kScatterv: return prepare_scatterv(to, arguments, work);
    case Routine::kGatherv: return prepare_gatherv(to, arguments, work);
    case Routine::kAllgatherv: return prepare_allgatherv(to, arguments, work);
    case Routine::kAlltoallv: return prepare_alltoallv(to, arguments, work);
    default: return;  // is_taken() refuses them
  }
}

}  // namespace espalier::bridge
