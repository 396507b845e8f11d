// The shortest use of a node, which README.md shows: one sum.

#include "node.h"
#include "port.h"

static int sum_once(const espalier_node_config* config, espalier_node** node) {
  static uint64_t memory[NODE_BYTES / 8];  // all memory of the node: no heap
  int status = espalier_node_init(config, memory, sizeof memory, node);  // checks the image
  if (status == ESPALIER_OK) status = espalier_node_start(*node, next_sum(*node));
  if (status != ESPALIER_OK) return status;
  while ((status = espalier_node_poll(*node)) == ESPALIER_BUSY) {
    port_sleep(espalier_node_next_deadline(*node));  // or until a link has received
  }
  return status;
}

int main(int count, char** words) {
  port_begin(count, words);
  const espalier_node_config config = node_config();
  espalier_node* node = NULL;
  const int status = sum_once(&config, &node);
  if (status != ESPALIER_OK) return refuse("sum: ", status);
  finish_sum(node);
  for (;;) {  // a peer that still waits for a reply gets it from here
    (void)espalier_node_poll(node);
    port_sleep(espalier_node_next_deadline(node));
  }
}
