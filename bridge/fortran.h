#pragma once
// Fortran's functions that call PMPI_*: what the generated ones need beside the functions of C.

#include "bridge/mpi_below.h"

namespace espalier::bridge {

// Returns the function of this name that the MPI library has.
[[nodiscard]] void* find_next(const char* name);
// Returns C's value for a buffer, which may be Fortran's MPI_BOTTOM or MPI_IN_PLACE.
[[nodiscard]] void* c_address(void* buffer);

// The work of C's functions before and after those below. `error`: Fortran's argument, or null.
void after_init(const MPI_Fint* error);
void before_finalize();
void before_comm_free(MPI_Fint comm);
void after_comm_made(MPI_Fint comm, const MPI_Fint* error);
void after_op_create(void* function, MPI_Fint commutes, MPI_Fint op, const MPI_Fint* error);
void before_op_free(MPI_Fint op);
// Each returns whether the call is complete without the function below.
[[nodiscard]] bool is_type_freed_later(MPI_Fint* type, MPI_Fint* error);
[[nodiscard]] bool is_started(const MPI_Fint* request, MPI_Fint* error);
[[nodiscard]] bool is_free_refused(MPI_Fint request, MPI_Fint* error);
[[nodiscard]] bool is_cancel_refused(MPI_Fint request, MPI_Fint* error);

// Requests: makes progress once, or until all of Espalier's are complete.
void advance(MPI_Fint count, const MPI_Fint* requests);
void wait_for(MPI_Fint count, const MPI_Fint* requests);
[[nodiscard]] bool has_ours_among(MPI_Fint count, const MPI_Fint* requests);
// A turn of a loop over tests: progress, and a pause from the second one on.
void pause_for(MPI_Fint count, const MPI_Fint* requests, bool is_first);
[[nodiscard]] bool is_unfinished(MPI_Fint flag, const MPI_Fint* error);

}  // namespace espalier::bridge
