// A firmware with tasks: one of them has the node, and waits for its links and its deadlines.

#include "node.h"
#include "port.h"
#include "scheduler.h"

static espalier_node* node;
// The task's own frames, and those of a poll: docs/firmware_in_c.md says how much it takes.
static uint64_t node_stack[STACK_BYTES / 8];
static uint64_t other_stack[STACK_BYTES / 8];

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void node_task(void) {
  int status = ESPALIER_OK;
  while (status == ESPALIER_OK) {
    const uint64_t next_round = port_now() + ROUND_NS;
    if (start_sum(node) != ESPALIER_OK) end_tasks(2);
    while ((status = espalier_node_poll(node)) == ESPALIER_BUSY) {
      wait_for_link(espalier_node_next_deadline(node));
    }
    if (status != ESPALIER_OK) break;
    finish_sum(node);
    // Between two sums, too, the node replies to its peers.
    while (status == ESPALIER_OK && port_now() < next_round) {
      wait_for_link(earlier(espalier_node_next_deadline(node), next_round));
      status = espalier_node_poll(node);
    }
  }
  report_failure(node);
  // The others learn of it from here.
  for (const uint64_t end = port_now() + 2 * DEADLINE_NS; port_now() < end;) {
    (void)espalier_node_poll(node);
    wait_for_link(earlier(espalier_node_next_deadline(node), end));
  }
  end_tasks(1);
}

// The rest of the firmware.
static void other_task(void) {
  for (;;) wait_until(port_now() + UINT64_C(20000000));  // toggle an LED, read a sensor
}

int main(int count, char** words) {
  port_begin(count, words);
  node = make_node();  // before the tasks: decoding an image needs more stack than a poll
  if (node == NULL) return 2;
  add_task(node_task, node_stack, sizeof node_stack);
  add_task(other_task, other_stack, sizeof other_stack);
  return run_tasks();
}
