#pragma once
// What node_c.c, which is C, needs of the tests' C++: node_c_board.cc.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Returns node `node`'s image of golden/.
const uint8_t* golden_image(uint32_t node, uint32_t* bytes);
// Returns the public key of their signer.
const uint8_t* golden_key(void);
// Returns the digest of all nodes' results of program `which` of the images, by simulation.
uint64_t golden_results(uint32_t which);
// Counts a check. Prints it if it is not `good`.
void check(int good, const char* file, int line, const char* what);
// Returns the test's exit status.
int finish_checks(void);

#ifdef __cplusplus
}  // extern "C"
#endif
