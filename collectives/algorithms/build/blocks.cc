// A pipeline over h hops of a message of m bytes is fastest with blocks of sqrt(alpha*m / (beta*h))
// bytes: they grow with the square root of the message. With 8 hosts at 100 Mbit/s over TCP
// (alpha + overhead of a block about 50 us, beta 80 ns/B, h about 6) that is 10 KiB for 1 MiB and
// 29 KiB for 8 MiB; over shared memory (5 us, 0.3 ns/B) 50 KiB for 1 MiB. The curve is flat near
// its bottom: twice the best block costs a quarter of the overhead more, so powers of two do.

#include "collectives/algorithms/build/blocks.h"

namespace espalier {

const BlockRule* default_blocks(std::uint32_t& count) {
  static constexpr BlockRule kBlocks[] = {
      {0, 4096}, {1u << 20, 8192}, {4u << 20, 16384}, {32u << 20, 65536}};
  count = sizeof kBlocks / sizeof kBlocks[0];
  return kBlocks;
}

}  // namespace espalier
