// A program in C that reaches all of espalier_node.h except signatures. Linked for each board to
// measure what a node takes; never run.

#include <espalier/espalier_node.h>

extern uint32_t stack_top[];
extern volatile uint32_t probe_device;
volatile uint32_t probe_device;

static int probe_put(void* device, uint8_t byte) {
  (void)device;
  probe_device = byte;
  return 1;
}

static int probe_get(void* device, uint8_t* byte) {
  (void)device;
  *byte = (uint8_t)probe_device;
  return 1;
}

static espalier_bytes wire;

static int probe_send(void* context, uint32_t link, const uint8_t* frame, uint32_t size) {
  (void)context, (void)link;
  return espalier_bytes_send(&wire, frame, size);
}

static uint32_t probe_receive(void* context, uint32_t link, uint8_t* frame) {
  (void)context, (void)link;
  return espalier_bytes_receive(&wire, frame);
}

static uint64_t probe_now(void* context) {
  (void)context;
  return probe_device;
}

void reset(void);
void reset(void) {
  espalier_node_config config = ESPALIER_NODE_CONFIG;
  config.image = (const void*)(uintptr_t)probe_device;
  config.image_bytes = probe_device;
  config.board = "probe";
  config.send = probe_send;
  config.receive = probe_receive;
  config.now = probe_now;
  config.session = probe_device;
  espalier_bytes_init(&wire, probe_put, probe_get, NULL, config.mtu);
  void* const memory = (void*)(uintptr_t)probe_device;
  espalier_node* node = NULL;
  int status = espalier_node_init(&config, memory, espalier_node_bytes(&config), &node);
  espalier_node_call call = ESPALIER_NODE_CALL;
  call.collective = ESPALIER_ALLREDUCE;
  call.receive = memory;
  call.count = probe_device + espalier_node_size(node) + espalier_node_links(node);
  call.scratch_bytes = (size_t)espalier_node_scratch_bytes(node, &call);
  if (status == ESPALIER_OK) status = espalier_node_start(node, &call);
  while (espalier_node_poll(node) == ESPALIER_BUSY) {
    probe_device = (uint32_t)espalier_node_next_deadline(node);
  }
  const espalier_node_cause cause = espalier_node_cause_of(node);
  probe_device = (uint32_t)cause.status + espalier_node_rank(node) + espalier_node_peer(node, 0) +
                 (uint32_t)(uintptr_t)espalier_status_name(status);
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static const struct {
  uint32_t* stack;
  void (*start)(void);
} vectors = {stack_top, reset};
