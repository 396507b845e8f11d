// The program that README.md shows: a sum over all processes of the job.
#include <cstdio>
#include <vector>

#include "espalier/communicator.h"

int main() {
  auto world = espalier::join();
  if (!world) return std::fprintf(stderr, "%s\n", world.error().message.c_str()), 2;
  std::vector<float> sums(1'000'000, static_cast<float>(world->rank() + 1));
  auto summed = world->allreduce(sums, espalier::Op::kSum);  // in place
  if (!summed) return std::fprintf(stderr, "%s\n", summed.error().message.c_str()), 1;
  std::printf("rank %u of %u: sum %g\n", world->rank(), world->size(), sums[999'999]);
}
