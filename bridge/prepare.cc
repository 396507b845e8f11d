#include "bridge/prepare.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace espalier::bridge {
namespace {

bool is_good(const Caller& caller, int root = 0) {
  return caller.to != nullptr && root >= 0 && static_cast<std::uint32_t>(root) < caller.to->size;
}
bool is_good(const Data& data) { return data.count >= 0 && data.type != MPI_DATATYPE_NULL; }
bool are_good(const int* counts, const int* offsets, std::uint32_t ranks) {
  return counts != nullptr && offsets != nullptr &&
         std::all_of(counts, counts + ranks, [](int count) { return count >= 0; });
}

// PMPI_Pack() counts bytes in an int. The limit is on a sum that all ranks know, or on a part.
bool fits(std::uint64_t bytes) { return bytes <= 0x7fffffff; }
std::uint64_t bytes_of(const Data& data) {
  return static_cast<std::uint64_t>(data.count) * size_of(data.type);
}

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

// Exchanges `own`, the same number of values on each rank, before a collective whose counts only
// some ranks know.
bool know_counts(const Caller& caller, Collective collective, std::vector<std::uint64_t>& own,
                 std::vector<std::uint64_t>& all, int root) {
  Work work;
  work.call.collective = collective;
  work.call.send = own.data();
  work.call.receive = all.data();
  work.call.count = own.size();
  work.call.op = {.type = Type::kU64};
  work.call.root = static_cast<std::uint32_t>(root);
  return run(caller.comm, *caller.to, work) == MPI_SUCCESS;
}

}  // namespace

bool prepare_barrier(const Caller& caller, Work& work) {
  if (!is_good(caller)) return false;
  work.call = call::barrier();
  return true;
}

bool prepare_bcast(const Caller& caller, Work& work, const Data& data, int root) {
  if (!is_good(caller, root) || !is_good(data) || !fits(bytes_of(data))) return false;
  if (caller.to->rank == static_cast<std::uint32_t>(root)) {
    const void* row = row_of(work, data, caller.comm);
    set(work, Collective::kBroadcast, row, const_cast<void*>(row), bytes_of(data), root);
  } else {
    void* room = room_for(work, data, caller.comm);
    set(work, Collective::kBroadcast, room, room, bytes_of(data), root);
  }
  return true;
}

bool prepare_reduction(const Caller& caller, Work& work, Collective collective, const void* send,
                       void* receive, int count, MPI_Datatype type, MPI_Op op, int root) {
  if (!is_good(caller, root) || !is_good({receive, count, type}) || op == MPI_OP_NULL) return false;
  const auto made = operator_of(op, type, caller.blocking, work.user);
  if (!made) return false;
  if (send == MPI_IN_PLACE) send = receive;
  const bool gets_result =
      collective != Collective::kReduce || caller.to->rank == static_cast<std::uint32_t>(root);
  work.call = {.collective = collective,
               .send = send,
               .receive = gets_result ? receive : nullptr,
               .count = static_cast<std::uint64_t>(count),
               .op = *made,
               .root = static_cast<std::uint32_t>(root)};
  return true;
}

bool prepare_reduce_scatter(const Caller& caller, Work& work, const void* send, void* receive,
                            int count, const int* counts, MPI_Datatype type, MPI_Op op) {
  if (!is_good(caller) || !is_good({receive, count, type}) || op == MPI_OP_NULL) return false;
  const std::uint32_t ranks = caller.to->size;
  if (counts != nullptr && !are_good(counts, counts, ranks)) return false;
  const auto made = operator_of(op, type, caller.blocking, work.user);
  if (!made) return false;
  const std::uint64_t all = counts != nullptr
                                ? std::accumulate(counts, counts + ranks, std::uint64_t{0})
                                : static_cast<std::uint64_t>(count) * ranks;
  if (send == MPI_IN_PLACE) {
    // MPI has the result at the beginning of the input, not at the place of the rank's part.
    const auto* bytes = static_cast<const std::uint8_t*>(receive);
    work.send_copy.assign(bytes, bytes + all * static_cast<std::uint64_t>(extent_of(type)));
    send = work.send_copy.data();
  }
  work.call = {.collective = Collective::kReduceScatter,
               .send = send,
               .receive = receive,
               .count = static_cast<std::uint64_t>(count),
               .op = *made};
  if (counts == nullptr) return true;
  work.counts.assign(counts, counts + ranks);
  set_counts(work);
  return true;
}

bool prepare_scatter(const Caller& caller, Work& work, const Data& send, const Data& receive,
                     int root) {
  if (!is_good(caller, root)) return false;
  const bool is_root = caller.to->rank == static_cast<std::uint32_t>(root);
  const bool in_place = receive.bytes == MPI_IN_PLACE;
  const Data& own = is_root ? send : receive;
  if (!is_good(own) || (is_root && !in_place && !is_good(receive))) return false;
  if (!fits(bytes_of(own) * caller.to->size)) return false;
  const std::uint64_t part = bytes_of(own);
  const void* row = nullptr;
  if (is_root) {
    row =
        row_of(work, Parts::equal(send.bytes, send.count, send.type, caller.to->size), caller.comm);
  }
  void* room = nullptr;
  if (is_root && in_place) {
    room = const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(row)) +
           part * static_cast<std::uint64_t>(root);
  } else {
    room = room_for(work, receive, caller.comm);
  }
  set(work, Collective::kScatter, row, room, part, root);
  return true;
}

bool prepare_gather(const Caller& caller, Work& work, const Data& send, const Data& receive,
                    int root) {
  if (!is_good(caller, root)) return false;
  const bool is_root = caller.to->rank == static_cast<std::uint32_t>(root);
  const bool in_place = send.bytes == MPI_IN_PLACE;
  const Data& own = is_root ? receive : send;
  if (!is_good(own) || (is_root && !in_place && !is_good(send))) return false;
  if (!fits(bytes_of(own) * caller.to->size)) return false;
  void* room = nullptr;
  const void* row = nullptr;
  if (is_root) {
    const Parts parts = Parts::equal(receive.bytes, receive.count, receive.type, caller.to->size);
    room = room_for(work, parts, caller.comm);
    const Data own_part{parts.address(static_cast<std::size_t>(root)), receive.count, receive.type};
    row = row_of(work, in_place ? own_part : send, caller.comm);
  } else {
    row = row_of(work, send, caller.comm);
  }
  set(work, Collective::kGather, row, room, bytes_of(own), root);
  return true;
}

bool prepare_allgather(const Caller& caller, Work& work, const Data& send, const Data& receive) {
  const bool in_place = send.bytes == MPI_IN_PLACE;
  if (!is_good(caller) || !is_good(receive) || (!in_place && !is_good(send))) return false;
  if (!fits(bytes_of(receive) * caller.to->size)) return false;
  const Parts parts = Parts::equal(receive.bytes, receive.count, receive.type, caller.to->size);
  void* room = room_for(work, parts, caller.comm);
  const Data own_part{parts.address(caller.to->rank), receive.count, receive.type};
  const void* row = row_of(work, in_place ? own_part : send, caller.comm);
  set(work, Collective::kAllgather, row, room, bytes_of(receive), 0);
  return true;
}

bool prepare_alltoall(const Caller& caller, Work& work, const Data& send, const Data& receive) {
  const bool in_place = send.bytes == MPI_IN_PLACE;
  if (!is_good(caller) || !is_good(receive) || (!in_place && !is_good(send))) return false;
  const std::uint32_t ranks = caller.to->size;
  if (!fits(bytes_of(receive) * ranks)) return false;
  const Parts parts = Parts::equal(receive.bytes, receive.count, receive.type, ranks);
  void* room = room_for(work, parts, caller.comm);
  const void* row = row_of(
      work, in_place ? parts : Parts::equal(send.bytes, send.count, send.type, ranks), caller.comm);
  set(work, Collective::kAllToAll, row, room, bytes_of(receive), 0);
  return true;
}

bool prepare_scatterv(const Caller& caller, Work& work, const Data& send, Vectors parts,
                      const Data& receive, int root) {
  if (!is_good(caller, root) || !caller.blocking) return false;
  const std::uint32_t ranks = caller.to->size;
  const bool is_root = caller.to->rank == static_cast<std::uint32_t>(root);
  const bool in_place = receive.bytes == MPI_IN_PLACE;
  if (is_root &&
      (send.type == MPI_DATATYPE_NULL || !are_good(parts.counts, parts.offsets, ranks))) {
    return false;
  }
  if (!in_place && !is_good(receive)) return false;
  work.counts.assign(ranks, 0);
  Parts all;
  const void* row = nullptr;
  if (is_root) {
    all = Parts::unequal(send.bytes, parts.counts, parts.offsets, send.type, ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) work.counts[rank] = all.bytes_of(rank);
    row = row_of(work, all, caller.comm);
  }
  if (!know_counts(caller, Collective::kBroadcast, work.counts, work.counts, root)) return false;
  const std::uint64_t before =
      std::accumulate(work.counts.begin(), work.counts.begin() + root, std::uint64_t{0});
  void* room = nullptr;
  if (is_root && in_place) {
    room = const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(row)) + before;
  } else {
    room = room_for(work, receive, caller.comm);
  }
  set(work, Collective::kScatter, row, room, 0, root);
  set_counts(work);
  return true;
}

bool prepare_gatherv(const Caller& caller, Work& work, const Data& send, const Data& receive,
                     Vectors parts, int root) {
  if (!is_good(caller, root) || !caller.blocking) return false;
  const std::uint32_t ranks = caller.to->size;
  const bool is_root = caller.to->rank == static_cast<std::uint32_t>(root);
  const bool in_place = send.bytes == MPI_IN_PLACE;
  if (is_root &&
      (receive.type == MPI_DATATYPE_NULL || !are_good(parts.counts, parts.offsets, ranks))) {
    return false;
  }
  if (!in_place && !is_good(send)) return false;
  Data own = send;
  void* room = nullptr;
  if (is_root) {
    const Parts all =
        Parts::unequal(receive.bytes, parts.counts, parts.offsets, receive.type, ranks);
    room = room_for(work, all, caller.comm);
    const auto place = static_cast<std::size_t>(root);
    if (in_place) own = {all.address(place), all.counts[place], receive.type};
  }
  const void* row = row_of(work, own, caller.comm);
  std::vector<std::uint64_t> bytes = {bytes_of(own)};
  work.counts.assign(ranks, 0);
  if (!know_counts(caller, Collective::kAllgather, bytes, work.counts, 0)) return false;
  set(work, Collective::kGather, row, room, 0, root);
  set_counts(work);
  return true;
}

bool prepare_allgatherv(const Caller& caller, Work& work, const Data& send, const Data& receive,
                        Vectors parts) {
  if (!is_good(caller) || receive.type == MPI_DATATYPE_NULL) return false;
  const std::uint32_t ranks = caller.to->size;
  const bool in_place = send.bytes == MPI_IN_PLACE;
  if (!are_good(parts.counts, parts.offsets, ranks) || (!in_place && !is_good(send))) return false;
  const Parts all = Parts::unequal(receive.bytes, parts.counts, parts.offsets, receive.type, ranks);
  if (!fits(all.all_bytes())) return false;
  void* room = room_for(work, all, caller.comm);
  const Data own_part{all.address(caller.to->rank), all.counts[caller.to->rank], receive.type};
  const void* row = row_of(work, in_place ? own_part : send, caller.comm);
  set(work, Collective::kAllgather, row, room, 0, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) work.counts.push_back(all.bytes_of(rank));
  set_counts(work);
  return true;
}

bool prepare_alltoallv(const Caller& caller, Work& work, const Data& send, Vectors sent,
                       const Data& receive, Vectors received) {
  if (!is_good(caller) || !caller.blocking || receive.type == MPI_DATATYPE_NULL) return false;
  const std::uint32_t ranks = caller.to->size;
  const bool in_place = send.bytes == MPI_IN_PLACE;
  if (!are_good(received.counts, received.offsets, ranks)) return false;
  if (!in_place &&
      (send.type == MPI_DATATYPE_NULL || !are_good(sent.counts, sent.offsets, ranks))) {
    return false;
  }
  const Parts into =
      Parts::unequal(receive.bytes, received.counts, received.offsets, receive.type, ranks);
  const Parts from =
      in_place ? into : Parts::unequal(send.bytes, sent.counts, sent.offsets, send.type, ranks);
  std::vector<std::uint64_t> bytes;
  for (std::size_t rank = 0; rank < ranks; ++rank) bytes.push_back(from.bytes_of(rank));
  work.counts.assign(std::size_t{ranks} * ranks, 0);
  if (!know_counts(caller, Collective::kAllgather, bytes, work.counts, 0)) return false;
  void* room = room_for(work, into, caller.comm);
  const void* row = row_of(work, from, caller.comm);
  set(work, Collective::kAllToAll, row, room, 0, 0);
  set_counts(work);
  return true;
}

}  // namespace espalier::bridge
