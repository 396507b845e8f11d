// image_calls (--image FILE | --flash FILE) [PUBLIC_KEY]: joins the job with the programs of this
// node's image, and calls collectives that are in it and one that is not. Each rank checks its
// results; rank 0 prints the algorithms. Without PUBLIC_KEY any image is taken.
#include <cstdio>
#include <string>
#include <vector>

#include "espalier/communicator.h"

namespace {

using espalier::call::allreduce;
using espalier::call::broadcast;
using espalier::call::gather;

// The algorithm of one call, after it ran.
std::string run(espalier::Communicator& world, const espalier::Call& call) {
  auto plan = world.plan(call);
  if (!plan) return plan.error().message;
  if (const auto started = plan->start(); !started) return started.error().message;
  if (const auto done = plan->wait(); !done) return done.error().message;
  return plan->algorithm();
}

int check(espalier::Communicator& world) {
  const std::uint32_t me = world.rank(), size = world.size();
  using Numbers = std::vector<std::int64_t>;
  bool is_right = true;
  std::string names;
  for (const std::uint64_t count : {1u, 20'000u}) {
    Numbers own(count, me + 1), sum(count), all(count * size);
    const Numbers sums(count, size * (size + 1) / 2);
    names += " allreduce " + run(world, allreduce(own, sum, espalier::Op::kSum));
    is_right = is_right && sum == sums;
    sum = own;
    names += " in-place " + run(world, allreduce(sum, sum, espalier::Op::kSum));
    is_right = is_right && sum == sums;
    Numbers data(count, me == 0 ? 7 : 0);
    names += " broadcast " + run(world, broadcast(data, 0));
    is_right = is_right && data == Numbers(count, 7);
    names += " gather " + run(world, gather(own, all, 0));
    for (std::uint32_t rank = 0; me == 0 && rank < size; ++rank) {
      is_right = is_right && all[rank * count] == rank + 1;
    }
  }
  auto half = world.split(me % 2);
  is_right = is_right && half && (*half)->barrier();
  if (me == 0) std::printf("%s\n", names.c_str() + 1);
  if (!is_right) std::fprintf(stderr, "image_calls: rank %u has a wrong result\n", me);
  return is_right ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  espalier::JoinOptions options;
  if (argument_count < 3) return std::fputs("image_calls: expected an image\n", stderr), 2;
  (std::string(arguments[1]) == "--flash" ? options.image.flash : options.image.file) =
      arguments[2];
  if (argument_count > 3) options.image.public_key = arguments[3];
  options.image.takes_unsigned = argument_count == 3;
  auto world = espalier::join(options);
  if (!world) return std::fprintf(stderr, "image_calls: %s\n", world.error().message.c_str()), 2;
  return check(*world);
}
