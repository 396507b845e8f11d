// A rank of a job over cables, for collectives.py: joins, runs every collective and compares the
// results, and prints one line.
// rank SEED CALLS BYTES...: random calls, then all collectives of each number of bytes

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "communicator/testing/affine_maps.h"
#include "communicator/testing/random_call.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/communicator.h"

namespace espalier {
namespace {

using namespace communicator::testing;

class Checker {
 public:
  Checker(Communicator& communicator, std::uint64_t count)
      : communicator_(communicator),
        count_(count),
        me_(communicator.rank()),
        ranks_(communicator.size()) {}

  // Returns what is wrong; empty: nothing.
  std::string check(Collective collective, std::uint32_t root) {
    const bool is_many_in = collective == Collective::kScatter ||
                            collective == Collective::kReduceScatter ||
                            collective == Collective::kAllToAll;
    const bool is_many_out = collective == Collective::kGather ||
                             collective == Collective::kAllgather ||
                             collective == Collective::kAllToAll;
    std::vector<Affine> in(is_many_in ? ranks_ * count_ : count_);
    std::vector<Affine> out(is_many_out ? ranks_ * count_ : count_);
    for (std::uint64_t i = 0; i < in.size(); ++i) in[i] = value_of(me_, i);
    Call call{.collective = collective,
              .send = in.data(),
              .receive = out.data(),
              .count = count_,
              .op = kJoin,
              .root = root};
    const bool is_root = me_ == root;
    if (collective == Collective::kBroadcast) {
      if (is_root) out = in;
      call.send = call.receive = out.data();
    }
    if (collective == Collective::kBarrier) call = call::barrier();
    const auto done = communicator_.run(call);
    if (!done) return done.error().message;
    const bool has_output = !has_root(collective) || is_root ||
                            collective == Collective::kBroadcast ||
                            collective == Collective::kScatter;
    if (!has_output || collective == Collective::kBarrier) return "";
    if (collective == Collective::kExscan && me_ == 0) return "";
    for (std::uint64_t i = 0; i<out.size(); i += out.size()> 1000 ? 97 : 1) {
      if (out[i] == expected(collective, root, i)) continue;
      return std::string(collective_name(collective)) + ", root " + std::to_string(root) +
             ": element " + std::to_string(i) + " of " + std::to_string(out.size());
    }
    return "";
  }

 private:
  [[nodiscard]] Affine expected(Collective collective, std::uint32_t root, std::uint64_t i) const {
    const auto from = static_cast<std::uint32_t>(i / count_);
    switch (collective.value()) {
      case Collective::kBroadcast: return value_of(root, i);
      case Collective::kScan: return reduced(me_ + 1, i);
      case Collective::kExscan: return reduced(me_, i);
      case Collective::kScatter: return value_of(root, me_ * count_ + i);
      case Collective::kGather:
      case Collective::kAllgather: return value_of(from, i % count_);
      case Collective::kReduceScatter: return reduced(ranks_, me_ * count_ + i);
      case Collective::kAllToAll: return value_of(from, me_ * count_ + i % count_);
      default: return reduced(ranks_, i);
    }
  }

  Communicator& communicator_;
  std::uint64_t count_;
  std::uint32_t me_, ranks_;
};

std::string run_random(Communicator& world, std::uint64_t seed, std::uint64_t calls) {
  for (std::uint64_t number = 0; number < calls; ++number) {
    communicator::testing::RandomCall random(seed, number, world.size(), world.rank());
    const auto done = world.run(random.call());
    std::string wrong = done ? random.check() : done.error().message;
    if (!wrong.empty()) return random.text() + ": " + wrong;
  }
  return "";
}

std::string run_all(Communicator& world, std::uint64_t bytes) {
  for (const Collective collective : kAllCollectives) {
    const bool is_long = bytes > 1 << 20;
    const std::uint64_t parts = is_long && counts_per_rank(collective) ? world.size() : 1;
    Checker checker(world, std::max<std::uint64_t>(1, bytes / sizeof(Affine) / parts));
    const std::uint32_t roots = has_root(collective) ? world.size() : 1;
    for (std::uint32_t root = 0; root < roots; root += is_long ? roots - 1 + (roots == 1) : 1) {
      const std::string wrong = checker.check(collective, root);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

int run(int argc, char** argv) {
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto world = join();
  if (!world) return std::printf("join: %s\n", world.error().message.c_str()), 1;
  const std::chrono::duration<double> joining = Clock::now() - begin;
  std::string wrong = run_random(*world, number(1), number(2));
  for (int i = 3; i < argc && wrong.empty(); ++i) wrong = run_all(*world, number(i));
  if (wrong.empty() && !world->barrier()) wrong = "the last barrier";
  const std::chrono::duration<double> all = Clock::now() - begin;
  std::printf("rank %u of %u: %s; joined in %.2f s, all in %.2f s\n", world->rank(), world->size(),
              wrong.empty() ? "right" : wrong.c_str(), joining.count(), all.count());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: rank SEED CALLS BYTES...\n");
    return 2;
  }
  return espalier::run(argc, argv);
}
