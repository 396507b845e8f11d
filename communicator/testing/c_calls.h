#pragma once
// Every collective of espalier.h, called from C.

#include "espalier/espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

// Calls every function that takes a communicator, and compares the results with what they must be.
// Returns null, or the first call that did something else.
const char* check_c_calls(espalier_comm* world);

#ifdef __cplusplus
}  // extern "C"
#endif
