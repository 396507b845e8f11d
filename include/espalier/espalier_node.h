#pragma once
// A node inside a firmware, in C: runs the programs of its image over the caller's carriers. C99
// and C++. docs/firmware_in_c.md has the whole way, from a schedule to a board.
//
//     static uint64_t memory[1024];
//     espalier_node_config config = ESPALIER_NODE_CONFIG;
//     espalier_node* node = NULL;
//     ...                                                   // image, links, clock: see below
//     int status = espalier_node_init(&config, memory, sizeof memory, &node);
//     if (status == ESPALIER_OK) status = espalier_node_start(node, &call);
//     while ((status = espalier_node_poll(node)) == ESPALIER_BUSY) {
//       sleep_until(espalier_node_next_deadline(node));     // or until a link has received
//     }
//
//  * A caller links libespalier_node.a and nothing else: no C++ run-time, no exceptions, no static
//    constructors, no heap. The C library, or the archive itself, has memcpy, memmove, memset and
//    memcmp.
//  * No call waits. A poll does a bounded amount of work.
//  * Threads: at most one thread or interrupt uses a node at any time. A node takes no lock and
//    masks no interrupt. The callbacks run inside the calls of this header, in the caller's thread.
//  * Functions that can fail return ESPALIER_OK (0) or another number of espalier_status.
//  * The header belongs to its library: both are from the same build. Initialize structs with the
//    macro below each.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "espalier/espalier_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// A node. It is in the memory that espalier_node_init() got.
typedef struct espalier_node espalier_node;

// espalier_node_config.node: an image of any node is accepted.
#define ESPALIER_ANY_NODE 0xffffffffu

// The parameters of espalier_node_init().
typedef struct espalier_node_config {
  // The node's image (`espalier image build`), in flash or in memory. It must outlive the node,
  // unchanged. `image_bytes` may be more than the image has.
  const void* image;
  size_t image_bytes;
  const char* board;          // the name of the board that the image must be for
  uint32_t node;              // the number that the image must have, or ESPALIER_ANY_NODE
  uint32_t security_counter;  // images with a lower one are refused
  // Whether `signature` (64 bytes) is the signature of `bytes` by the owner of public_key:
  // espalier_node_ed25519, or the function of a crypto cell. Null: unsigned images are accepted, so
  // anyone who can write the image controls the node.
  bool (*verify)(const uint8_t* signature, const uint8_t* bytes, size_t size, const uint8_t* key);
  const uint8_t* public_key;  // 32 bytes, which must outlive the call; used with `verify`

  // The links are those of the image's link table, 0 .. links - 1, each with a carrier of its own
  // to one peer: a UART, an SPI channel, the frames of one neighbour on a bus. Carriers may lose,
  // duplicate, reorder and damage frames. espalier_bytes_send() and espalier_bytes_receive() make
  // a carrier of a stream of bytes.

  // Sends a frame of 1 .. mtu bytes. ESPALIER_OK: it was sent or lost, and its memory may be
  // reused. ESPALIER_TRY_AGAIN: no room now, or only part of it was sent; the same frame comes
  // again, unchanged and at the same address.
  int (*send)(void* context, uint32_t link, const uint8_t* frame, uint32_t size);
  // Returns the size in bytes of a frame that arrived and is now in `frame`, or 0 if there is none.
  // `frame` has room for mtu bytes and is the same memory in every call for this link.
  uint32_t (*receive)(void* context, uint32_t link, uint8_t* frame);
  uint64_t (*now)(void* context);  // the clock: nanoseconds, monotonic
  void* context;                   // passed to `send`, `receive` and `now`
  uint32_t mtu;  // longest frame of all carriers: 96 .. 65532 bytes, a multiple of 4
  // Nonzero, and another number than at the last start of this node: counted in flash, or random.
  // A peer sees by it that the node has restarted.
  uint32_t session;
  // How long to wait for a reply before a frame is sent again, ns; doubled after each attempt until
  // it is at least 268 ms. More than a carrier needs for two of its longest frames, plus the
  // longest time between two polls of the peer. Ethernet: 5 ms; a UART of 115200 baud with frames
  // of 512 bytes: 200 ms.
  uint64_t resend_ns;
  uint32_t frames_in_flight;  // data frames per link that the peer's receiver can hold, 1 .. 255

  uint32_t window;       // limit on steps in flight; 0: as large as the program and the build allow
  uint64_t deadline_ns;  // how long an awaited peer may stay silent before it is declared dead, ns
  int check_blocks;      // nonzero: a CRC-32 with every block, on all nodes or on none
} espalier_node_config;

// The initial value of an espalier_node_config. To be set: image, image_bytes, board, send,
// receive, now, session.
#define ESPALIER_NODE_CONFIG                                                                       \
  {                                                                                                \
    NULL, 0, NULL, ESPALIER_ANY_NODE, 0, NULL, NULL, NULL, NULL, NULL, NULL, 512, 0, 200000000, 1, \
        0, 2000000000, 0                                                                           \
  }

// Verifies Ed25519: a value of espalier_node_config.verify. Only programs that name it have its
// code in flash: "signature library" in docs/results/bare_metal.md, in bytes, as is its stack.
bool espalier_node_ed25519(const uint8_t* signature, const uint8_t* bytes, size_t size,
                           const uint8_t* key);

// Returns the bytes of memory that a node with this image and mtu needs. It depends on
// the programs and links of the image, and on the limits of the build: docs/firmware_in_c.md has a
// table. 0: espalier_node_init() would refuse the image. Reads the whole image, like
// espalier_node_init().
size_t espalier_node_bytes(const espalier_node_config* config);

// Checks the image, decodes its programs and makes a node of them in `memory`: `bytes` bytes, at a
// multiple of 8, which must outlive the node. The config is copied. Nothing is sent. On an error
// *node is null:
//   ESPALIER_BAD_ARGUMENT  a null pointer among image, board, send, receive, now, memory and node;
//                          only one of verify and public_key; a number outside its range; memory
//                          that is not at a multiple of 8
//   ESPALIER_TOO_LARGE     `bytes` is below espalier_node_bytes(); or the image has more links,
//                          programs or rows than this build's limits
//   and the reason for which the image is refused: ESPALIER_TRUNCATED, ESPALIER_CORRUPT,
//   ESPALIER_BAD_VERSION, ESPALIER_UNKNOWN_FEATURE, ESPALIER_WRONG_TOPOLOGY, ESPALIER_WRONG_NODE,
//   ESPALIER_MALFORMED, ESPALIER_NO_SUCH_PEER, ESPALIER_NO_IMAGE, ESPALIER_WRONG_BOARD,
//   ESPALIER_ROLLED_BACK, ESPALIER_UNSIGNED, ESPALIER_BAD_SIGNATURE
int espalier_node_init(const espalier_node_config* config, void* memory, size_t bytes,
                       espalier_node** node);

// Returns this node's rank.
uint32_t espalier_node_rank(const espalier_node* node);
// Returns the number of ranks.
uint32_t espalier_node_size(const espalier_node* node);
// Returns the number of links.
uint32_t espalier_node_links(const espalier_node* node);
// Returns the rank at the other end of `link` < espalier_node_links().
uint32_t espalier_node_peer(const espalier_node* node, uint32_t link);

// A collective with its memory. Its members have the names and meanings of espalier_call's
// (espalier.h).
typedef struct espalier_node_call {
  espalier_collective collective;  // which one
  espalier_type type;              // of the elements
  espalier_op op;                  // of a reduction
  uint32_t root;                   // of a broadcast, reduce, scatter, gather; otherwise 0
  // The whole message or one rank's part, in elements of `type`, as the functions of espalier.h
  // say. In place: the same pointer in both; otherwise the two must not overlap. A broadcast uses
  // `receive` only, a barrier neither. A pointer that only the root uses may be null elsewhere.
  const void* send;
  void* receive;
  uint64_t count;  // elements of the whole message; from scatter on, of one rank's part
  void* scratch;  // espalier_node_scratch_bytes() bytes, at a multiple of 16; null if it needs none
  size_t scratch_bytes;
  uint32_t element_bytes;    // ESPALIER_CUSTOM_TYPE only: bytes of an element
  uint32_t custom_id;        // ESPALIER_CUSTOM_OP, barriers: any number, the same on all ranks
  int commutes;              // ESPALIER_CUSTOM_OP only: whether `combine` commutes
  espalier_combine combine;  // ESPALIER_CUSTOM_OP only
  void* context;             // passed to `combine`
} espalier_node_call;

// The initial value of an espalier_node_call.
#define ESPALIER_NODE_CALL                                                                      \
  {                                                                                             \
    ESPALIER_NO_COLLECTIVE, ESPALIER_BYTES, ESPALIER_NO_OP, 0, NULL, NULL, 0, NULL, 0, 0, 0, 0, \
        NULL, NULL                                                                              \
  }

// Returns the bytes of scratch that the call needs. 0: none, or espalier_node_start() would refuse
// the call.
uint64_t espalier_node_scratch_bytes(const espalier_node* node, const espalier_node_call* call);

// Starts the call by the image's program of this collective and root. If the image has a selection
// of them, its row for the count and the operator decides alone. All ranks start the same calls in
// the same order. The memory belongs to the node until the collective ends; the call is
// copied. Errors, on which nothing was started:
//   ESPALIER_BAD_ARGUMENT  no program of the image serves the call; a collective is running; a
//                          buffer that the program uses is null; scratch is too small or not
//                          aligned; buffers overlap other than in place
//   ESPALIER_BAD_OPERATOR  operator and type do not match; the type is unknown; the operator does
//                          not commute, and no such program or row keeps the order of ranks
//   ESPALIER_TOO_LARGE     the message exceeds this build's limits
//   ESPALIER_UNSUPPORTED   the window here is too small for the program
//   the failure            the node has failed before
int espalier_node_start(espalier_node* node, const espalier_node_call* call);

// Does a bounded amount of work: takes frames, moves and combines blocks, sends frames. Call it
// whenever a link has received, at espalier_node_next_deadline(), and while no collective runs,
// too: the node replies to its peers from here.
//   ESPALIER_BUSY  the collective is in progress
//   ESPALIER_OK    it is complete, or none runs
//   otherwise      the failure; every later poll returns it again. The node is then of no use
//                  except for espalier_node_cause_of(), but should still be polled for twice the
//                  deadline, so that its peers learn the cause
int espalier_node_poll(espalier_node* node);

// Sends what the last poll left to send, and returns the time of `now` in ns at which the node must
// be polled next, unless a link receives something before; UINT64_MAX: none. Call it before a
// sleep.
uint64_t espalier_node_next_deadline(espalier_node* node);

// espalier_node_cause.link: the node waits for no peer.
#define ESPALIER_NO_LINK 0xffffffffu

// Why a node failed, and where this node was then. The status, the detector and the peer are the
// same on all live ranks that can reach each other.
typedef struct espalier_node_cause {
  int status;         // a number of espalier_status; ESPALIER_OK: there is no failure
  uint32_t detector;  // the rank that detected it
  uint32_t peer;      // the rank that ended, disagrees, ...
  // The oldest message that this node waits for, now or when it failed.
  int64_t step;       // of the schedule: the oldest step that is not complete; INT64_MAX: none
  uint32_t link;      // the link that it waits on; ESPALIER_NO_LINK: none
  uint32_t awaited;   // the rank at the other end of that link
  int sending;        // nonzero: it waits until the peer has taken a message; 0: for a message
  uint64_t since_ns;  // the time of `now` since which it waits
} espalier_node_cause;
// Returns the cause. May be called at any time: while a collective runs it says what the node waits
// for.
espalier_node_cause espalier_node_cause_of(const espalier_node* node);

// Returns a short lower-case English name of a number of espalier_status: "dead link".
const char* espalier_status_name(int status);

// A carrier over a stream of bytes, such as a UART: a byte 0 ends each frame, and frames contain no
// other (consistent overhead byte stuffing). Both ends of a link must use one.
typedef struct espalier_bytes {
  // put: sends a byte; 0: the device has no room now. get: sets *byte to a received byte; 0: none
  // is available. Neither waits.
  int (*put)(void* device, uint8_t byte);
  int (*get)(void* device, uint8_t* byte);
  void* device;         // passed to both
  uint64_t carrier[8];  // the library's
} espalier_bytes;

// Makes `bytes` a carrier of frames of at most `mtu` bytes: espalier_node_config.mtu.
void espalier_bytes_init(espalier_bytes* bytes, int (*put)(void* device, uint8_t byte),
                         int (*get)(void* device, uint8_t* byte), void* device, uint32_t mtu);
// Do what `send` and `receive` of an espalier_node_config must do.
// espalier_bytes_receive: takes at most 2 * mtu bytes from the device.
int espalier_bytes_send(espalier_bytes* bytes, const uint8_t* frame, uint32_t size);
uint32_t espalier_bytes_receive(espalier_bytes* bytes, uint8_t* frame);

#ifdef __cplusplus
}  // extern "C"
#endif
