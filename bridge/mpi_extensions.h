#pragma once
// Open MPI 4.1 has the persistent collectives as an extension.

#include "bridge/mpi_below.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
