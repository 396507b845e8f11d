// A pipeline over h hops of a message of m bytes is fastest with blocks of sqrt(alpha*m / (beta*h))
// bytes, which grow with the square root of the message. Examples: 8 hosts at 100 Mbit/s over TCP
// (alpha and overhead of a block about 50 us, beta 80 ns/B, h about 6) give 10 KiB for 1 MiB and 29
// KiB for 8 MiB. Shared memory (5 us, 0.3 ns/B) gives 50 KiB for 1 MiB. The curve is flat near its
// minimum: twice the best block size costs a quarter more overhead, so powers of two suffice.
//
// Nodes that plan for themselves have this table, and so do schedules that are asked for by name
// without a model: its four rows fit the smallest boards. Hosts make a table for each schedule and
// model: collectives/predict/block_rules.h.

#include "collectives/build/builder.h"

namespace espalier {

const BlockRule* default_blocks(std::uint32_t& count) {
  static constexpr BlockRule kBlocks[] = {
      {0, 4096}, {1u << 20, 8192}, {4u << 20, 16384}, {32u << 20, 65536}};
  count = sizeof kBlocks / sizeof kBlocks[0];
  return kBlocks;
}

}  // namespace espalier
