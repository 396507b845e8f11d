// Four nodes in one C program run the eleven collectives of the images in golden/ by the calls of
// espalier_node.h, over links that lose and repeat frames. Their results have the digests that
// simulation left. Then one of them ends, and the others name it. What must be refused is.

#include "tests/bare/node_c.h"

#include <espalier/espalier_node.h>
#include <string.h>

#define CHECK(condition) check((condition) != 0, __FILE__, __LINE__, #condition)

enum { NODES = 4, LINKS = 3, MTU = 300, SLOTS = 8, COLLECTIVES = 11, DEAD = 2 };
enum {
  WHOLE = 24000,
  PART = 6000,
  SCRATCH = 98304,
  NODE_BYTES = sizeof(void*) == 4 ? 24576 : 524288
};
static const uint64_t kDeadline = UINT64_C(60000000000);

static struct {
  uint8_t frames[SLOTS][MTU];
  uint32_t sizes[SLOTS], first, end;
} inboxes[NODES][LINKS];  // of what arrives there

static uint64_t memory[NODES][NODE_BYTES / 8];
static uint8_t input[NODES][WHOLE] __attribute__((aligned(16)));
static uint8_t output[NODES][WHOLE] __attribute__((aligned(16)));
static uint8_t scratch[NODES][SCRATCH] __attribute__((aligned(16)));
static espalier_node* nodes[NODES];
static uint64_t time_ns;
static uint32_t sent;
static int dead;  // whether node DEAD is

static int send_frame(void* context, uint32_t link, const uint8_t* frame, uint32_t size) {
  const uint32_t node = (uint32_t)(uintptr_t)context, peer = link < node ? link : link + 1;
  const uint32_t back = node < peer ? node : node - 1;
  ++sent;
  if (sent % 29 == 0 || (dead && peer == DEAD)) return ESPALIER_OK;  // lost
  for (int copies = sent % 31 == 0 ? 2 : 1; copies > 0; --copies) {
    if (inboxes[peer][back].end - inboxes[peer][back].first == SLOTS) return ESPALIER_TRY_AGAIN;
    const uint32_t slot = inboxes[peer][back].end++ % SLOTS;
    memcpy(inboxes[peer][back].frames[slot], frame, size);
    inboxes[peer][back].sizes[slot] = size;
  }
  return ESPALIER_OK;
}

static uint32_t receive_frame(void* context, uint32_t link, uint8_t* frame) {
  const uint32_t node = (uint32_t)(uintptr_t)context;
  if (inboxes[node][link].first == inboxes[node][link].end) return 0;
  const uint32_t slot = inboxes[node][link].first++ % SLOTS;
  memcpy(frame, inboxes[node][link].frames[slot], inboxes[node][link].sizes[slot]);
  return inboxes[node][link].sizes[slot];
}

static uint64_t now(void* context) {
  (void)context;
  return time_ns += 1000;
}

static espalier_node_config config_of(uint32_t node) {
  uint32_t bytes = 0;
  espalier_node_config config = ESPALIER_NODE_CONFIG;
  config.image = golden_image(node, &bytes);
  config.image_bytes = bytes;
  config.board = "mps2-an385";
  config.node = node;
  config.verify = espalier_node_ed25519;
  config.public_key = golden_key();
  config.send = send_frame;
  config.receive = receive_frame;
  config.now = now;
  config.context = (void*)(uintptr_t)node;
  config.mtu = MTU;
  config.session = node + 1;
  config.resend_ns = 5000000;
  config.deadline_ns = kDeadline;
  config.check_blocks = 1;
  return config;
}

static uint64_t noise(uint32_t rank, uint64_t i) {
  uint64_t x = (i ^ (uint64_t)rank << 48) + UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

// The input that `espalier simulate` gives to `rank`.
static void fill(uint32_t rank, int as_numbers, uint8_t* bytes, uint32_t size) {
  for (uint32_t i = 0; i < size; i += as_numbers ? 4 : 8) {
    const uint64_t word = noise(rank, as_numbers ? i / 4 : i);
    const float number = (float)((int32_t)((word >> 20) % 1009) - 504);
    if (as_numbers) {
      memcpy(bytes + i, &number, 4);
    } else {
      memcpy(bytes + i, &word, 8);
    }
  }
}

static int adds(espalier_collective collective) {
  return (collective >= ESPALIER_REDUCE && collective <= ESPALIER_EXSCAN) ||
         collective == ESPALIER_REDUCE_SCATTER;
}

// The bytes of a node's input, and of its output.
static uint32_t input_bytes(espalier_collective collective, uint32_t node) {
  switch (collective) {
    case ESPALIER_BROADCAST:
    case ESPALIER_SCATTER: return node == 0 ? WHOLE : 0;
    case ESPALIER_GATHER:
    case ESPALIER_ALLGATHER: return PART;
    case ESPALIER_BARRIER: return 0;
    default: return WHOLE;
  }
}

static uint32_t output_bytes(espalier_collective collective, uint32_t node) {
  switch (collective) {
    case ESPALIER_REDUCE:
    case ESPALIER_GATHER: return node == 0 ? WHOLE : 0;
    case ESPALIER_EXSCAN: return node == 0 ? 0 : WHOLE;
    case ESPALIER_SCATTER:
    case ESPALIER_REDUCE_SCATTER: return PART;
    case ESPALIER_BARRIER: return 0;
    default: return WHOLE;
  }
}

static espalier_node_call call_of(espalier_collective collective, uint32_t node) {
  const int per_rank = collective >= ESPALIER_SCATTER && collective <= ESPALIER_ALL_TO_ALL;
  espalier_node_call call = ESPALIER_NODE_CALL;
  call.collective = collective;
  call.type = adds(collective) ? ESPALIER_F32 : ESPALIER_BYTES;
  call.op = adds(collective) ? ESPALIER_SUM : ESPALIER_NO_OP;
  call.send = input[node];
  call.receive = output[node];
  call.count = collective == ESPALIER_BARRIER ? 0 : per_rank ? PART : WHOLE;
  if (adds(collective)) call.count /= 4;
  call.scratch = scratch[node];
  call.scratch_bytes = SCRATCH;
  return call;
}

static void start(espalier_collective collective, uint32_t node) {
  const uint32_t bytes = input_bytes(collective, node);
  const espalier_node_call call = call_of(collective, node);
  memset(output[node], 0, WHOLE);
  fill(node, adds(collective), collective == ESPALIER_BROADCAST ? output[node] : input[node],
       bytes);
  CHECK(espalier_node_scratch_bytes(nodes[node], &call) <= SCRATCH);
  CHECK(espalier_node_start(nodes[node], &call) == ESPALIER_OK);
}

// Polls the nodes that are not dead until none is busy.
static void poll_all(int statuses[NODES]) {
  int busy = 1;
  for (uint32_t round = 0; busy; ++round) {
    busy = 0;
    if (round == 300000) {
      CHECK(round < 300000);
      break;
    }
    for (uint32_t node = 0; node < NODES; ++node) {
      if (dead && node == DEAD) continue;
      statuses[node] = espalier_node_poll(nodes[node]);
      busy |= statuses[node] == ESPALIER_BUSY;
    }
    uint64_t due = UINT64_MAX;
    for (uint32_t node = 0; node < NODES; ++node) {
      if (dead && node == DEAD) continue;
      const uint64_t until = espalier_node_next_deadline(nodes[node]);
      if (until < due) due = until;
      for (uint32_t link = 0; link < LINKS; ++link) {
        if (inboxes[node][link].first != inboxes[node][link].end) due = 0;
      }
    }
    if (busy && due != UINT64_MAX && due > time_ns) time_ns = due;  // nothing happens before
  }
}

static void run(espalier_collective collective) {
  int statuses[NODES] = {0};
  for (uint32_t node = 0; node < NODES; ++node) start(collective, node);
  poll_all(statuses);
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  for (uint32_t node = 0; node < NODES; ++node) {
    CHECK(statuses[node] == ESPALIER_OK);
    for (uint32_t i = 0; i < output_bytes(collective, node); ++i) {
      digest = (digest ^ output[node][i]) * UINT64_C(0x100000001b3);
    }
  }
  CHECK(digest == golden_results((uint32_t)collective - 1));
}

static void check_dead_node(void) {
  int statuses[NODES] = {0};
  for (uint32_t node = 0; node < NODES; ++node) {
    if (node != DEAD) start(ESPALIER_ALLREDUCE, node);
  }
  dead = 1;
  poll_all(statuses);
  int waits = 0;
  for (uint32_t node = 0; node < NODES; ++node) {
    if (node == DEAD) continue;
    const espalier_node_cause cause = espalier_node_cause_of(nodes[node]);
    CHECK(statuses[node] == ESPALIER_DEAD_LINK && cause.status == ESPALIER_DEAD_LINK);
    CHECK(cause.peer == DEAD && cause.detector != DEAD);
    CHECK(cause.detector == espalier_node_cause_of(nodes[node == 0 ? 1 : 0]).detector);
    if (cause.link != ESPALIER_NO_LINK) {
      CHECK(cause.step >= 0 && espalier_node_peer(nodes[node], cause.link) == cause.awaited);
      waits += cause.awaited == DEAD;
    }
    const espalier_node_call call = call_of(ESPALIER_ALLREDUCE, node);
    CHECK(espalier_node_start(nodes[node], &call) == ESPALIER_DEAD_LINK);
  }
  CHECK(waits > 0);
}

// Whether a node with this config is refused with `status`.
static int refuses(const espalier_node_config* config, int status) {
  espalier_node* node = nodes[0];
  const int found = espalier_node_init(config, memory[0], sizeof memory[0], &node);
  return found == status && node == NULL && espalier_node_bytes(config) == 0;
}

static void check_refused_configs(void) {
  espalier_node* node = NULL;
  espalier_node_config config = config_of(0);
  const size_t bytes = espalier_node_bytes(&config);
  CHECK(bytes > 1000 && bytes <= sizeof memory[0]);
  CHECK(espalier_node_init(&config, memory[0], bytes - 1, &node) == ESPALIER_TOO_LARGE);
  CHECK(espalier_node_init(&config, (uint8_t*)memory[0] + 4, bytes, &node) ==
        ESPALIER_BAD_ARGUMENT);
  CHECK(espalier_node_init(&config, NULL, bytes, &node) == ESPALIER_BAD_ARGUMENT);
  CHECK(espalier_node_init(NULL, memory[0], bytes, &node) == ESPALIER_BAD_ARGUMENT);
  CHECK(espalier_node_init(&config, memory[0], bytes, NULL) == ESPALIER_BAD_ARGUMENT);
  CHECK(espalier_node_init(&config, memory[0], bytes, &node) == ESPALIER_OK && node != NULL);
#define REFUSES(change, status)      \
  do {                               \
    config = config_of(0);           \
    config.change;                   \
    CHECK(refuses(&config, status)); \
  } while (0)
  REFUSES(image = NULL, ESPALIER_BAD_ARGUMENT);
  REFUSES(now = NULL, ESPALIER_BAD_ARGUMENT);
  REFUSES(public_key = NULL, ESPALIER_BAD_ARGUMENT);
  REFUSES(mtu = 92, ESPALIER_BAD_ARGUMENT);
  REFUSES(mtu = 98, ESPALIER_BAD_ARGUMENT);
  REFUSES(mtu = 65536, ESPALIER_BAD_ARGUMENT);
  REFUSES(session = 0, ESPALIER_BAD_ARGUMENT);
  REFUSES(frames_in_flight = 0, ESPALIER_BAD_ARGUMENT);
  REFUSES(board = "another", ESPALIER_WRONG_BOARD);
  REFUSES(node = 1, ESPALIER_WRONG_NODE);
  REFUSES(security_counter = 5, ESPALIER_ROLLED_BACK);
  REFUSES(image_bytes -= 1, ESPALIER_TRUNCATED);
  REFUSES(image =
              "no image: these bytes are not the beginning of any image, and there is nothing "
              "in them that a node could boot, however long it looks for it. They are a little "
              "more than a header of an image has, though",
          ESPALIER_NO_IMAGE);
  REFUSES(public_key = (const uint8_t*)config.image, ESPALIER_BAD_SIGNATURE);
  memcpy(scratch[0], config.image, config.image_bytes);
  scratch[0][config.image_bytes - 1] ^= 1;
  REFUSES(image = scratch[0], ESPALIER_CORRUPT);
}

static void check_refused_calls(void) {
  espalier_node_call call = call_of(ESPALIER_ALLREDUCE, 1);
#define REFUSES_CALL(change, status)                         \
  do {                                                       \
    call = call_of(ESPALIER_ALLREDUCE, 1);                   \
    call.change;                                             \
    CHECK(espalier_node_start(nodes[1], &call) == (status)); \
  } while (0)
  REFUSES_CALL(collective = ESPALIER_NO_COLLECTIVE, ESPALIER_BAD_ARGUMENT);
  REFUSES_CALL(root = 1, ESPALIER_BAD_ARGUMENT);
  REFUSES_CALL(send = NULL, ESPALIER_BAD_ARGUMENT);
  REFUSES_CALL(receive = input[1] + 4, ESPALIER_BAD_ARGUMENT);
  REFUSES_CALL(scratch_bytes = 1, ESPALIER_BAD_ARGUMENT);
  REFUSES_CALL(op = ESPALIER_XOR, ESPALIER_BAD_OPERATOR);
  REFUSES_CALL(type = (espalier_type)256, ESPALIER_BAD_OPERATOR);
  REFUSES_CALL(count = UINT64_C(1) << 60, ESPALIER_TOO_LARGE);
  call.count = UINT64_C(1) << 60;
  CHECK(espalier_node_scratch_bytes(nodes[1], &call) == 0);
}

int main(void) {
  check_refused_configs();
  for (uint32_t node = 0; node < NODES; ++node) {
    const espalier_node_config config = config_of(node);
    CHECK(espalier_node_init(&config, memory[node], sizeof memory[node], &nodes[node]) ==
          ESPALIER_OK);
    CHECK(espalier_node_rank(nodes[node]) == node && espalier_node_size(nodes[node]) == NODES);
    CHECK(espalier_node_links(nodes[node]) == LINKS);
    CHECK(espalier_node_peer(nodes[node], 0) == (node == 0 ? 1 : 0));
    CHECK(espalier_node_cause_of(nodes[node]).status == ESPALIER_OK);
  }
  check_refused_calls();
  for (uint32_t which = 0; which < COLLECTIVES; ++which) run((espalier_collective)(which + 1));
  check_dead_node();
  CHECK(memcmp(espalier_status_name(ESPALIER_DEAD_LINK), "dead link", 10) == 0);
  return finish_checks();
}
