// A node that sums a vector over all nodes. Everything that it needs of Espalier is here.

#include "node.h"

#include <stddef.h>
#include <string.h>

#include "port.h"

// The node's memory: as much as espalier_node_bytes() says, or more. A host's node is larger.
static uint64_t memory[NODE_BYTES / 8];
static espalier_bytes wires[PORT_UARTS];
static float input[COUNT], output[COUNT];
static uint8_t scratch[8 * sizeof output] __attribute__((aligned(16)));
static uint32_t rounds;

// The console has no printf.
static void print_number(const char* before, uint64_t number) {
  char text[21];
  char* digit = text + sizeof text - 1;
  *digit = '\0';
  do {
    *--digit = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  port_print(before);
  port_print(digit);
}

int refuse(const char* what, int status) {
  port_print(what);
  port_print(espalier_status_name(status));
  print_number(" (status ", (uint64_t)status);
  port_print(")\n");
  return status;
}

// The three callbacks: a link's carrier, and the clock.
static int send_frame(void* context, uint32_t link, const uint8_t* frame, uint32_t size) {
  (void)context;
  return espalier_bytes_send(&wires[link], frame, size);
}

static uint32_t receive_frame(void* context, uint32_t link, uint8_t* frame) {
  (void)context;
  return espalier_bytes_receive(&wires[link], frame);
}

static uint64_t now(void* context) {
  (void)context;
  return port_now();
}

espalier_node_config node_config(void) {
  uint32_t image_bytes = 0;
  espalier_node_config config = ESPALIER_NODE_CONFIG;
  config.image = port_image(&image_bytes);
  config.image_bytes = image_bytes;
  config.board = port_board();
  config.send = send_frame;
  config.receive = receive_frame;
  config.now = now;
  config.mtu = 256;
  config.session = port_session();
  config.resend_ns = 50000000;
  config.deadline_ns = DEADLINE_NS;
  config.check_blocks = 1;
  for (uint32_t link = 0; link < PORT_UARTS; ++link) {
    espalier_bytes_init(&wires[link], port_put, port_get, port_uart(link), config.mtu);
  }
  return config;
}

espalier_node* make_node(void) {
  const espalier_node_config config = node_config();
  espalier_node* node = NULL;
  const int status = espalier_node_init(&config, memory, sizeof memory, &node);
  if (status != ESPALIER_OK) {
    (void)refuse("node: ", status);
    print_number("node: needs ", espalier_node_bytes(&config));
    port_print(" bytes\n");
  } else if (espalier_node_links(node) > PORT_UARTS) {
    port_print("node: the image has more links than this board has UARTs\n");
    return NULL;
  }
  return node;
}

// Element i of this node's vector, in the place of a measurement: the numbers that `espalier
// simulate` takes, so that its results can be compared with.
static float measure(uint32_t rank, uint64_t i) {
  uint64_t x = (i ^ (uint64_t)rank << 48) + UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  x = x ^ x >> 31;
  return (float)((int32_t)((x >> 20) % 1009) - 504);
}

const espalier_node_call* next_sum(const espalier_node* node) {
  static espalier_node_call call = ESPALIER_NODE_CALL;
  for (uint32_t i = 0; i < COUNT; ++i) input[i] = measure(espalier_node_rank(node), i);
  memset(output, 0, sizeof output);
  call.collective = ESPALIER_ALLREDUCE;
  call.type = ESPALIER_F32;
  call.op = ESPALIER_SUM;
  call.send = input;
  call.receive = output;
  call.count = COUNT;
  call.scratch = scratch;
  call.scratch_bytes = sizeof scratch;
  return &call;
}

int start_sum(espalier_node* node) {
  const espalier_node_call* const call = next_sum(node);
  const int status = espalier_node_start(node, call);
  if (status != ESPALIER_OK) {
    (void)refuse("start: ", status);
    print_number("start: needs scratch of ", espalier_node_scratch_bytes(node, call));
    port_print(" bytes\n");
  }
  return status;
}

void finish_sum(espalier_node* node) {
  uint64_t digest = UINT64_C(0xcbf29ce484222325);  // FNV-1a of the result's bytes
  for (size_t i = 0; i < sizeof output; ++i) {
    digest = (digest ^ ((const uint8_t*)output)[i]) * UINT64_C(0x100000001b3);
  }
  print_number("rank ", espalier_node_rank(node));
  print_number(", sum ", rounds++);
  print_number(": digest ", digest);
  port_print("\n");
}

void report_failure(espalier_node* node) {
  const espalier_node_cause cause = espalier_node_cause_of(node);
  print_number("rank ", espalier_node_rank(node));
  port_print(": ");
  port_print(espalier_status_name(cause.status));
  print_number(": rank ", cause.peer);
  print_number(", found by rank ", cause.detector);
  if (cause.link != ESPALIER_NO_LINK) {
    print_number("; here step ", (uint64_t)cause.step);
    print_number(" waits on link ", cause.link);
    print_number(" to rank ", cause.awaited);
  }
  port_print("\n");
}
