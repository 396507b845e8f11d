#ifndef NODE_H
#define NODE_H
// What the examples do with their node: superloop.c, tasks.c and once.c differ in who calls it.

#include <espalier/espalier_node.h>
#include <stdbool.h>

enum { COUNT = 250 };                 // floats that the nodes sum
#define ROUND_NS UINT64_C(100000000)  // a sum every 100 ms
// A peer that is silent for so long is dead: 30 s, longer than a board takes to start.
#define DEADLINE_NS UINT64_C(30000000000)

// Returns the parameters of the board's node: its image, its links and its clock.
espalier_node_config node_config(void);
// Prints what was refused, and the status. Returns the status.
int refuse(const char* what, int status);
// Makes the node of the board's image. Null: it said why.
espalier_node* make_node(void);
// Measures the next vector. Returns the call that sums it, which is the same each time.
const espalier_node_call* next_sum(const espalier_node* node);
// Starts the next sum. Returns a number of espalier_status.
int start_sum(espalier_node* node);
// Says what the sum is. Called when it is complete.
void finish_sum(espalier_node* node);
// Says who failed, and where this node stood.
void report_failure(espalier_node* node);

#endif
