// A firmware without an operating system: one loop polls the node, does the rest of its work, and
// sleeps.

#include "node.h"
#include "port.h"

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The rest of the firmware: anything that returns soon. Returns when it must be called again.
static uint64_t other_work(void) {
  static uint64_t due;
  if (port_now() >= due) due = port_now() + UINT64_C(20000000);  // toggle an LED, read a sensor
  return due;
}

int main(int count, char** words) {
  port_begin(count, words);
  espalier_node* const node = make_node();
  if (node == NULL) return 2;

  bool running = false;
  uint64_t next_round = 0;
  for (;;) {
    const int status = espalier_node_poll(node);
    if (status == ESPALIER_OK && running) {
      running = false;
      finish_sum(node);
    } else if (status != ESPALIER_OK && status != ESPALIER_BUSY) {
      break;
    }
    if (!running && port_now() >= next_round) {
      if (start_sum(node) != ESPALIER_OK) return 2;
      running = true;
      next_round = port_now() + ROUND_NS;
      continue;
    }
    uint64_t until = earlier(espalier_node_next_deadline(node), other_work());
    if (!running) until = earlier(until, next_round);
    port_sleep(until);
  }

  report_failure(node);
  // The others learn of it from here.
  for (const uint64_t end = port_now() + 2 * DEADLINE_NS; port_now() < end;) {
    (void)espalier_node_poll(node);
    port_sleep(earlier(espalier_node_next_deadline(node), end));
  }
  return 1;
}
