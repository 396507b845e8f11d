// A bare-metal board's program.

#include "firmware/bare/board.h"
#include "firmware/bare/node.h"

int main() {
  espalier::bare::run_node();
  espalier::board::restart();
}
