// An allreduce, a broadcast and a barrier among all processes of the job.
#include <cstdio>
#include <vector>

#include "espalier/communicator.h"

using espalier::Result;

int main() {
  auto world = espalier::join();
  if (!world) return std::fprintf(stderr, "%s\n", world.error().message.c_str()), 2;
  const std::uint32_t ranks = world->size();
  std::vector<float> sums(1000, static_cast<float>(world->rank() + 1));
  std::vector<int> data(1000, world->rank() == 0 ? 42 : 0);

  Result<void> done = world->allreduce(sums, espalier::Op::kSum);
  if (done) done = world->broadcast(data, 0);
  if (done) done = world->barrier();
  if (!done) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;

  const bool good = sums[999] == static_cast<float>(ranks * (ranks + 1) / 2) && data[999] == 42;
  std::printf("rank %u of %u: sum %g, data %d: %s\n", world->rank(), ranks, sums[999], data[999],
              good ? "right" : "wrong");
  return good ? 0 : 1;
}
