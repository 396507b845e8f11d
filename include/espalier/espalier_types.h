#pragma once
// The numbers that espalier.h (a program that joins a job) and espalier_node.h (a node inside a
// firmware) share: results, element types, operators, collectives. C99 and C++. Numbers never
// change; enumerators are only added.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The results of functions: the numbers of `Status` (base/status.h). Those marked "nodes" are only
// returned by functions of espalier_node.h.
enum espalier_status {
  ESPALIER_OK = 0,            // The call did its work.
  ESPALIER_BUSY = 1,          // Nodes. In progress: poll again. Not a failure.
  ESPALIER_TRY_AGAIN = 2,     // Nodes. A carrier has no room now. Not a failure.
  ESPALIER_BAD_ARGUMENT = 3,  // Arguments contradict each other, or no schedule serves the call.
                              // Nothing was started.
  ESPALIER_TRUNCATED = 4,     // Nodes. The image ends too early or does not decode.
  ESPALIER_CORRUPT = 5,       // Failure: a block was damaged on its way. In an image: the SHA-256
                              // does not match.
  ESPALIER_BAD_VERSION = 6,   // Nodes. The image has another format version.
  ESPALIER_UNKNOWN_FEATURE = 7,  // Nodes. A program requires a feature that this build lacks.
  ESPALIER_WRONG_TOPOLOGY = 8,   // Nodes. A program is for another topology than its image.
  ESPALIER_WRONG_NODE = 9,       // Nodes. The image is for another node.
  ESPALIER_TOO_LARGE = 10,       // Failure: a message, a schedule or an image exceeds limits.
  ESPALIER_MALFORMED = 11,       // Nodes. The image or a program breaks the rules of its format.
  ESPALIER_BAD_OPERATOR = 12,    // Failure: an operator of the program threw an exception. Nodes:
                                 // operator and type do not match, or the program needs an operator
                                 // that commutes; nothing was started.
  ESPALIER_UNSUPPORTED = 13,     // Nodes. The window is too small for the program. Nothing was
                                 // started.
  ESPALIER_MISMATCH = 14,   // Failure: ranks disagree on the collective: counts, operator, type
                            // or order.
  ESPALIER_DEAD_LINK = 15,  // Failure: a rank ended, or did not answer within the deadline.
  ESPALIER_STALLED = 16,    // Failure: all ranks answer, but nothing moved for twice the deadline.
  ESPALIER_NOT_IN_SCHEDULE = 17,  // Failure: a block arrived that is not in the schedule.
  ESPALIER_BACK_END = 18,  // Failure: the fabric reported an error that no other number describes;
                           // or espalier_join() or espalier_rejoin() did not succeed.
  ESPALIER_NO_SUCH_PEER = 19,   // Nodes. A program needs a link that the node does not have.
  ESPALIER_NO_IMAGE = 20,       // Nodes. The bytes are not an image.
  ESPALIER_WRONG_BOARD = 21,    // Nodes. The image was built for another kind of board.
  ESPALIER_ROLLED_BACK = 22,    // Nodes. The image's security counter is below the node's.
  ESPALIER_UNSIGNED = 23,       // Nodes. The image has no signature, and the node needs one.
  ESPALIER_BAD_SIGNATURE = 24,  // Nodes. The image was not signed with the node's key.
  ESPALIER_CANCELLED = 29       // Failure: a rank ended the communicator early (espalier_cancel()).
};

// The type of an element: the numbers of `Type` (collectives/machine/operators.h). Sums and
// products of integers wrap around.
typedef enum espalier_type {
  ESPALIER_BYTES = 0,  // one byte, without arithmetic: for collectives that only move
  ESPALIER_I8 = 1,     // int8_t
  ESPALIER_U8 = 2,     // uint8_t
  ESPALIER_I16 = 3,    // int16_t
  ESPALIER_U16 = 4,    // uint16_t
  ESPALIER_I32 = 5,    // int32_t
  ESPALIER_U32 = 6,    // uint32_t
  ESPALIER_I64 = 7,    // int64_t
  ESPALIER_U64 = 8,    // uint64_t
  ESPALIER_F16 = 9,    // IEEE 754 binary16
  ESPALIER_BF16 = 10,  // bfloat16: the upper 16 bits of an IEEE 754 binary32
  ESPALIER_F32 = 11,   // float
  ESPALIER_F64 = 12,   // double
  // (value, index) pairs for ESPALIER_MIN_LOC and ESPALIER_MAX_LOC.
  ESPALIER_I32_LOC = 13,     // struct { int32_t value; int32_t index; }
  ESPALIER_F32_LOC = 14,     // struct { float value; int32_t index; }
  ESPALIER_I64_LOC = 15,     // struct { int64_t value; int64_t index; }
  ESPALIER_F64_LOC = 16,     // struct { double value; int64_t index; }
  ESPALIER_CUSTOM_TYPE = 17  // the caller's own type, of `element_bytes` bytes (espalier_call)
} espalier_type;

// The operation of a reduction: the numbers of `Op` (collectives/machine/operators.h). Results are
// bitwise the same on every host and in every run, whatever the caller's floating-point environment
// is: rounding, flush to zero (-ffast-math), traps. Operators of the program run in the default
// environment, too.
typedef enum espalier_op {
  ESPALIER_NO_OP = 0,      // no reduction
  ESPALIER_SUM = 1,        // integers and floats
  ESPALIER_PRODUCT = 2,    // integers and floats
  ESPALIER_MIN = 3,        // the smaller one, NaN if any is NaN; integers and floats
  ESPALIER_MAX = 4,        // the larger one, NaN if any is NaN; integers and floats
  ESPALIER_AND = 5,        // bitwise; integers
  ESPALIER_OR = 6,         // bitwise; integers
  ESPALIER_XOR = 7,        // bitwise; integers
  ESPALIER_MIN_LOC = 8,    // the pair with the smaller value; if they are equal, the smaller index
  ESPALIER_MAX_LOC = 9,    // the pair with the larger value; if they are equal, the smaller index
  ESPALIER_CUSTOM_OP = 10  // `combine` of the call; any type
} espalier_op;

// The collectives: the numbers of `Collective` (proto/schedule.proto).
typedef enum espalier_collective {
  ESPALIER_NO_COLLECTIVE = 0,   // no valid call has it
  ESPALIER_BROADCAST = 1,       // from the root to all
  ESPALIER_REDUCE = 2,          // the root gets the result
  ESPALIER_ALLREDUCE = 3,       // all get the result
  ESPALIER_SCAN = 4,            // rank r gets the result of ranks 0 .. r
  ESPALIER_EXSCAN = 5,          // rank r gets the result of ranks 0 .. r-1; rank 0 gets nothing
  ESPALIER_SCATTER = 6,         // rank r gets part r of the root's message
  ESPALIER_GATHER = 7,          // the root gets all ranks' parts
  ESPALIER_ALLGATHER = 8,       // all get all ranks' parts
  ESPALIER_REDUCE_SCATTER = 9,  // rank r gets part r of the result
  ESPALIER_ALL_TO_ALL = 10,     // each rank has a part for each rank
  ESPALIER_BARRIER = 11         // complete when every rank has entered it
} espalier_collective;

// Computes into[0..count) = a[0..count) (+) b[0..count), in this order; a is the left operand.
// `into` may be equal to a or b. Must be associative.
typedef void (*espalier_combine)(void* into, const void* a, const void* b, uint64_t count,
                                 void* context);

#ifdef __cplusplus
}  // extern "C"
#endif
