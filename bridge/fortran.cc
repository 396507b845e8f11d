#include "bridge/fortran.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "bridge/counts.h"
#include "bridge/operators.h"
#include "bridge/persistent.h"
#include "bridge/requests.h"
#include "bridge/state.h"

namespace espalier::bridge {
namespace {

// The variables of Fortran's header whose addresses are the constants. Each compiler has its own
// spelling of their names.
using Spellings = std::array<void*, 4>;

Spellings find_spellings(const std::array<const char*, 4>& names) {
  Spellings found = {};
  for (std::size_t i = 0; i < names.size(); ++i) found[i] = dlsym(RTLD_DEFAULT, names[i]);
  return found;
}

bool is_one_of(const Spellings& spellings, const void* address) {
  for (const void* const one : spellings) {
    if (one != nullptr && one == address) return true;
  }
  return false;
}

std::vector<MPI_Request> c_requests(MPI_Fint count, const MPI_Fint* requests) {
  std::vector<MPI_Request> made;
  for (MPI_Fint i = 0; i < count; ++i) made.push_back(MPI_Request_f2c(requests[i]));
  return made;
}

bool has_succeeded(const MPI_Fint* error) { return error == nullptr || *error == MPI_SUCCESS; }

}  // namespace

void* find_next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found != nullptr) return found;
  std::fprintf(stderr,
               "espalier: no library has the function %s; expected the MPI library's for Fortran\n",
               name);
  std::abort();
}

void* c_address(void* buffer) {
  static const Spellings in_place =
      find_spellings({"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                      "MPI_FORTRAN_IN_PLACE"});
  static const Spellings bottom = find_spellings(
      {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"});
  if (is_one_of(in_place, buffer)) return MPI_IN_PLACE;
  if (is_one_of(bottom, buffer)) return MPI_BOTTOM;
  return buffer;
}

void after_init(const MPI_Fint* error) {
  if (has_succeeded(error)) attach_first();
}
void before_finalize() {
  detach_first();
  print_counts();
}
void before_comm_free(MPI_Fint comm) { detach(MPI_Comm_f2c(comm)); }
void after_comm_made(MPI_Fint comm, const MPI_Fint* error) {
  if (has_succeeded(error)) attach(MPI_Comm_f2c(comm));
}
void after_op_create(void* function, MPI_Fint commutes, MPI_Fint op, const MPI_Fint* error) {
  if (!has_succeeded(error)) return;
  add_user_operator(MPI_Op_f2c(op), {.function = reinterpret_cast<void (*)()>(function),
                                     .commutes = commutes != 0,
                                     .signature = KnownOperator::Signature::kFortran});
}
void before_op_free(MPI_Fint op) { remove_user_operator(MPI_Op_f2c(op)); }

bool is_type_freed_later(MPI_Fint* type, MPI_Fint* error) {
  if (!is_freed_later(MPI_Type_f2c(*type))) return false;
  *type = MPI_Type_c2f(MPI_DATATYPE_NULL);
  if (error != nullptr) *error = MPI_SUCCESS;
  return true;
}
bool is_started(const MPI_Fint* request, MPI_Fint* error) {
  MPI_Request c_request = MPI_Request_f2c(*request);
  int result = MPI_SUCCESS;
  if (!is_persistent_start(&c_request, result)) return false;
  if (error != nullptr) *error = result;
  return true;
}
bool is_free_refused(MPI_Fint request, MPI_Fint* error) {
  const MPI_Request c_request = MPI_Request_f2c(request);
  int result = MPI_SUCCESS;
  if (!is_free_handled(c_request, result)) {
    forget_persistent(c_request);
    return false;
  }
  if (error != nullptr) *error = result;
  return true;
}
bool is_cancel_refused(MPI_Fint request, MPI_Fint* error) {
  const MPI_Request c_request = MPI_Request_f2c(request);
  int result = MPI_SUCCESS;
  if (!is_cancel_handled(c_request, result)) return false;
  if (error != nullptr) *error = result;
  return true;
}

void advance(MPI_Fint count, const MPI_Fint* requests) {
  progress(c_requests(count, requests).data(), count);
}
void wait_for(MPI_Fint count, const MPI_Fint* requests) {
  const std::vector<MPI_Request> all = c_requests(count, requests);
  while (progress(all.data(), count) > 0) let_mpi_progress();
}
bool has_ours_among(MPI_Fint count, const MPI_Fint* requests) {
  return has_ours(c_requests(count, requests).data(), count);
}
void pause_for(MPI_Fint count, const MPI_Fint* requests, bool is_first) {
  if (!is_first) let_mpi_progress();
  advance(count, requests);
}
bool is_unfinished(MPI_Fint flag, const MPI_Fint* error) {
  return flag == 0 && has_succeeded(error);
}

}  // namespace espalier::bridge
