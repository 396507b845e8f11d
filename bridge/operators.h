#pragma once
// MPI's operators and types as Espalier's.

#include <cstdint>
#include <memory>
#include <optional>

#include "bridge/mpi_below.h"
#include "espalier/collectives/machine/operators.h"

namespace espalier::bridge {

// A user's function: MPI_User_function, or with a count of MPI_Count, or Fortran's with Fortran's
// handles, or MPICH's MPIX_User_function_x, which has a state.
struct KnownOperator {
  enum class Signature : std::uint8_t { kC, kLargeCount, kFortran, kWithState };
  void (*function)() = nullptr;
  bool commutes = false;
  Signature signature = Signature::kC;
  // Only of kWithState. The last owner destroys it: a collective may be active when its operator is
  // freed.
  std::shared_ptr<void> state = {};
};

// A user's function with the type that it is called for. The context of the operator.
struct UserOperator {
  KnownOperator known;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// Finds out once which types the MPI library has. After MPI_Init.
void list_types();
// MPI_Op_create() and MPI_Op_free() report the operators here.
void add_user_operator(MPI_Op op, KnownOperator known);
void remove_user_operator(MPI_Op op);
// Returns the user's operator; nothing: it is predefined, or not an operator.
[[nodiscard]] std::optional<KnownOperator> find_user_operator(MPI_Op op);

// Whether operands are rows of bytes without gaps: a user's operator on another type gets each
// element unpacked.
[[nodiscard]] bool has_packed_operands(const std::optional<KnownOperator>& user, MPI_Datatype type);

// Returns the operator for reductions of elements of `type`; `user` must outlive the collective.
// Nothing: the MPI library takes this pair (long double, complex, a pair that MPI does not define).
// Depends only on what is the same on all ranks.
[[nodiscard]] std::optional<Operator> operator_of(MPI_Op op,
                                                  const std::optional<KnownOperator>& known,
                                                  MPI_Datatype type, UserOperator& user);

}  // namespace espalier::bridge
