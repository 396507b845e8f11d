#pragma once
// Open MPI 4.1 has the persistent collectives as an extension.

#include "bridge/mpi_below.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif
