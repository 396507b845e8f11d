#pragma once
// The arguments of MPI's collectives as calls of Espalier. Each function fills in `work`, or
// returns false if the MPI library takes the call. That depends only on what is the same on all
// ranks, so that all decide alike. Arguments that MPI forbids are for the MPI library, which has
// its errors.

#include "bridge/layout.h"
#include "bridge/state.h"

namespace espalier::bridge {

// A communicator with the request for a collective on it.
struct Caller {
  MPI_Comm comm;
  Attached* to;   // null: nothing is taken
  bool blocking;  // otherwise no preparation may wait for other ranks
};

bool prepare_barrier(const Caller& caller, Work& work);
bool prepare_bcast(const Caller& caller, Work& work, const Data& data, int root);
// Reduce, allreduce, scan and exscan.
bool prepare_reduction(const Caller& caller, Work& work, Collective collective, const void* send,
                       void* receive, int count, MPI_Datatype type, MPI_Op op, int root);
// counts: of each rank's part, or null: `count` each.
bool prepare_reduce_scatter(const Caller& caller, Work& work, const void* send, void* receive,
                            int count, const int* counts, MPI_Datatype type, MPI_Op op);
bool prepare_scatter(const Caller& caller, Work& work, const Data& send, const Data& receive,
                     int root);
bool prepare_gather(const Caller& caller, Work& work, const Data& send, const Data& receive,
                    int root);
bool prepare_allgather(const Caller& caller, Work& work, const Data& send, const Data& receive);
bool prepare_alltoall(const Caller& caller, Work& work, const Data& send, const Data& receive);
// The vectors of counts and offsets of the rank that has the whole message.
struct Vectors {
  const int* counts;
  const int* offsets;
};
bool prepare_scatterv(const Caller& caller, Work& work, const Data& send, Vectors parts,
                      const Data& receive, int root);
bool prepare_gatherv(const Caller& caller, Work& work, const Data& send, const Data& receive,
                     Vectors parts, int root);
bool prepare_allgatherv(const Caller& caller, Work& work, const Data& send, const Data& receive,
                        Vectors parts);
bool prepare_alltoallv(const Caller& caller, Work& work, const Data& send, Vectors sent,
                       const Data& receive, Vectors received);

}  // namespace espalier::bridge
