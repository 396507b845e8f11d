// A program that joins its job by whatever launcher started it, calls collectives on all processes
// and on halves of them, and says so: a test of launchers.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "espalier/communicator.h"

namespace {

int fail(const std::string& what) {
  std::fprintf(stderr, "joined: %s\n", what.c_str());
  return 1;
}

}  // namespace

// joined [DEADLINE_MS [FOLDER JOB RANK SIZE]]
int main(int argc, char** argv) {
  espalier::JoinOptions options;
  if (argc > 1) options.bootstrap.deadline = std::chrono::milliseconds(std::atoi(argv[1]));
  if (argc > 5) {
    options.bootstrap.folder = argv[2];
    options.bootstrap.job = argv[3];
    options.bootstrap.rank = std::atoi(argv[4]);
    options.bootstrap.size = std::atoi(argv[5]);
  }
  auto world = espalier::join(options);
  if (!world) return fail(world.error().message) + 1;
  const std::uint32_t ranks = world->size();
  std::array<std::int64_t, 1> sum = {world->rank() + 1};
  if (auto done = world->allreduce(sum, espalier::Op::kSum); !done) {
    return fail(done.error().message);
  }
  if (sum[0] != std::int64_t{ranks} * (ranks + 1) / 2) return fail("incorrect sum");
  auto halves = world->split(world->rank() % 2);
  if (!halves) return fail(halves.error().message);
  // Takes no memory of its own: limits_test.py leaves it little, and the library must say so.
  static std::array<float, 10'000> data;
  data.fill(world->rank() < 2 ? 3.0F : 0.0F);
  if (auto done = (*halves)->broadcast(data, 0); !done) {
    return fail(done.error().message);
  }
  if (data.back() != 3.0F) return fail("incorrect broadcast");
  halves->reset();
  if (auto done = world->barrier(); !done) return fail(done.error().message);
  if (world->rank() == 0) std::printf("%u processes joined\n", ranks);
  return 0;
}
