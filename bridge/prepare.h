#pragma once
// The arguments of MPI's collectives as calls of Espalier.

#include "bridge/arguments.h"
#include "bridge/counts.h"
#include "bridge/state.h"

namespace espalier::bridge {

// Whether Espalier takes the call. That depends only on what MPI makes the same on all ranks, so
// that all decide alike: the routine, the communicator, and in a reduction the operator and the
// type. Where data are, their types, and counts that only some ranks know play no part.
[[nodiscard]] bool is_taken(Routine routine, const Attached& to, const Arguments& arguments);

// Fills in `work`, which keeps the types that it needs later. Requires is_taken(), and arguments
// that check_arguments() passed. Waits for no other rank.
void prepare(Routine routine, const Attached& to, const Arguments& arguments, Work& work);

}  // namespace espalier::bridge
