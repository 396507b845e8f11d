// The collectives that a program calls: taken by Espalier, or handed to the MPI library below.

#include "bridge/counts.h"
#include "bridge/prepare.h"

using namespace espalier;          // NOLINT(google-build-using-namespace): functions of C
using namespace espalier::bridge;  // NOLINT(google-build-using-namespace)

namespace {

// Runs what `prepare` prepares, otherwise `below`, and counts.
template <typename Prepare, typename Below>
int take(Function function, MPI_Comm comm, Prepare prepare, Below below) {
  const Caller caller{comm, attached(comm), true};
  Work work;
  const bool handled = caller.to != nullptr && prepare(caller, work);
  count_call(function, handled);
  return handled ? run(comm, *caller.to, work) : below();
}

// The same for a non-blocking collective.
template <typename Prepare, typename Below>
int take(Function function, MPI_Comm comm, MPI_Request* request, Prepare prepare, Below below) {
  const Caller caller{comm, attached(comm), false};
  auto work = std::make_unique<Work>();
  const bool handled = caller.to != nullptr && request != nullptr && prepare(caller, *work);
  count_call(function, handled);
  return handled ? start(comm, *caller.to, std::move(work), request) : below();
}

}  // namespace

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
  return take(
      Function::kBarrier, comm,
      [&](const Caller& caller, Work& work) { return prepare_barrier(caller, work); },
      [&] { return PMPI_Barrier(comm); });
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIbarrier, comm, request,
      [&](const Caller& caller, Work& work) { return prepare_barrier(caller, work); },
      [&] { return PMPI_Ibarrier(comm, request); });
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return take(
      Function::kBcast, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_bcast(caller, work, {buffer, count, type}, root);
      },
      [&] { return PMPI_Bcast(buffer, count, type, root, comm); });
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  return take(
      Function::kIbcast, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_bcast(caller, work, {buffer, count, type}, root);
      },
      [&] { return PMPI_Ibcast(buffer, count, type, root, comm, request); });
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  return take(
      Function::kReduce, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kReduce, send, receive, count, type, op,
                                 root);
      },
      [&] { return PMPI_Reduce(send, receive, count, type, op, root, comm); });
}

int MPI_Ireduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIreduce, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kReduce, send, receive, count, type, op,
                                 root);
      },
      [&] { return PMPI_Ireduce(send, receive, count, type, op, root, comm, request); });
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  return take(
      Function::kAllreduce, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kAllreduce, send, receive, count, type,
                                 op, 0);
      },
      [&] { return PMPI_Allreduce(send, receive, count, type, op, comm); });
}

int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIallreduce, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kAllreduce, send, receive, count, type,
                                 op, 0);
      },
      [&] { return PMPI_Iallreduce(send, receive, count, type, op, comm, request); });
}

int MPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
             MPI_Comm comm) {
  return take(
      Function::kScan, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kScan, send, receive, count, type, op,
                                 0);
      },
      [&] { return PMPI_Scan(send, receive, count, type, op, comm); });
}

int MPI_Iscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIscan, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kScan, send, receive, count, type, op,
                                 0);
      },
      [&] { return PMPI_Iscan(send, receive, count, type, op, comm, request); });
}

int MPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
  return take(
      Function::kExscan, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kExscan, send, receive, count, type, op,
                                 0);
      },
      [&] { return PMPI_Exscan(send, receive, count, type, op, comm); });
}

int MPI_Iexscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIexscan, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_reduction(caller, work, Collective::kExscan, send, receive, count, type, op,
                                 0);
      },
      [&] { return PMPI_Iexscan(send, receive, count, type, op, comm, request); });
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return take(
      Function::kScatter, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_scatter(caller, work, {send, send_count, send_type},
                               {receive, receive_count, receive_type}, root);
      },
      [&] {
        return PMPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root,
                            comm);
      });
}

int MPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return take(
      Function::kIscatter, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_scatter(caller, work, {send, send_count, send_type},
                               {receive, receive_count, receive_type}, root);
      },
      [&] {
        return PMPI_Iscatter(send, send_count, send_type, receive, receive_count, receive_type,
                             root, comm, request);
      });
}

int MPI_Scatterv(const void* send, const int* send_counts, const int* offsets,
                 MPI_Datatype send_type, void* receive, int receive_count,
                 MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return take(
      Function::kScatterv, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_scatterv(caller, work, {send, 0, send_type}, {send_counts, offsets},
                                {receive, receive_count, receive_type}, root);
      },
      [&] {
        return PMPI_Scatterv(send, send_counts, offsets, send_type, receive, receive_count,
                             receive_type, root, comm);
      });
}

int MPI_Iscatterv(const void* send, const int* send_counts, const int* offsets,
                  MPI_Datatype send_type, void* receive, int receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIscatterv, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_scatterv(caller, work, {send, 0, send_type}, {send_counts, offsets},
                                {receive, receive_count, receive_type}, root);
      },
      [&] {
        return PMPI_Iscatterv(send, send_counts, offsets, send_type, receive, receive_count,
                              receive_type, root, comm, request);
      });
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
               int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
  return take(
      Function::kGather, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_gather(caller, work, {send, send_count, send_type},
                              {receive, receive_count, receive_type}, root);
      },
      [&] {
        return PMPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root,
                           comm);
      });
}

int MPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                MPI_Request* request) {
  return take(
      Function::kIgather, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_gather(caller, work, {send, send_count, send_type},
                              {receive, receive_count, receive_type}, root);
      },
      [&] {
        return PMPI_Igather(send, send_count, send_type, receive, receive_count, receive_type, root,
                            comm, request);
      });
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                const int* receive_counts, const int* offsets, MPI_Datatype receive_type, int root,
                MPI_Comm comm) {
  return take(
      Function::kGatherv, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_gatherv(caller, work, {send, send_count, send_type},
                               {receive, 0, receive_type}, {receive_counts, offsets}, root);
      },
      [&] {
        return PMPI_Gatherv(send, send_count, send_type, receive, receive_counts, offsets,
                            receive_type, root, comm);
      });
}

int MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 const int* receive_counts, const int* offsets, MPI_Datatype receive_type, int root,
                 MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIgatherv, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_gatherv(caller, work, {send, send_count, send_type},
                               {receive, 0, receive_type}, {receive_counts, offsets}, root);
      },
      [&] {
        return PMPI_Igatherv(send, send_count, send_type, receive, receive_counts, offsets,
                             receive_type, root, comm, request);
      });
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return take(
      Function::kAllgather, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_allgather(caller, work, {send, send_count, send_type},
                                 {receive, receive_count, receive_type});
      },
      [&] {
        return PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type,
                              comm);
      });
}

int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request) {
  return take(
      Function::kIallgather, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_allgather(caller, work, {send, send_count, send_type},
                                 {receive, receive_count, receive_type});
      },
      [&] {
        return PMPI_Iallgather(send, send_count, send_type, receive, receive_count, receive_type,
                               comm, request);
      });
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   const int* receive_counts, const int* offsets, MPI_Datatype receive_type,
                   MPI_Comm comm) {
  return take(
      Function::kAllgatherv, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_allgatherv(caller, work, {send, send_count, send_type},
                                  {receive, 0, receive_type}, {receive_counts, offsets});
      },
      [&] {
        return PMPI_Allgatherv(send, send_count, send_type, receive, receive_counts, offsets,
                               receive_type, comm);
      });
}

int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    const int* receive_counts, const int* offsets, MPI_Datatype receive_type,
                    MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIallgatherv, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_allgatherv(caller, work, {send, send_count, send_type},
                                  {receive, 0, receive_type}, {receive_counts, offsets});
      },
      [&] {
        return PMPI_Iallgatherv(send, send_count, send_type, receive, receive_counts, offsets,
                                receive_type, comm, request);
      });
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
  return take(
      Function::kReduceScatterBlock, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_reduce_scatter(caller, work, send, receive, count, nullptr, type, op);
      },
      [&] { return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm); });
}

int MPI_Ireduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIreduceScatterBlock, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_reduce_scatter(caller, work, send, receive, count, nullptr, type, op);
      },
      [&] { return PMPI_Ireduce_scatter_block(send, receive, count, type, op, comm, request); });
}

int MPI_Reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm) {
  return take(
      Function::kReduceScatter, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_reduce_scatter(caller, work, send, receive, 0, counts, type, op);
      },
      [&] { return PMPI_Reduce_scatter(send, receive, counts, type, op, comm); });
}

int MPI_Ireduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type,
                        MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return take(
      Function::kIreduceScatter, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_reduce_scatter(caller, work, send, receive, 0, counts, type, op);
      },
      [&] { return PMPI_Ireduce_scatter(send, receive, counts, type, op, comm, request); });
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  return take(
      Function::kAlltoall, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_alltoall(caller, work, {send, send_count, send_type},
                                {receive, receive_count, receive_type});
      },
      [&] {
        return PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type,
                             comm);
      });
}

int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                  MPI_Request* request) {
  return take(
      Function::kIalltoall, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_alltoall(caller, work, {send, send_count, send_type},
                                {receive, receive_count, receive_type});
      },
      [&] {
        return PMPI_Ialltoall(send, send_count, send_type, receive, receive_count, receive_type,
                              comm, request);
      });
}

int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_offsets,
                  MPI_Datatype send_type, void* receive, const int* receive_counts,
                  const int* receive_offsets, MPI_Datatype receive_type, MPI_Comm comm) {
  return take(
      Function::kAlltoallv, comm,
      [&](const Caller& caller, Work& work) {
        return prepare_alltoallv(caller, work, {send, 0, send_type}, {send_counts, send_offsets},
                                 {receive, 0, receive_type}, {receive_counts, receive_offsets});
      },
      [&] {
        return PMPI_Alltoallv(send, send_counts, send_offsets, send_type, receive, receive_counts,
                              receive_offsets, receive_type, comm);
      });
}

int MPI_Ialltoallv(const void* send, const int* send_counts, const int* send_offsets,
                   MPI_Datatype send_type, void* receive, const int* receive_counts,
                   const int* receive_offsets, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request) {
  return take(
      Function::kIalltoallv, comm, request,
      [&](const Caller& caller, Work& work) {
        return prepare_alltoallv(caller, work, {send, 0, send_type}, {send_counts, send_offsets},
                                 {receive, 0, receive_type}, {receive_counts, receive_offsets});
      },
      [&] {
        return PMPI_Ialltoallv(send, send_counts, send_offsets, send_type, receive, receive_counts,
                               receive_offsets, receive_type, comm, request);
      });
}

int MPI_Alltoallw(const void* send, const int* send_counts, const int* send_offsets,
                  const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                  const int* receive_offsets, const MPI_Datatype* receive_types, MPI_Comm comm) {
  count_call(Function::kAlltoallw, false);  // each part has a type of its own
  return PMPI_Alltoallw(send, send_counts, send_offsets, send_types, receive, receive_counts,
                        receive_offsets, receive_types, comm);
}

int MPI_Ialltoallw(const void* send, const int* send_counts, const int* send_offsets,
                   const MPI_Datatype* send_types, void* receive, const int* receive_counts,
                   const int* receive_offsets, const MPI_Datatype* receive_types, MPI_Comm comm,
                   MPI_Request* request) {
  count_call(Function::kIalltoallw, false);  // each part has a type of its own
  return PMPI_Ialltoallw(send, send_counts, send_offsets, send_types, receive, receive_counts,
                         receive_offsets, receive_types, comm, request);
}

}  // extern "C"
