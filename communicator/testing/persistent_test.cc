// After plan(), start(), test() and wait() allocate nothing and make no system call, except inside
// libfabric's calls and except those that give the core away in a wait(). Four processes run plans,
// each traced, so that every system call of theirs is seen.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "base/testing/results.h"
#include "bootstrap/server.h"
#include "communicator/job_part.h"
#include "espalier/communicator.h"
#include "hal/fabric/testing/counted_heap.h"

namespace espalier {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr int kRounds = 10;

// What a traced process tells its tracer, in memory that both map.
struct Shared {
  std::atomic<bool> is_counted;  // its system calls
  std::atomic<bool> may_wait;    // it is in wait(), which may give the core away
  std::uintptr_t depth;          // address of its main thread's libfabric_call_depth
  std::uint64_t allocations, fabric_allocations, collectives;
  char error[256];
};

// What the tracer counts of one process.
struct Calls {
  std::uint64_t in_libfabric = 0, waiting = 0;
  std::map<std::uint64_t, std::uint64_t> ours;  // by number
};

// Whether an idle wait makes this system call.
bool gives_core_away(std::uint64_t number) {
  return number == SYS_sched_yield || number == SYS_ppoll || number == SYS_nanosleep ||
         number == SYS_clock_nanosleep;
}

// Over mem, an endpoint sleeps until a peer wakes it.
bool wakes_peer(std::uint64_t number) { return number == SYS_futex; }

class Traced {
 public:
  Traced(std::uint32_t count, void (*body)(std::uint32_t rank, Shared& shared)) {
    shared_ = static_cast<Shared*>(mmap(nullptr, count * sizeof(Shared), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    calls.resize(count);
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kCannotTrace);
        raise(SIGSTOP);
        body(rank, shared_[rank]);
        std::fflush(nullptr);
        _exit(shared_[rank].error[0] == '\0' ? 0 : 1);
      }
      ranks_[child] = rank;
    }
    while (!ranks_.empty()) follow();
  }
  ~Traced() { munmap(shared_, calls.size() * sizeof(Shared)); }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  [[nodiscard]] const Shared& of(std::uint32_t rank) const { return shared_[rank]; }

  std::vector<Calls> calls;
  bool cannot_trace = false;

 private:
  static constexpr int kCannotTrace = 77;

  // Waits for one event of any process, and lets it go on.
  void follow() {
    int status = 0;
    const pid_t process = waitpid(-1, &status, __WALL);
    const auto found = ranks_.find(process);
    if (found == ranks_.end()) return;
    const std::uint32_t rank = found->second;
    if (!WIFSTOPPED(status)) {
      cannot_trace = cannot_trace || (WIFEXITED(status) && WEXITSTATUS(status) == kCannotTrace);
      const bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!is_good && shared_[rank].error[0] == '\0') {
        std::snprintf(shared_[rank].error, sizeof(Shared::error), "ended with status %#x",
                      static_cast<unsigned>(status));
      }
      ranks_.erase(found);
      return;
    }
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      note(process, rank);
      signal = 0;
    } else if (signal == SIGSTOP) {
      ptrace(PTRACE_SETOPTIONS, process, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
      signal = 0;
    }
    ptrace(PTRACE_SYSCALL, process, nullptr, signal);
  }

  void note(pid_t process, std::uint32_t rank) {
    const Shared& shared = shared_[rank];
    if (!shared.is_counted) return;
    __ptrace_syscall_info info{};
    const auto got = ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof info, &info);
    if (got <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, process, shared.depth, nullptr);
    int depth = 0;
    std::memcpy(&depth, &word, sizeof depth);
    if (errno == 0 && depth > 0) {
      ++calls[rank].in_libfabric;
    } else if (shared.may_wait && gives_core_away(info.entry.nr)) {
      ++calls[rank].waiting;
    } else {
      ++calls[rank].ours[info.entry.nr];
    }
  }

  Shared* shared_ = nullptr;
  std::map<pid_t, std::uint32_t> ranks_;  // of those that run
};

// Plans with their memory, and one rank's part of the test.
class Planned {
 public:
  explicit Planned(Shared& shared) : shared_(shared) {}

  void add(Communicator& communicator, const Call& call) {
    auto plan = communicator.plan(call);
    if (!plan) return note(plan.error().message);
    plans_.push_back(*std::move(plan));
  }
  // Element 0 of a buffer is the round, and afterwards `times` the round.
  std::vector<std::int64_t>& memory(std::uint64_t count, std::int64_t times) {
    buffers_.push_back({std::make_unique<std::vector<std::int64_t>>(count), times});
    return *buffers_.back().values;
  }

  // Starts every plan in turn, and completes it by test() or by wait().
  void run(int rounds, bool waits) {
    shared_.may_wait = waits;
    for (int round = 1; round <= rounds; ++round) {
      for (Buffer& buffer : buffers_) {
        std::fill(buffer.values->begin(), buffer.values->end(), round);
      }
      for (Plan& plan : plans_) {
        if (auto started = plan.start(); !started) return note(started.error().message);
        if (!complete(plan, waits)) return;
        ++shared_.collectives;
      }
      for (const Buffer& buffer : buffers_) {
        for (const std::int64_t value : *buffer.values) {
          if (value != round * buffer.times) return note("incorrect result");
        }
      }
    }
  }
  void note(const std::string& error) const {
    if (shared_.error[0] == '\0') {
      std::snprintf(shared_.error, sizeof(Shared::error), "%s", error.c_str());
    }
  }

 private:
  struct Buffer {
    std::unique_ptr<std::vector<std::int64_t>> values;
    std::int64_t times;
  };

  [[nodiscard]] bool complete(Plan& plan, bool waits) {
    while (!waits) {
      const auto done = plan.test();
      if (done && *done) return true;
      if (!done) {
        note(done.error().message);
        return false;
      }
    }
    const auto done = plan.wait();
    if (!done) note(done.error().message);
    return static_cast<bool>(done);
  }

  Shared& shared_;
  std::vector<Plan> plans_;
  std::vector<Buffer> buffers_;
};

// All plans of a rank: on the world and on a half of it, short and long, in place where that takes
// a copy of the input, and with unequal counts.
void plan_all(Communicator& world, Communicator& half, Planned& planned,
              const std::vector<std::uint64_t>& counts) {
  using In = std::span<const std::int64_t>;
  using Out = std::span<std::int64_t>;
  for (const std::uint64_t count : {0u, 1u, 1000u, 20'000u}) {
    Out sum = planned.memory(count, kRanks);
    planned.add(world, call::allreduce(sum, sum, Op::kSum));
    Out pair = planned.memory(count, 2);
    planned.add(half, call::allreduce(pair, pair, Op::kSum));
    planned.add(world, call::broadcast(Out(planned.memory(count, 1)), 1));
    Out exchanged = planned.memory(count * kRanks, 1);
    planned.add(world, call::all_to_all(In(exchanged), exchanged, count));
  }
  Out all = planned.memory(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 1);
  const std::uint64_t place = std::accumulate(
      counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(world.rank()), std::uint64_t{0});
  Call gather = call::allgather(In(all.subspan(place, counts[world.rank()])), all);
  gather.counts = counts;
  planned.add(world, gather);
  planned.add(world, call::barrier());
}

std::string server_address;
const char* provider_name = "tcp";
bool has_memory() { return std::strncmp(provider_name, "mem", 3) == 0; }

void run_rank(std::uint32_t rank, Shared& shared) {
  Planned planned(shared);
  JoinOptions options{.provider = provider_name};
  if (options.provider == "mem+tcp") options.host = rank < kRanks / 2 ? "a" : "b";
  options.bootstrap.table.assign(kRanks, server_address);
  options.bootstrap.rank = rank;
  auto world = join(options);
  if (!world) return planned.note(world.error().message);
  // A call that meets the library's thread in its communicator waits for it, by a system call.
  communicator::JobPart::silence(*world);
  auto half = world->split(rank % 2);
  if (!half) return planned.note(half.error().message);
  const std::vector<std::uint64_t> counts = {3, 0, 700, 1};
  plan_all(*world, **half, planned, counts);
  // Plans must not allocate at their first start.
  shared.depth = reinterpret_cast<std::uintptr_t>(&ofi::libfabric_call_depth);
  ofi::heap::counted = true;
  shared.is_counted = true;
  planned.run(kRounds, false);
  planned.run(kRounds, true);
  shared.is_counted = false;
  ofi::heap::counted = false;
  shared.allocations = ofi::heap::ours;
  shared.fabric_allocations = ofi::heap::theirs;
}

void check(const char* provider) {
  auto server = or_throw(bootstrap::Server::start("127.0.0.1:0", kRanks, {}));
  server_address = server->address();
  provider_name = provider;
  const Traced traced(kRanks, run_rank);
  if (traced.cannot_trace) GTEST_SKIP() << "this process may not trace its children";
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const Shared& shared = traced.of(rank);
    const Calls& calls = traced.calls[rank];
    EXPECT_STREQ(shared.error, "") << "rank " << rank;
    EXPECT_EQ(shared.allocations, 0u) << "rank " << rank;
    for (const auto& [number, times] : calls.ours) {
      if (has_memory() && wakes_peer(number)) continue;
      ADD_FAILURE() << "rank " << rank << " made system call " << number << ' ' << times
                    << " times";
    }
    std::printf(
        "rank %u: %llu collectives; allocations: ours %llu, in libfabric's calls %llu; "
        "system calls: in libfabric's calls %llu, of idle waits %llu\n",
        rank, static_cast<unsigned long long>(shared.collectives),
        static_cast<unsigned long long>(shared.allocations),
        static_cast<unsigned long long>(shared.fabric_allocations),
        static_cast<unsigned long long>(calls.in_libfabric),
        static_cast<unsigned long long>(calls.waiting));
  }
}

TEST(Persistent, NothingIsAllocatedAndNoSystemCallIsMadeOverTcp) {
  if (!kHeapReplaced) GTEST_SKIP() << "the sanitizer replaces malloc itself";
  check("tcp");
}

TEST(Persistent, NothingIsAllocatedAndNoSystemCallIsMadeOverMem) {
  if (!kHeapReplaced) GTEST_SKIP() << "the sanitizer replaces malloc itself";
  check("mem");
}

TEST(Persistent, NothingIsAllocatedAndNoSystemCallIsMadeOnTwoHosts) {
  if (!kHeapReplaced) GTEST_SKIP() << "the sanitizer replaces malloc itself";
  check("mem+tcp");
}

// One allocation and two system calls, one of them marked as libfabric's.
void run_counted(std::uint32_t, Shared& shared) {
  shared.depth = reinterpret_cast<std::uintptr_t>(&ofi::libfabric_call_depth);
  ofi::heap::counted = true;
  shared.is_counted = true;
  (void)syscall(SYS_getppid);
  {
    const ofi::LibfabricCall mark;
    (void)syscall(SYS_getuid);
  }
  const std::vector<int> one(10);
  shared.is_counted = false;
  ofi::heap::counted = false;
  shared.allocations = ofi::heap::ours + one[0];
}

TEST(Persistent, TheCountersCount) {
  if (!kHeapReplaced) GTEST_SKIP() << "the sanitizer replaces malloc itself";
  const Traced traced(1, run_counted);
  if (traced.cannot_trace) GTEST_SKIP() << "this process may not trace its children";
  EXPECT_EQ(traced.of(0).allocations, 1u);
  EXPECT_EQ(traced.calls[0].in_libfabric, 1u);
  ASSERT_EQ(traced.calls[0].ours.size(), 1u);
  EXPECT_EQ(traced.calls[0].ours.begin()->first, std::uint64_t{SYS_getppid});
}

}  // namespace
}  // namespace espalier
