#!/bin/sh
# MPICH 4.0.2 (Debian 12): a persistent gather (MPI-4, section 6.13) copies its input when it is made, not when it is started. Each
# start sends what the buffers held at MPI_Gather_init, and the root's own block is written then, once. Of a persistent allgather the
# first start is right, and from the second on a block is not written. No error is returned. A persistent allreduce is right.
# Needs Debian 12, apt, gcc and the network; leaves nothing behind. Exit status 1 if MPICH behaves in another way.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for package in mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libmpich-dev=4.0.2-3+b1 libhwloc15=2.9.0-1 libfabric1=1.17.0-3 libucx0=1.13.1-1 \
  libslurm38 libnuma1; do
  apt-get download -q=2 "$package" >/dev/null 2>&1 || { echo "cannot download $package"; exit 2; }
done
for package in *.deb; do dpkg -x "$package" root; done
libraries=$(dirname "$(find root -name libmpich.so.12 | head -n 1)")
cat >program.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int rank;
static void two_starts(const char* name, MPI_Request* request, int* send, int* receive, int count) {
  for (int start = 1; start <= 2; ++start) {
    *send = 1000 * start + rank;
    memset(receive, 0xff, 2 * sizeof(int));
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (rank != 0) continue;
    printf("%s, start %d:", name, start);
    for (int i = 0; i < count; ++i) printf(" %d", receive[i]);
    printf("\n");
  }
  MPI_Request_free(request);
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int send = 10 + rank, receive[2];
  MPI_Request request;
  MPI_Gather_init(&send, 1, MPI_INT, receive, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  two_starts("gather", &request, &send, receive, 2);
  MPI_Allgather_init(&send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  two_starts("allgather", &request, &send, receive, 2);
  MPI_Allreduce_init(&send, receive, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  two_starts("allreduce", &request, &send, receive, 1);
  MPI_Finalize();
}
END
gcc program.c -o program -I"$(dirname "$(find root -name mpi.h | head -n 1)")" -L"$libraries" -l:libmpich.so.12 -Wl,--allow-shlib-undefined
export LD_LIBRARY_PATH="$folder/$libraries:$(dirname "$(find "$folder/root" -name 'libslurm.so.38*' | head -n 1)")"
PATH="$folder/root/usr/bin:$PATH" root/usr/bin/mpiexec.mpich -n 2 ./program >seen
echo 'MPICH 4.0.2-3+b1, two ranks; what rank 0 has received (-1: not written):'
cat seen
cat >expected <<'END'
gather, start 1: -1 11
gather, start 2: -1 11
allgather, start 1: 1000 1001
allgather, start 2: 2000 -1
allreduce, start 1: 2001
allreduce, start 2: 4001
END
diff expected seen && echo 'as described'
