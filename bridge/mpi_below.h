#pragma once
// The header of the MPI library below, in C only.

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#include <mpi.h>
#pragma GCC diagnostic pop
