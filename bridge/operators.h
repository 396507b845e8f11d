#pragma once
// MPI's operators and types as Espalier's.

#include <cstdint>
#include <optional>

#include "bridge/mpi_below.h"
#include "espalier/collectives/machine/operators.h"

namespace espalier::bridge {

// A user's function with the type that it is called for. The context of the operator.
struct UserOperator {
  MPI_User_function* function = nullptr;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// Finds out once which types the MPI library has. After MPI_Init.
void list_types();
// MPI_Op_create() and MPI_Op_free() report the operators here.
void add_user_operator(MPI_Op op, MPI_User_function* function, bool commutes);
void remove_user_operator(MPI_Op op);

// Whether elements of the type follow each other without gaps, each with its bytes in the order of
// memory: a basic type, or a row of them.
[[nodiscard]] bool is_dense(MPI_Datatype type);
// Returns the bytes of one element's data, and from one element to the next.
[[nodiscard]] std::uint64_t size_of(MPI_Datatype type);
[[nodiscard]] std::int64_t extent_of(MPI_Datatype type);

// Returns the operator for reductions of elements of `type`, extent_of(type) bytes apart; `user`
// must outlive the collective. Nothing: the MPI library takes this pair (long double, complex, a
// type with gaps, a pair that MPI does not define). Depends only on what is the same on all ranks.
[[nodiscard]] std::optional<Operator> operator_of(MPI_Op op, MPI_Datatype type, bool blocking,
                                                  UserOperator& user);

}  // namespace espalier::bridge
