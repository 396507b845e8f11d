// Communicators that the program ends early: every rank gets the same cause, no call hangs, and the
// program goes on. The ranks are threads of one process, over tcp, mem, and mem+tcp.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "communicator/c_interface.h"
#include "communicator/failure/early_end.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/espalier.h"

namespace espalier {
namespace {

using namespace communicator::testing;
using std::chrono::milliseconds;

using Flag = std::atomic<std::sig_atomic_t>;

// What carries the messages of a job of up to 8 ranks.
struct Fabric {
  const char* name;
  Change change;
};

std::vector<Fabric> fabrics() {
  const auto over = [](const char* provider) {
    return [provider](JoinOptions& options, std::uint32_t) { options.provider = provider; };
  };
  return {{"tcp", over("tcp")}, {"mem", over("mem")}, {"mem+tcp", on_hosts("AABBABAB")}};
}

// Where the ranks meet without a call of the library: until all have passed, no rank cancels.
using Meeting = std::barrier<>;
using Body = std::function<void(Communicator& world, Meeting& meeting)>;

// Runs `body` on all ranks over each fabric once all have joined, and expects that no rank has
// waited for a quarter of its deadline, 300 s: then not all ranks would have told each other that
// they know the cause.
void on_all_fabrics(std::uint32_t ranks, const Body& body) {
  for (const Fabric& fabric : fabrics()) {
    SCOPED_TRACE(fabric.name);
    const auto start = std::chrono::steady_clock::now();
    Meeting meeting(ranks);
    on_all(
        ranks,
        [&](Communicator& world) {
          meeting.arrive_and_wait();
          body(world, meeting);
        },
        [&fabric](JoinOptions& options, std::uint32_t rank) {
          fabric.change(options, rank);
          options.deadline = std::chrono::seconds(1200);
        });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(250));
  }
}

template <typename Done>
void expect_ok(const Done& done) {
  EXPECT_EQ(message_of(done), "");
}

std::string expected_line(std::uint32_t rank, const std::string& reason) {
  return "cancelled by rank " + std::to_string(rank) + (reason.empty() ? "" : ": " + reason);
}

// Calls until one fails, and returns its line.
std::string line_of_failure(Communicator& communicator) {
  Vector data(1000, 1);
  while (true) {
    const std::string line = message_of(communicator.allreduce(Out(data), Op::kSum));
    if (!line.empty()) return line;
  }
}

// Expects that all calls fail with this cause.
void expect_cancelled(Communicator& communicator, std::uint32_t rank, const std::string& reason) {
  const std::string expected = " failed: " + expected_line(rank, reason);
  EXPECT_EQ(line_of_failure(communicator), "allreduce" + expected);
  EXPECT_EQ(message_of(communicator.barrier()), "barrier" + expected);
  EXPECT_EQ(message_of(communicator.start(call::barrier())), "barrier" + expected);
  const Cause cause = communicator.cause();
  EXPECT_EQ(cause.status, Status::kCancelled);
  EXPECT_EQ(cause.detector, rank);
  EXPECT_EQ(cause.peer, rank);
}

TEST(Cancel, EndsTheCallsOfAllRanks) {
  for (const std::uint32_t ranks : {2U, 5U, 8U}) {
    on_all_fabrics(ranks, [ranks](Communicator& world, Meeting& meeting) {
      const std::uint32_t by = ranks - 1;
      meeting.arrive_and_wait();
      if (world.rank() == by) {
        // The other ranks wait.
        std::this_thread::sleep_for(milliseconds(30));
        expect_ok(world.cancel("no more input"));
      }
      expect_cancelled(world, by, "no more input");
      EXPECT_EQ(message_of(world.split(0)), "split failed: " + expected_line(by, "no more input"));
      EXPECT_EQ(message_of(world.neighbor_counts({})),
                "neighbor_counts failed: " + expected_line(by, "no more input"));
      EXPECT_EQ(message_of(world.leave()),
                "the communicator failed before: " + expected_line(by, "no more input"));
    });
  }
}

// The thread of the call waits in the fabric, and no message comes.
TEST(Cancel, OfAnotherThreadEndsTheCallThatWaits) {
  on_all_fabrics(4, [](Communicator& world, Meeting& meeting) {
    // Rank 3 calls once the others have returned.
    if (world.rank() == 3) {
      meeting.arrive_and_wait();
      return expect_cancelled(world, 1, "by the operator");
    }
    std::optional<std::thread> other;
    if (world.rank() == 1) {
      other.emplace([&world] {
        std::this_thread::sleep_for(milliseconds(50));
        expect_ok(world.cancel("by the operator"));
      });
    }
    EXPECT_EQ(message_of(world.barrier()),
              "barrier failed: " + expected_line(1, "by the operator"));
    if (other) other->join();
    meeting.arrive_and_wait();
    expect_cancelled(world, 1, "by the operator");
  });
}

// Rank 0 computes: its process takes part, and it gets the cause from its next call.
TEST(Cancel, DoesNotWaitForTheCallOfARankThatComputes) {
  on_all_fabrics(4, [](Communicator& world, Meeting& meeting) {
    if (world.rank() == 2) expect_ok(world.cancel("x"));
    // Rank 0 calls once the others have returned.
    if (world.rank() == 0) meeting.arrive_and_wait();
    expect_cancelled(world, 2, "x");
    if (world.rank() != 0) meeting.arrive_and_wait();
  });
}

TEST(Cancel, EndsRequestsAndPlans) {
  on_all_fabrics(3, [](Communicator& world, Meeting& meeting) {
    Vector first(100'000, 1), second(10, 1), third(10, 1), done(10, 1);
    const auto sum = [](Vector& data) { return call::allreduce(Out(data), Op::kSum); };
    auto complete = or_throw(world.start(sum(done)));
    expect_ok(complete.wait());
    auto plan = or_throw(world.plan(sum(third)));
    meeting.arrive_and_wait();
    if (world.rank() == 2) {
      expect_ok(world.cancel(""));
      expect_cancelled(world, 2, "");
    } else {
      auto large = world.start(sum(first));
      auto small = world.start(sum(second));
      if (large) {
        EXPECT_EQ(message_of(large->wait()), "allreduce failed: " + expected_line(2, ""));
      }
      if (small) {
        Result<bool> tested = small->test();
        while (tested && !*tested) tested = small->test();
        EXPECT_EQ(message_of(tested), "allreduce failed: " + expected_line(2, ""));
      }
    }
    if (const auto started = plan.start(); started) {
      EXPECT_EQ(message_of(plan.wait()), "allreduce failed: " + expected_line(2, ""));
    } else {
      EXPECT_EQ(started.error().message, "allreduce failed: " + expected_line(2, ""));
    }
    // What was complete keeps its result.
    expect_ok(complete.wait());
    EXPECT_EQ(done, Vector(10, 3));
  });
}

TEST(Cancel, ByAFlag) {
  on_all_fabrics(4, [](Communicator& world, Meeting&) {
    Flag flag = 0;
    expect_ok(world.cancel_on(&flag, "signal 15"));
    std::optional<std::thread> other;
    if (world.rank() == 1) {
      other.emplace([&flag] {
        std::this_thread::sleep_for(milliseconds(50));
        flag = 1;  // as a signal handler does
      });
    }
    if (world.rank() == 2) {
      Flag none = 0;
      expect_ok(world.cancel_on(&none, "not watched"));
      expect_ok(world.cancel_on(nullptr));
      none = 1;
      // The library's thread looks meanwhile.
      std::this_thread::sleep_for(milliseconds(300));
    }
    expect_cancelled(world, 1, "signal 15");
    if (other) other->join();
    EXPECT_NE(message_of(world.leave()), "");
  });
}

TEST(Cancel, ByTheFlagOfARankThatComputes) {
  on_all_fabrics(3, [](Communicator& world, Meeting& meeting) {
    Flag flag = 0;
    expect_ok(world.cancel_on(&flag, "timer"));
    if (world.rank() == 0) {
      flag = 1;
      meeting.arrive_and_wait();
    }
    expect_cancelled(world, 0, "timer");
    if (world.rank() != 0) meeting.arrive_and_wait();
    expect_ok(world.cancel_on(nullptr));
  });
}

TEST(Cancel, OfSeveralRanksAtOnceHasOneCause) {
  for (int round = 0; round < 5; ++round) {
    on_all_fabrics(5, [](Communicator& world, Meeting&) {
      static std::array<std::string, 5> lines;
      if (world.rank() % 2 == 0) {
        EXPECT_EQ(message_of(world.cancel("reason " + std::to_string(world.rank()))), "");
      }
      const std::string line = line_of_failure(world);
      const std::uint32_t by = world.cause().detector;
      EXPECT_EQ(by % 2, 0U);
      expect_cancelled(world, by, "reason " + std::to_string(by));
      EXPECT_EQ(line, "allreduce failed: " + expected_line(by, "reason " + std::to_string(by)));
      auto again = or_throw(world.rejoin());
      // All agree.
      std::uint32_t least = by, most = by;
      expect_ok(again.allreduce(least, Op::kMin));
      expect_ok(again.allreduce(most, Op::kMax));
      EXPECT_EQ(least, most);
    });
  }
}

TEST(Cancel, LeavesRanksThatCanRejoin) {
  on_all_fabrics(4, [](Communicator& world, Meeting&) {
    // The first one to cancel may go on at once.
    if (world.rank() == 3) expect_ok(world.cancel("again"));
    if (world.rank() != 3) expect_cancelled(world, 3, "again");
    auto next = or_throw(world.rejoin());
    Vector data(1000, 1);
    expect_ok(next.allreduce(Out(data), Op::kSum));
    EXPECT_EQ(data, Vector(1000, 4));
    EXPECT_EQ(next.cause().status, Status::kOk);
  });
}

// A part has no links before its first collective.
TEST(Cancel, OfAPartEndsThePartAlone) {
  for (const bool is_used : {false, true}) {
    on_all_fabrics(6, [is_used](Communicator& world, Meeting& meeting) {
      auto part = *or_throw(world.split(world.rank() % 2));
      auto other = *or_throw(world.split(0));
      if (is_used) expect_ok(part.barrier());
      meeting.arrive_and_wait();
      const bool is_cancelled = world.rank() % 2 == 1;
      if (world.rank() == 5) expect_ok(part.cancel("half"));
      if (is_cancelled) {
        expect_cancelled(part, 2, "half");
      } else {
        expect_ok(part.barrier());
      }
      for (Communicator* each : {&other, &world}) {
        std::uint32_t one = 1;
        expect_ok(each->allreduce(one, Op::kSum));
        EXPECT_EQ(one, 6U);
      }
      auto again = *or_throw(world.split(world.rank() % 2));
      expect_ok(again.barrier());
      EXPECT_EQ(message_of(part.leave()),
                is_cancelled ? "the communicator failed before: " + expected_line(2, "half") : "");
      expect_ok(world.leave());
    });
  }
}

TEST(Cancel, OfTheWholeLeavesItsParts) {
  on_all_fabrics(4, [](Communicator& world, Meeting& meeting) {
    auto part = *or_throw(world.split(world.rank() / 2));
    meeting.arrive_and_wait();
    if (world.rank() == 0) expect_ok(world.cancel("whole"));
    expect_cancelled(world, 0, "whole");
    std::uint32_t one = 1;
    expect_ok(part.allreduce(one, Op::kSum));
    EXPECT_EQ(one, 2U);
    expect_ok(part.leave());
  });
}

// The ends of objects wait until the other ranks know the cause.
TEST(Cancel, ThenLeaveOrTheDestructor) {
  for (const bool leaves : {false, true}) {
    on_all_fabrics(4, [leaves](Communicator& world, Meeting& meeting) {
      auto part = *or_throw(world.split(0));
      meeting.arrive_and_wait();
      if (world.rank() == 2) {
        expect_ok(part.cancel("part"));
        expect_ok(world.cancel("whole"));
        if (!leaves) {
          const Communicator part_ends = std::move(part), world_ends = std::move(world);
          return;
        }
        (void)part.leave();
        EXPECT_EQ(message_of(world.leave()),
                  "the communicator failed before: " + expected_line(2, "whole"));
        return;
      }
      expect_cancelled(part, 2, "part");
      expect_cancelled(world, 2, "whole");
    });
  }
}

// A rank that waits in leave() for the others gets the cause of a rank that has not come.
TEST(Cancel, EndsLeave) {
  on_all_fabrics(3, [](Communicator& world, Meeting& meeting) {
    meeting.arrive_and_wait();
    if (world.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      expect_ok(world.cancel("stay"));
    }
    EXPECT_PRED2(contains, message_of(world.leave()), expected_line(1, "stay"));
  });
}

TEST(Cancel, ChangesNothingAfterAFailure) {
  on_all(
      3,
      [](Communicator& world) {
        std::uint32_t value = 1;
        (void)(world.rank() == 1 ? world.barrier() : world.allreduce(value, Op::kSum));
        const std::string line = message_of(world.barrier());
        EXPECT_PRED2(contains, line, "mismatch");
        expect_ok(world.cancel("late"));
        EXPECT_PRED2(contains, message_of(world.barrier()), "mismatch");
        EXPECT_EQ(world.cause().status, Status::kMismatch);
      },
      with_short_deadline);
}

TEST(Cancel, OfOneRankAlone) {
  auto alone = or_throw(join({.bootstrap = {.method = bootstrap::Method::kAlone}}));
  Vector data(10, 1);
  auto plan = or_throw(alone.plan(call::allreduce(Out(data), Op::kSum)));
  expect_ok(alone.barrier());
  expect_ok(alone.cancel("why"));
  expect_cancelled(alone, 0, "why");
  EXPECT_EQ(message_of(plan.start()), "allreduce failed: " + expected_line(0, "why"));
  EXPECT_EQ(message_of(alone.leave()),
            "the communicator failed before: " + expected_line(0, "why"));
  const std::string gone = "has left; expected one that join() or split() returned";
  EXPECT_PRED2(contains, message_of(alone.cancel("why")), gone);
  EXPECT_PRED2(contains, message_of(alone.cancel_on(nullptr)), gone);

  auto second = or_throw(join({.bootstrap = {.method = bootstrap::Method::kAlone}}));
  Flag flag = 0;
  expect_ok(second.cancel_on(&flag));
  expect_ok(second.barrier());
  flag = 1;
  expect_cancelled(second, 0, "");
  const Communicator moved = std::move(second);
  EXPECT_PRED2(contains, message_of(second.cancel("why")), gone);
}

TEST(Cancel, ReasonIsOneLine) {
  const auto line_of = [](std::string_view text) {
    communicator::FailureNote::Text line;
    communicator::take_line(text, line);
    return std::string(line.data());
  };
  EXPECT_EQ(line_of(""), "");
  EXPECT_EQ(line_of("a\nb\tc\x7f\x1b"), "a b c  ");
  EXPECT_EQ(line_of(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(line_of(std::string(1000, 'x')), std::string(119, 'x'));
  EXPECT_EQ(line_of(std::string(119, 'x')), std::string(119, 'x'));
  EXPECT_EQ(line_of("a\xff.\xc3"), "a\\xff.\\xc3");
  EXPECT_EQ(line_of("\U0001f600\xf4\x90\x80\x80"), "\U0001f600\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(line_of("\u200e"), "\\xe2\\x80\\x8e");
  // A character that has no room is left out as a whole.
  EXPECT_EQ(line_of(std::string(116, 'x') + "\xff"), std::string(116, 'x'));
  EXPECT_EQ(line_of(std::string(118, 'x') + "é"), std::string(118, 'x'));
  EXPECT_EQ(line_of(std::string(117, 'x') + "é"), std::string(117, 'x') + "é");
  EXPECT_EQ(line_of(std::string(117, 'x') + "€€"), std::string(117, 'x'));
  on_all_fabrics(8, [](Communicator& world, Meeting&) {
    const std::string reason(119, 'r');
    if (world.rank() == 6) expect_ok(world.cancel(reason + "more"));
    expect_cancelled(world, 6, reason);
  });
}

TEST(Cancel, InC) {
  Meeting meeting(2);
  on_all(2, [&meeting](Communicator& world) {
    const std::uint32_t rank = world.rank();
    espalier_comm* const comm = communicator::make_handle(std::move(world));
    volatile sig_atomic_t flag = 0;
    EXPECT_EQ(espalier_cancel_on(comm, &flag, "interrupted"), ESPALIER_OK);
    ASSERT_EQ(espalier_barrier(comm), ESPALIER_OK);
    meeting.arrive_and_wait();
    if (rank == 1) flag = 1;
    EXPECT_EQ(espalier_barrier(comm), ESPALIER_CANCELLED);
    EXPECT_STREQ(espalier_error(), "barrier failed: cancelled by rank 1: interrupted");
    EXPECT_EQ(espalier_cause_of(comm).status, ESPALIER_CANCELLED);
    EXPECT_EQ(espalier_cancel(comm, nullptr), ESPALIER_OK);
    EXPECT_EQ(espalier_cancel_on(comm, nullptr, nullptr), ESPALIER_OK);
    EXPECT_EQ(espalier_leave(comm), ESPALIER_CANCELLED);
    EXPECT_EQ(espalier_cancel(nullptr, "x"), ESPALIER_BAD_ARGUMENT);
    EXPECT_EQ(espalier_cancel_on(nullptr, &flag, "x"), ESPALIER_BAD_ARGUMENT);
  });
}

}  // namespace
}  // namespace espalier
