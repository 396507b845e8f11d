// A bare-metal board's program.

#include "firmware/bare/board.h"
#include "firmware/bare/node.h"

int main() {
  if (!espalier::bare::run_node()) return 1;
  espalier::board::restart();
}
