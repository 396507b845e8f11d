// A rank that gets no memory: an error of the call on all ranks, and no exception. The ranks are
// threads of one process, over tcp on the loopback interface. Allocations of one rank and of the
// threads that it starts fail from a chosen one on.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/network/lookup.h"
#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "collectives/schedule/selection.h"
#include "communicator/c_interface.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/espalier.h"
#include "tests/whole.h"

namespace {

struct Allocations {
  std::atomic<bool> may_fail = false;
  std::atomic<std::int64_t> left = 0;      // that succeed
  std::atomic<std::uint64_t> refused = 0;  // that failed
};
constinit thread_local Allocations* allocations = nullptr;  // of this thread; null: all succeed

bool is_refused() {
  if (allocations == nullptr || !allocations->may_fail) return false;
  if (allocations->left.fetch_sub(1) > 0) return false;
  allocations->refused.fetch_add(1);
  return true;
}

// What a thread begins with.
struct Start {
  void* (*function)(void*);
  void* argument;
  Allocations* allocations;
};

void* begin(void* given) {
  const Start start = *static_cast<Start*>(given);
  std::free(given);
  allocations = start.allocations;
  return start.function(start.argument);
}

}  // namespace

void* operator new(std::size_t size) {
  void* const bytes = is_refused() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (bytes == nullptr) throw std::bad_alloc();
  return bytes;
}
void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t /*size*/) noexcept { std::free(bytes); }

// A thread's allocations are those of the rank that started it.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  auto* const start = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (start == nullptr) return EAGAIN;
  *start = {function, argument, allocations};
  const int status = create(thread, attributes, begin, start);
  if (status != 0) std::free(start);
  return status;
}

namespace espalier {
namespace {

using communicator::testing::Change;
using communicator::testing::on_all;
using communicator::testing::with_deadline;

constexpr std::uint32_t kRanks = 3;
constexpr std::uint32_t kPoor = 1;  // the rank without memory
constexpr std::uint64_t kCount = 300;

const Change with_short_deadline = with_deadline(std::chrono::seconds(is_sanitized() ? 20 : 4));

// Ends the failing of this thread's allocations, before objects that are declared earlier end.
struct Enough {
  ~Enough() { allocations = nullptr; }
};

// A way to use a communicator. Returns the error; empty: none.
using Use = std::string (*)(Communicator& world, const Call& call);

std::string run(Communicator& world, const Call& call) { return message_of(world.run(call)); }

std::string start(Communicator& world, const Call& call) {
  auto request = world.start(call);
  const std::string line = request ? message_of(request->wait()) : message_of(request);
  allocations = nullptr;  // before the request ends
  return line;
}

std::string plan(Communicator& world, const Call& call) {
  auto plan = world.plan(call);
  const Enough enough;
  if (!plan) return plan.error().message;
  for (int i = 0; i < 3; ++i) {
    if (auto started = plan->start(); !started) return started.error().message;
    if (auto done = plan->wait(); !done) return done.error().message;
  }
  return "";
}

std::string split(Communicator& world, const Call& /*call*/) {
  const auto parts = world.split(0);
  const Enough enough;
  return message_of(parts);
}

std::string count_neighbors(Communicator& world, const Call& /*call*/) {
  constexpr Neighbor all[] = {{0, 1, 1}, {1, 1, 1}, {2, 1, 1}};
  return message_of(world.neighbor_counts(all));
}

// As `use`, with `count` allocations that succeed on the poor rank. Returns how many failed.
std::uint64_t check(Use use, Collective collective, std::int64_t count) {
  Allocations own;
  on_all(
      kRanks,
      [&](Communicator& world) {
        SCOPED_TRACE(std::string(collective_name(collective)) + ", allocation " +
                     std::to_string(count) + ", rank " + std::to_string(world.rank()));
        std::vector<std::int32_t> send(kCount * kRanks, 1), receive(kCount * kRanks);
        Call call = {
            .collective = collective,
            .send = send.data(),
            .receive = receive.data(),
            .count = collective == Collective::kBarrier ? 0 : kCount,
            .op = {.op = combines_operands(collective) ? Op::kSum : Op::kNone, .type = Type::kI32}};
        if (collective == Collective::kBroadcast) call.send = call.receive;
        const bool is_poor = world.rank() == kPoor;
        std::string first;
        try {
          if (is_poor) {
            own.left = count;
            own.may_fail = true;
            allocations = &own;
          }
          first = use(world, call);
        } catch (...) {
          allocations = nullptr;
          ADD_FAILURE() << "an exception";
        }
        allocations = nullptr;
        own.may_fail = own.may_fail && !is_poor;
        const std::string next = message_of(world.barrier());
        if (is_poor && own.refused != 0) {
          EXPECT_PRED2(contains, first, "no memory") << "; " << next;
        }
        if (is_poor && own.refused == 0) {
          EXPECT_EQ(first + next, "");
        }
        if (own.refused == 0 && first.empty() && next.empty()) return;
        const std::string& line = is_poor || first.empty() ? next : first;
        EXPECT_PRED2(contains, line, "rank 1: no memory") << first << "; " << next;
        EXPECT_EQ(world.cause().status, Status::kBackEnd);
        EXPECT_EQ(world.cause().detector, kPoor);
      },
      with_short_deadline);
  return own.refused;
}

// The allocations of the first call, until one call needs no more: the first ones each, then ever
// fewer.
void check_each(Use use, Collective collective) {
  const bool all = whole();
  for (std::int64_t count = 0; check(use, collective, count) != 0;
       count += all || count < 8 ? 1 : count / 2) {
    if (testing::Test::HasFailure()) return;
  }
}

TEST(NoMemory, IsAnErrorOfEachCollective) {
  std::vector<std::thread> jobs;
  for (const Collective collective : kAllCollectives)
    jobs.emplace_back(check_each, run, collective);
  for (std::thread& job : jobs) job.join();
}

TEST(NoMemory, IsAnErrorOfEachWayToCall) {
  std::vector<std::thread> jobs;
  for (const Use use : {start, plan, split, count_neighbors}) {
    jobs.emplace_back(check_each, use, Collective::kAllreduce);
  }
  for (std::thread& job : jobs) job.join();
}

// Neither ends the process.
TEST(NoMemory, EndsCommunicatorsToo) {
  for (const bool is_part : {false, true}) {
    on_all(
        kRanks,
        [&](Communicator& world) {
          Allocations own{.may_fail = true};
          auto parts = or_throw(world.split(0));
          (void)parts->barrier();  // fails if rank 1 has ended its part
          if (world.rank() == kPoor) allocations = &own;
          if (is_part) {
            parts.reset();
          } else {
            const Communicator last = std::move(world);
          }
          allocations = nullptr;
        },
        with_short_deadline);
  }
}

TEST(NoMemory, IsAnErrorInC) {
  on_all(
      2,
      [&](Communicator& world) {
        espalier_comm* const comm = communicator::make_handle(std::move(world));
        Allocations own{.may_fail = true};
        espalier_call call = espalier_default_call();
        call.collective = ESPALIER_BARRIER;
        espalier_request* request = nullptr;
        if (espalier_rank(comm) == kPoor) allocations = &own;
        int status = espalier_start(&call, comm, &request);
        allocations = nullptr;
        EXPECT_TRUE(espalier_rank(comm) != kPoor || status != ESPALIER_OK);
        if (status == ESPALIER_OK) status = espalier_wait(request);
        if (status == ESPALIER_OK) status = espalier_barrier(comm);
        EXPECT_EQ(status, ESPALIER_BACK_END);
        EXPECT_EQ(espalier_cause_of(comm).status, ESPALIER_BACK_END);
        EXPECT_EQ(espalier_cause_of(comm).detector, kPoor);
        espalier_leave(comm);
      },
      with_short_deadline);
}

// However far it comes, the thread that asks has its signals afterwards.
TEST(NoMemory, ALookUpLeavesTheSignalsAlone) {
  static Allocations own;  // the look-up's thread may outlive the test
  for (int left = 0; left < 8; ++left) {
    own.left = left;
    own.may_fail = true;
    allocations = &own;
    try {
      network::Lookup lookup("localhost");
      while (!lookup.wait(std::chrono::steady_clock::now() + std::chrono::seconds(1))) continue;
    } catch (const std::bad_alloc&) {  // before the thread
    }
    allocations = nullptr;
    own.may_fail = false;
    sigset_t blocked;
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
    EXPECT_EQ(sigismember(&blocked, SIGINT), 0) << left;
  }
}

}  // namespace
}  // namespace espalier
