// A rank of the cases of judge.py: calls random collectives, alike on all ranks, until its fault
// comes, or another rank's fault holds it up. Says `joined RANK PID`, after one call of each kind,
// and, at a fault of its own, `fault RANK`. After an error it says `failed RANK MESSAGE`, and
// sleeps, unless HELD_END says that it ends: `return`, or `exit`, at once and without destructors.
//
// held SEED CALLS KIND VICTIM: after CALLS collectives, rank VICTIM
//   compute   calls no more
//   other     calls another collective in place of the next one, once
//   operator  does not return from an operator of the program, in the next collective
//   accept    computes, while the others call accept() for a newcomer
//   rejoin    computes, while the others have failed by a cancel, and call rejoin()
//   order     calls an allreduce on a part of the ranks, the others a barrier on all
//   part      computes, while the others call an allreduce on a part, whose ranks are in reverse
//   newcomers calls accept() for two newcomers, as the others do
//   none      does nothing else than the others: the fault comes from outside
//   leave     stops, as the others do; who continues cancels and leaves, and says
//             `left RANK MILLISECONDS MILLISECONDS`: the time, and the thread's processor time

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "espalier/communicator.h"

namespace espalier {
namespace {

using Seconds = std::chrono::seconds;

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(Seconds(1));
}

struct Case {
  std::uint64_t seed = 0, calls = 0;
  std::string kind;
  std::uint32_t victim = 0;
};

// One collective; the arguments are the same on all ranks.
Result<void> call(Communicator& world, std::uint64_t kind, std::uint64_t size,
                  std::uint64_t rooted) {
  const std::size_t counts[] = {1, 300, 20'000};
  const std::size_t count = counts[size % 3];
  const std::uint32_t root = static_cast<std::uint32_t>(rooted % world.size());
  std::vector<std::int32_t> data(count * world.size(), 1), other(count * world.size());
  const std::span<std::int32_t> own(data.data(), count), result(other.data(), count);
  switch (kind % 5) {
    case 0: return world.allreduce(own, Op::kSum);
    case 1: return world.broadcast(own, root);
    case 2: return world.allgather(own, other);
    case 3: return world.all_to_all(data, other);
    default: return world.reduce_scatter(data, result, Op::kMax);
  }
}

void stay(void*, const void*, const void*, std::uint64_t, void*) { sleep_for_ever(); }

void pass(void*, const void*, const void*, std::uint64_t, void*) {}

// A reduce to the victim: the root combines in any algorithm. `stays`: its operator never returns.
Result<void> operate(Communicator& world, std::uint32_t victim, bool stays) {
  std::vector<std::int32_t> data(8, 1), result(8);
  Call with = call::reduce(data, result, Op::kSum, victim);
  with.op.op = Op::kCustom;
  with.op.custom = stays && world.rank() == victim ? stay : pass;
  return world.run(with);
}

// Every kind of call once, so that schedules are chosen, and each two ranks have a cable that has
// been used.
Result<void> warm_up(Communicator& world) {
  for (std::uint32_t root = 0; root < world.size(); ++root) {
    if (auto done = operate(world, root, false); !done) return done;
  }
  for (std::uint64_t size = 0; size < 3; ++size) {
    for (std::uint64_t root = 0; root < world.size(); ++root) {
      for (std::uint64_t kind = 0; kind < 5; ++kind) {
        if (auto done = call(world, kind, size, root); !done) return done;
      }
    }
  }
  return {};
}

double milliseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

int leave(Communicator& world, std::uint32_t victim) {
  const std::uint32_t rank = world.rank();
  (void)std::raise(SIGSTOP);
  if (rank == victim) return 0;
  const double begin = milliseconds(CLOCK_MONOTONIC);
  const double used = milliseconds(CLOCK_THREAD_CPUTIME_ID);
  (void)world.cancel("a reason");
  (void)world.leave();
  std::printf("left %u %.0f %.0f\n", rank, milliseconds(CLOCK_MONOTONIC) - begin,
              milliseconds(CLOCK_THREAD_CPUTIME_ID) - used);
  return 0;
}

// The others wait for the victim, or all for newcomers.
int agree(Communicator& world, const Case& of) {
  if (of.kind != "newcomers" && world.rank() == of.victim) {
    std::printf("fault %u\n", world.rank());
    sleep_for_ever();
  }
  if (of.kind == "rejoin") (void)world.cancel("a reason");
  const std::uint32_t newcomers = of.kind == "newcomers" ? 2 : 1;
  auto next = of.kind == "rejoin" ? world.rejoin() : world.accept(newcomers, Seconds(600));
  std::printf("failed %u %s\n", world.rank(), next ? "" : next.error().message.c_str());
  sleep_for_ever();
}

// The calls on two communicators.
int split(Communicator& world, const Case& of) {
  auto part = world.split(0, of.kind == "part" ? world.size() - world.rank() : world.rank());
  if (!part || !*part) return 1;
  const bool is_victim = world.rank() == of.victim;
  if (is_victim) std::printf("fault %u\n", world.rank());
  if (is_victim && of.kind == "part") sleep_for_ever();
  std::int32_t one = 1;
  const std::span<std::int32_t> data(&one, 1);
  auto done = is_victim || of.kind == "part" ? (*part)->allreduce(data, Op::kSum) : world.barrier();
  std::printf("failed %u %s\n", world.rank(), done ? "" : done.error().message.c_str());
  sleep_for_ever();
}

int run(const Case& of) {
  setvbuf(stdout, nullptr, _IOLBF, 4096);
  JoinOptions options;
  const char* const provider = std::getenv("HELD_PROVIDER");
  if (provider != nullptr) options.provider = provider;
  const char* const deadline = std::getenv("HELD_DEADLINE");
  if (deadline != nullptr) options.deadline = Seconds(std::atoi(deadline));
  const char* const rank_text = std::getenv("ESPALIER_RANK");
  // An address for each rank, so that packets between two of them can be told from all others.
  if (std::getenv("HELD_ADDRESSES") != nullptr && rank_text != nullptr) {
    options.local_address = "127.0.1." + std::to_string(std::atoi(rank_text) + 1);
  }
  auto world = join(options);
  if (!world) {
    std::printf("failed %s %s\n", rank_text == nullptr ? "?" : rank_text,
                world.error().message.c_str());
    return 1;
  }
  const std::uint32_t rank = world->rank();
  if (auto done = warm_up(*world); !done) {
    std::printf("failed %u %s\n", rank, done.error().message.c_str());
    return 1;
  }
  std::printf("joined %u %d\n", rank, getpid());
  if (of.kind == "leave") return leave(*world, of.victim);
  std::mt19937_64 random(of.seed);
  for (std::uint64_t number = 0;; ++number) {
    const bool is_due = number >= of.calls;
    const bool agrees = of.kind == "accept" || of.kind == "rejoin" || of.kind == "newcomers";
    if (is_due && agrees) return agree(*world, of);
    if (is_due && (of.kind == "order" || of.kind == "part")) return split(*world, of);
    const bool is_victim = is_due && rank == of.victim;
    const std::uint64_t draw = random();
    if (is_victim && number == of.calls) std::printf("fault %u\n", rank);
    if (is_victim && of.kind == "compute") sleep_for_ever();
    const bool is_other = is_victim && of.kind == "other" && number == of.calls;
    auto done = is_due && of.kind == "operator"
                    ? operate(*world, of.victim, true)
                    : call(*world, draw % 5 + (is_other ? 1 : 0), draw / 16, draw / 64);
    if (done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(draw % 8));
      continue;
    }
    if (of.kind == "rejoin") return agree(*world, of);  // cancelled in its last call
    std::printf("failed %u %s\n", rank, done.error().message.c_str());
    const char* const end = std::getenv("HELD_END");
    if (end == nullptr) sleep_for_ever();
    if (std::string(end) == "return") return 1;
    std::fflush(stdout);
    std::_Exit(1);
  }
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "held SEED CALLS KIND VICTIM\n");
    return 2;
  }
  return espalier::run({std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                        argv[3], static_cast<std::uint32_t>(std::atoi(argv[4]))});
}
