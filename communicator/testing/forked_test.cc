// Processes that fork while they are ranks of a job: in the child the library does nothing.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "base/testing/child.h"
#include "base/testing/results.h"
#include "communicator/c_interface.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/espalier.h"
#include "espalier/internal/hal/mem/allocate.h"

namespace espalier {
namespace {

using namespace communicator::testing;

constexpr std::uint32_t kRanks = 2;

// A child that hangs ends by the alarm.
template <typename Body>
int status_of_child(Body body) {
  return espalier::status_of_child([&] {
    alarm(600);
    body();
  });
}

std::string forked_from(std::uint32_t rank) {
  return "this process was forked from rank " + std::to_string(rank) +
         " and has no rank of its own; expected the call in the process that joined";
}
void sum(Communicator& world) {
  std::vector<int> data = {1};
  EXPECT_EQ(message_of(world.allreduce(data, Op::kSum)), "");
  EXPECT_EQ(data[0], static_cast<int>(world.size()));
}

// Every kind of object that the parent has, in every state.
struct Objects {
  std::optional<Communicator> part;
  std::optional<Request> started;
  std::optional<Plan> plan, running;
  std::vector<int> data = std::vector<int>(3 * 40'000, 1);
};

Objects make_objects(Communicator& world) {
  Objects all;
  auto parts = world.split(0);
  EXPECT_TRUE(parts);
  all.part.emplace(**std::move(parts));
  const auto call = [&](std::size_t which) {
    const std::span<int> memory(all.data.data() + which * 40'000, 40'000);
    return call::allreduce(memory, memory, Op::kSum);
  };
  all.plan.emplace(*all.part->plan(call(0)));
  all.running.emplace(*all.part->plan(call(1)));
  EXPECT_TRUE(all.running->start());
  all.started.emplace(*all.part->start(call(2)));
  return all;
}

void expect_inert(Communicator& world, Objects& all) {
  const std::string expected = forked_from(world.rank());
  std::vector<int> data = {1};
  EXPECT_EQ(message_of(world.allreduce(data, Op::kSum)), expected);
  EXPECT_EQ(message_of(world.start(call::barrier())), expected);
  EXPECT_EQ(message_of(world.plan(call::barrier())), expected);
  EXPECT_EQ(message_of(world.split(0)), expected);
  EXPECT_EQ(message_of(world.cancel("in the child")), expected);
  EXPECT_EQ(message_of(world.cancel_on(nullptr)), expected);
  EXPECT_EQ(message_of(world.rejoin()), expected);
  EXPECT_EQ(message_of(world.neighbor_counts({})), expected);
  EXPECT_EQ(world.cause().status, Status::kOk);
  EXPECT_EQ(world.size(), kRanks);
  for (Plan* plan : {&*all.plan, &*all.running}) {
    EXPECT_EQ(message_of(plan->start()), expected);
    EXPECT_EQ(message_of(plan->test()), expected);
    EXPECT_EQ(message_of(plan->wait()), expected);
  }
  EXPECT_EQ(message_of(all.started->test()), expected);
  EXPECT_EQ(message_of(all.started->wait()), expected);
  all = {};
  const Communicator ends = std::move(world);
}

void check_forks(Communicator& world) {
  sum(world);
  Objects all = make_objects(world);
  EXPECT_EQ(status_of_child([&] { expect_inert(world, all); }), 0);
  EXPECT_EQ(message_of(all.started->wait()), "");
  EXPECT_EQ(message_of(all.running->wait()), "");
  EXPECT_EQ(message_of(all.plan->start()), "");
  EXPECT_EQ(message_of(all.plan->wait()), "");
  EXPECT_EQ(*std::min_element(all.data.begin(), all.data.end()), static_cast<int>(kRanks));
  sum(world);
}

TEST(Forked, ObjectsOfTheParentAreInertOverTcp) { on_all(kRanks, check_forks); }

TEST(Forked, ObjectsOfTheParentAreInertOverMemory) { on_all(kRanks, check_forks, on_hosts("AA")); }

TEST(Forked, ObjectsOfTheParentAreInertWithAProgressThread) {
  on_all(kRanks, check_forks, [](JoinOptions& options, std::uint32_t rank) {
    on_hosts("AA")(options, rank);
    options.progress_thread = true;
  });
}

TEST(Forked, AJobOfOneRankIsTheParentsToo) {
  auto world = or_throw(join({.bootstrap = {.method = bootstrap::Method::kAlone}}));
  EXPECT_EQ(status_of_child([&] { EXPECT_EQ(message_of(world.barrier()), forked_from(0)); }), 0);
  EXPECT_TRUE(world.barrier());
}

// Another thread of the parent is inside a call, and holds what it holds there.
TEST(Forked, WhileAnotherThreadCalls) {
  on_all(
      kRanks,
      [](Communicator& world) {
        std::atomic<bool> ends = false;
        std::thread forks([&] {
          for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(status_of_child([&] {
                        EXPECT_EQ(message_of(world.barrier()), forked_from(world.rank()));
                        deallocate(allocate(100));
                        const Communicator gone = std::move(world);
                      }),
                      0);
          }
          ends = true;
        });
        std::vector<int> goes_on = {1};
        while (goes_on[0] != 0) {
          goes_on[0] = ends ? 0 : 1;
          const auto done = world.allreduce(goes_on, Op::kSum);
          if (!done) ADD_FAILURE() << done.error().message;
          deallocate(allocate(100));
          if (!done) break;
        }
        forks.join();
      },
      on_hosts("AA"));
}

// A process that has not joined forks workers, or one that has joined forks one that joins a job of
// its own.
TEST(Forked, AChildJoinsAJobOfItsOwn) {
  on_all(kRanks, [](Communicator& world) {
    sum(world);
    EXPECT_EQ(status_of_child([&] {
                auto own = or_throw(join({.bootstrap = {.method = bootstrap::Method::kAlone}}));
                EXPECT_TRUE(own.barrier());
                EXPECT_EQ(message_of(world.barrier()), forked_from(world.rank()));
              }),
              0);
    sum(world);
  });
}

TEST(Forked, AllocatedMemoryStaysTheParents) {
  auto* const bytes = static_cast<char*>(allocate(10'000));
  bytes[9'999] = 7;
  EXPECT_EQ(status_of_child([&] {
              EXPECT_EQ(bytes[9'999], 7);
              deallocate(bytes);
              auto* const own = static_cast<char*>(allocate(10'000));
              own[9'999] = 8;
              deallocate(own);
            }),
            0);
  EXPECT_EQ(bytes[9'999], 7) << "the child gave it back";
  deallocate(bytes);
}

TEST(Forked, HandlesOfCAreInert) {
  on_all(kRanks, [](Communicator& made) {
    const std::uint32_t rank = made.rank();
    espalier_comm* const world = communicator::make_handle(std::move(made));
    std::int32_t one = 1, all = 0;
    EXPECT_EQ(status_of_child([&] {
                EXPECT_EQ(espalier_allreduce(&one, &all, 1, ESPALIER_I32, ESPALIER_SUM, world),
                          ESPALIER_BAD_ARGUMENT);
                EXPECT_EQ(espalier_error(), forked_from(rank));
                EXPECT_EQ(espalier_rank(world), rank);
                EXPECT_EQ(espalier_cause_of(world).status, ESPALIER_OK);
                espalier_leave(world);
              }),
              0);
    EXPECT_EQ(espalier_allreduce(&one, &all, 1, ESPALIER_I32, ESPALIER_SUM, world), ESPALIER_OK);
    EXPECT_EQ(all, static_cast<std::int32_t>(kRanks));
    espalier_leave(world);
  });
}

}  // namespace
}  // namespace espalier
