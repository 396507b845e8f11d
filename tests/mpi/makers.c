/* A communicator of each function that makes one, with a collective on it; and what MPI says about frees of those that it made itself.

   makers FOLDER */
#include "results.h"

static void use(const char* name, MPI_Comm comm) {
  int sum = 0, later = 0, own = -1;
  MPI_Request request;
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(comm, &own);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Iallreduce(&rank, &later, 1, MPI_INT, MPI_MAX, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  result("%s: rank %d, sum %d, maximum %d", name, own, sum, later);
  MPI_Comm_free(&comm);
}

/* The copy is there only after a message that another rank sends when it has its own. */
static void use_idup(void) {
  MPI_Comm comm;
  MPI_Request request;
  int token = 0;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  if (rank == 0) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int to = 1; to < ranks; ++to) MPI_Send(&token, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  use("idup", comm);
}

static void use_groups(void) {
  MPI_Comm comm, half, both;
  MPI_Group group, front;
  const int range[1][3] = {{0, (ranks - 1) / 2, 1}};
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_range_incl(group, 1, (int(*)[3])range, &front);
  MPI_Comm_create(MPI_COMM_WORLD, front, &comm);
  use("create", comm);
  if (rank <= (ranks - 1) / 2) {
    MPI_Comm_create_group(MPI_COMM_WORLD, front, 3, &comm);
    use("create_group", comm);
  }
  MPI_Group_free(&group);
  MPI_Group_free(&front);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  /* Each half is led by its last rank of the world. */
  const int is_last_here = (ranks - 1) % 2 == rank % 2;
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_last_here ? ranks - 2 : ranks - 1, 4, &both);
  MPI_Intercomm_merge(both, rank % 2, &comm);
  use("merge", comm);
  MPI_Comm_free(&both);
  use("split", half);
}

static void use_topologies(void) {
  MPI_Comm comm, row;
  const int periodic = 1, kept = 1, next = (rank + 1) % ranks,
            previous = (rank + ranks - 1) % ranks;
  int index[16], edges[16];
  for (int i = 0; i < ranks; ++i) {
    index[i] = i + 1;
    edges[i] = (i + 1) % ranks;
  }
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &comm);
  MPI_Cart_sub(comm, &kept, &row);
  use("cart_sub", row);
  use("cart", comm);
  MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 0, &comm);
  use("graph", comm);
#ifndef OPEN_MPI /* 4.1.4 sometimes waits in it for ever */
  const int one = 1;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                        &comm);
  use("dist_graph", comm);
#endif
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  use("dist_graph_adjacent", comm);
}

/* MPI_COMM_WORLD keeps its collectives, for MPI refuses this. */
static void free_others(void) {
  int class = 0, sum = 0;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Comm_free(&comm), &class);
  result("free of the world: class %d, null %d", class, comm == MPI_COMM_NULL);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  result("afterwards: sum %d", sum);
  comm = MPI_COMM_NULL;
  MPI_Error_class(MPI_Comm_free(&comm), &class);
  result("free of null: class %d", class);
  MPI_Error_class(MPI_Comm_disconnect(&comm), &class);
  result("disconnect of null: class %d", class);
}

int main(int argument_count, char** arguments) {
  MPI_Comm comm;
  begin(argument_count, arguments);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  use("dup", comm);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
  use("dup_with_info", comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  use("split_type", comm);
  use_idup();
  use_groups();
  use_topologies();
  free_others();
  return end();
}
