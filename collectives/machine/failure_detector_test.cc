#include "espalier/internal/collectives/machine/detail/failure_detector.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/machine/testing/scripted_endpoint.h"

namespace espalier {
namespace {

using testing::ScriptedEndpoint;

constexpr std::uint64_t kD = 8000;  // ns; D/8 is 1000

// A failure detector on three links.
class Watching : public ::testing::Test {
 protected:
  // Polls once at time `at` after the test's start, with the endpoint's completions.
  void poll_at(std::uint64_t time) {
    endpoint.time = begin + time * unit;
    Completion completion;
    while (endpoint.poll(completion)) detector.handle_control(completion.link, completion.control);
    detector.run(true);
  }
  void expect_cause(Status status, std::uint32_t peer) const {
    EXPECT_EQ(detector.cause().status, status);
    EXPECT_EQ(detector.cause().peer, peer);
  }

  ScriptedEndpoint endpoint{5, {7, 9, 11}};
  FailureDetector detector;
  std::uint64_t begin = 1'000'000'000, unit = 1;  // ns
};

class FailureDetectorTest : public Watching {
 protected:
  FailureDetectorTest() { detector.init(endpoint, kD); }

  // Polls whenever the failure detector asks for it, until time `at`.
  void wait_until(std::uint64_t time) {
    while (!detector.ended() && detector.next_deadline() <= begin + time) {
      const std::uint64_t next =
          detector.next_deadline() - std::min(detector.next_deadline(), begin);
      poll_at(std::max(next, endpoint.time - begin));
    }
    if (!detector.ended()) poll_at(time);
  }
  [[nodiscard]] std::size_t sent(ControlKind kind, std::uint32_t link) const {
    std::size_t count = 0;
    for (const auto& control : endpoint.controls) {
      count += control.link == link && control.control.kind == kind;
    }
    return count;
  }
  void await(std::uint32_t link) {
    detector.await(link);
    detector.run(true);
  }
  void answer(std::uint32_t link) {
    Control control;
    control.kind = ControlKind::kAnswer;
    endpoint.tell(link, control);
  }
  void hear(std::uint32_t link, Cause cause) {
    endpoint.tell(link, {.kind = ControlKind::kCause, .cause = cause});
  }
};

TEST_F(FailureDetectorTest, NothingAwaitedNothingDue) {
  poll_at(0);
  EXPECT_EQ(detector.next_deadline(), FailureDetector::kNoDeadline);
  poll_at(100 * kD);
  EXPECT_FALSE(detector.failed());
  EXPECT_TRUE(endpoint.controls.empty());
}

TEST_F(FailureDetectorTest, ProbesAfterHalfThenEveryEighthAndDeadAtD) {
  poll_at(0);
  await(1);
  EXPECT_EQ(detector.next_deadline(), begin + kD / 2);
  wait_until(kD / 2 - 1);
  EXPECT_EQ(sent(ControlKind::kProbe, 1), 0u);
  wait_until(kD / 2);
  EXPECT_EQ(sent(ControlKind::kProbe, 1), 1u);
  wait_until(kD - 1);
  EXPECT_EQ(sent(ControlKind::kProbe, 1), 4u);
  EXPECT_EQ(sent(ControlKind::kProbe, 0), 0u);
  EXPECT_FALSE(detector.failed());
  wait_until(kD);
  EXPECT_TRUE(detector.failed());
  EXPECT_FALSE(detector.ended());
  EXPECT_EQ(detector.cause().status, Status::kDeadLink);
  EXPECT_EQ(detector.cause().detector, 5u);
  EXPECT_EQ(detector.cause().peer, 9u);
  for (std::uint32_t link = 0; link < 3; ++link) EXPECT_EQ(sent(ControlKind::kCause, link), 1u);
  EXPECT_EQ(endpoint.released, 0);
  wait_until(kD + kD / 4);
  EXPECT_TRUE(detector.ended());
  EXPECT_EQ(endpoint.released, 1);
}

TEST_F(FailureDetectorTest, ItsOwnerUsesTheEndpointOnceBeforeTheRelease) {
  struct Owner {
    const ScriptedEndpoint& endpoint;
    const FailureDetector& detector;
    int calls = 0;
  } owner{endpoint, detector};
  detector.call_before_release(
      [](void* context) {
        auto& self = *static_cast<Owner*>(context);
        ++self.calls;
        EXPECT_EQ(self.endpoint.released, 0);
        EXPECT_FALSE(self.detector.ended());
        EXPECT_EQ(self.detector.cause().status, Status::kBadOperator);
      },
      &owner);
  poll_at(0);
  detector.fail(Status::kBadOperator, 5);
  wait_until(kD / 4 - 1);
  EXPECT_EQ(owner.calls, 0);
  wait_until(kD / 4);
  EXPECT_EQ(owner.calls, 1);
  EXPECT_EQ(endpoint.released, 1);
  poll_at(kD);
  EXPECT_EQ(owner.calls, 1);
}

TEST_F(FailureDetectorTest, AnAnsweringLinkIsNeverDeadButTheStallEndsAt2D) {
  poll_at(0);
  await(0);
  for (std::uint64_t time = 0; time < 7 * kD / 4; time += kD / 16) {
    answer(0);
    poll_at(time);
    ASSERT_FALSE(detector.failed()) << time;
  }
  answer(0);
  poll_at(7 * kD / 4);
  expect_cause(Status::kStalled, 7);
  poll_at(2 * kD - 1);
  EXPECT_FALSE(detector.ended());
  poll_at(2 * kD);
  EXPECT_TRUE(detector.ended());
}

TEST_F(FailureDetectorTest, SilentHalfADAfterItsLastWord) {
  poll_at(0);
  await(0);
  wait_until(kD - 1);
  answer(0);
  poll_at(kD - 1);
  wait_until(kD - 1 + kD / 2 - 1);
  EXPECT_FALSE(detector.failed());
  wait_until(kD - 1 + kD / 2);
  EXPECT_EQ(detector.cause().status, Status::kDeadLink);
}

TEST_F(FailureDetectorTest, WhatArrivesBeginsTheWaitAnew) {
  poll_at(0);
  await(0);
  for (std::uint64_t time = 0; time < 10 * kD; time += kD / 4) {
    poll_at(time);
    detector.note_arrival(0, true);
  }
  EXPECT_TRUE(endpoint.controls.empty());
  detector.note_arrival(0, false);
  wait_until(20 * kD);
  EXPECT_FALSE(detector.failed());
  EXPECT_TRUE(endpoint.controls.empty());
}

TEST_F(FailureDetectorTest, BrokenLinkIsProbedAtOnceAndDeadAfterHalf) {
  poll_at(0);
  await(2);
  wait_until(kD / 8);
  detector.note_link_down(2);
  poll_at(kD / 8);
  EXPECT_EQ(sent(ControlKind::kProbe, 2), 1u);
  wait_until(kD / 8 + kD / 2 - 1);
  EXPECT_FALSE(detector.failed());
  wait_until(kD / 8 + kD / 2);
  expect_cause(Status::kDeadLink, 11);
}

TEST_F(FailureDetectorTest, ALinkWithoutACarrierIsDeadAtOnceIfItIsAwaited) {
  poll_at(0);
  await(2);
  wait_until(kD / 8);
  detector.note_link_dead(2);
  detector.note_link_down(2);
  poll_at(kD / 8);
  expect_cause(Status::kDeadLink, 11);
}

TEST_F(FailureDetectorTest, ALinkThatLostItsCarrierIsDeadOnceItIsAwaited) {
  poll_at(0);
  detector.note_link_dead(2);
  detector.note_link_down(2);
  wait_until(10 * kD);
  EXPECT_FALSE(detector.failed());
  await(2);
  poll_at(10 * kD);
  poll_at(10 * kD + 1);
  expect_cause(Status::kDeadLink, 11);
}

TEST_F(FailureDetectorTest, BrokenWhileIdleHarmsOnlyWhoAwaitsIt) {
  poll_at(0);
  detector.note_link_down(2);
  wait_until(10 * kD);
  EXPECT_FALSE(detector.failed());
  await(2);
  wait_until(10 * kD + kD / 2);
  EXPECT_EQ(detector.cause().status, Status::kDeadLink);
}

TEST_F(FailureDetectorTest, OversleepingBlamesNobody) {
  poll_at(0);
  await(0);
  wait_until(kD / 2);
  // Stopped for long. The peer's reply has not arrived at the first polls afterwards.
  poll_at(50 * kD);
  poll_at(50 * kD + 1);
  EXPECT_FALSE(detector.failed());
  EXPECT_GE(sent(ControlKind::kProbe, 0), 2u);
  answer(0);
  poll_at(50 * kD + kD / 8);
  wait_until(50 * kD + kD / 2);
  EXPECT_FALSE(detector.failed());
  // A peer that is silent from then on is detected.
  wait_until(52 * kD);
  EXPECT_EQ(detector.cause().status, Status::kDeadLink);
}

// A node that pauses again and again listens long enough to find its only neighbour dead before
// the others find that nothing moves.
TEST_F(FailureDetectorTest, ANodeThatPausesOftenFindsTheDead) {
  poll_at(0);
  await(0);
  std::uint64_t time = 0;
  while (!detector.failed() && time < 10 * kD) {
    for (int i = 0; i < 4; ++i) poll_at(time += kD / 16);
    poll_at(time += 5 * kD / 16);
  }
  expect_cause(Status::kDeadLink, 7);
  EXPECT_LE(time, 7 * kD / 4);
}

TEST_F(FailureDetectorTest, UnreadCompletionsPutDeathOff) {
  poll_at(0);
  await(0);
  wait_until(kD - 1);
  endpoint.time = begin + kD;
  detector.run(false);
  EXPECT_FALSE(detector.failed());
  EXPECT_LE(detector.next_deadline(), begin + kD);
  detector.run(true);
  EXPECT_TRUE(detector.failed());
}

TEST_F(FailureDetectorTest, ProbesAreAnsweredAlsoIdleAndAfterTheEnd) {
  Control probe;
  probe.number = 42;
  endpoint.tell(1, probe);
  poll_at(0);
  ASSERT_EQ(sent(ControlKind::kAnswer, 1), 1u);
  EXPECT_EQ(endpoint.controls.back().control.number, 42u);
  EXPECT_EQ(sent(ControlKind::kCause, 1), 0u);
  detector.fail(Status::kMismatch, 7);
  wait_until(kD);
  ASSERT_TRUE(detector.ended());
  endpoint.controls.clear();
  endpoint.tell(1, probe);
  poll_at(2 * kD);
  EXPECT_EQ(sent(ControlKind::kAnswer, 1), 1u);
  EXPECT_EQ(sent(ControlKind::kCause, 1), 1u);  // a peer that probes must learn it
}

TEST_F(FailureDetectorTest, TakesTheSmallestCauseWithinAQuarterAndPassesItOn) {
  poll_at(0);
  hear(0, {Status::kDeadLink, 6, 3});
  poll_at(10);
  EXPECT_EQ(detector.cause().detector, 6u);
  EXPECT_EQ(sent(ControlKind::kCause, 2), 1u);
  hear(1, {Status::kDeadLink, 6, 4});  // larger
  poll_at(20);
  EXPECT_EQ(detector.cause().peer, 3u);
  EXPECT_EQ(sent(ControlKind::kCause, 2), 1u);
  hear(1, {Status::kMismatch, 2, 8});  // smaller
  poll_at(10 + kD / 4 - 1);
  EXPECT_EQ(detector.cause().detector, 2u);
  EXPECT_EQ(detector.cause().status, Status::kMismatch);
  EXPECT_EQ(sent(ControlKind::kCause, 2), 2u);
  EXPECT_FALSE(detector.ended());
  poll_at(10 + kD / 4);
  EXPECT_TRUE(detector.ended());
  hear(1, {Status::kDeadLink, 0, 1});  // too late
  poll_at(kD);
  EXPECT_EQ(detector.cause().detector, 2u);
  EXPECT_EQ(endpoint.released, 1);
}

TEST_F(FailureDetectorTest, TakesNoCauseThatIsNoFailure) {
  poll_at(0);
  for (unsigned status = 0; status < 256; ++status) {
    const auto code = static_cast<Status>(status);
    const bool fails = code > Status::kTryAgain && std::string(status_name(code)) != "unknown";
    EXPECT_EQ(is_failure(code), fails) << status;
    if (fails) continue;
    hear(0, {code, 0, 0});
    poll_at(status);
    EXPECT_EQ(detector.cause().status, Status::kOk) << status;
  }
  hear(0, {Status::kCorrupt, 6, 3});
  poll_at(kD / 8);
  EXPECT_EQ(detector.cause().status, Status::kCorrupt);
}

TEST_F(FailureDetectorTest, OwnFindingDoesNotReplaceWhatWasHeard) {
  poll_at(0);
  hear(0, {Status::kDeadLink, 8, 3});
  poll_at(1);
  detector.fail(Status::kDeadLink, 7);
  EXPECT_EQ(detector.cause().detector, 8u);
}

TEST_F(FailureDetectorTest, ControlsWithoutRoomAreTriedAgain) {
  bool full = true;
  endpoint.refuse = [&full] { return full; };
  poll_at(0);
  detector.fail(Status::kMismatch, 7);
  poll_at(1);
  EXPECT_TRUE(endpoint.controls.empty());
  EXPECT_LT(detector.next_deadline(), begin + kD + 100'000);
  full = false;
  poll_at(2);
  for (std::uint32_t link = 0; link < 3; ++link) EXPECT_EQ(sent(ControlKind::kCause, link), 1u);
}

#ifdef ESPALIER_HOT_ASSERTIONS
using FailureDetectorDeathTest = FailureDetectorTest;

TEST_F(FailureDetectorDeathTest, OnlyLinksHavePeers) {
  const std::uint32_t links = detector.links();
  EXPECT_EQ(detector.peer(links - 1), endpoint.peer(links - 1));
  EXPECT_DEATH((void)detector.peer(links), "expected link < links_count_");
}
#endif

// Peers whose programs compute. A reply counts in units of 2^16 ns.
class ProgramsTest : public Watching {
 protected:
  static constexpr std::uint64_t kUnit = 1 << 16, kDeadline = 64 * kUnit;

  ProgramsTest() {
    endpoint.time = begin;
    unit = kUnit;
    detector.init(endpoint, kDeadline);
    detector.wait_for_programs([](void* context) { return *static_cast<std::uint64_t*>(context); },
                               &quiet_ns);
  }
  void tell(std::uint32_t link, ControlKind kind, std::uint32_t number) {
    endpoint.tell(link, {kind, number, {}});
  }
  // The numbers of the replies on the link.
  [[nodiscard]] std::vector<std::uint32_t> replies(std::uint32_t link) const {
    std::vector<std::uint32_t> numbers;
    for (const auto& [to, control] : endpoint.controls) {
      if (to == link && control.kind == ControlKind::kAnswer) numbers.push_back(control.number);
    }
    return numbers;
  }

  std::uint64_t quiet_ns = 0;
};

TEST_F(ProgramsTest, AReplySaysForHowLongNothingMoved) {
  poll_at(0);
  tell(0, ControlKind::kProbe, 3);
  poll_at(1);
  quiet_ns = 5 * kUnit;
  tell(0, ControlKind::kProbe, 3);
  poll_at(2);
  detector.await(1);
  poll_at(3);
  tell(0, ControlKind::kProbe, 3);
  poll_at(10);
  EXPECT_EQ(replies(0), (std::vector<std::uint32_t>{0, 5, 7}));
}

TEST_F(ProgramsTest, AProgramThatRunsIsAwaitedForAnyTime) {
  poll_at(0);
  detector.await(1);
  for (std::uint64_t time = 0; time < 100 * 64; time += 4) {
    tell(1, ControlKind::kAnswer, 0);
    poll_at(time);
    ASSERT_FALSE(detector.failed()) << time;
  }
}

TEST_F(ProgramsTest, PeersThatOnlyWaitAreStalled) {
  poll_at(0);
  detector.await(1);
  for (std::uint32_t time = 0; time < 7 * 64 / 4; time += 4) {
    tell(1, ControlKind::kAnswer, time);
    poll_at(time);
    ASSERT_FALSE(detector.failed()) << time;
  }
  tell(1, ControlKind::kAnswer, 7 * 64 / 4);
  poll_at(7 * 64 / 4);
  EXPECT_EQ(detector.cause().status, Status::kStalled);
}

// What is new goes on at once to the peer that has probed, and not again when it comes round.
TEST_F(ProgramsTest, NewsGoesOnAtOnce) {
  poll_at(0);
  detector.await(1);
  poll_at(0);
  tell(0, ControlKind::kProbe, 3);
  poll_at(40);
  tell(1, ControlKind::kAnswer, 0);
  poll_at(41);
  tell(1, ControlKind::kAnswer, 0);
  poll_at(42);
  EXPECT_EQ(replies(0), (std::vector<std::uint32_t>{40, 0}));
  EXPECT_TRUE(replies(2).empty());
}

// Node 5 of 8, with links to the nodes that are 1, 2 and 4 below it.
class FailureDetectorEarlyEnd : public ::testing::Test {
 protected:
  FailureDetectorEarlyEnd() {
    detector.init(endpoint, kD);
    detector.end_early(
        nullptr, [](void* linked) { return *static_cast<bool*>(linked); }, 8, false, &is_linked);
  }
  // The node at the other end of `link` says how many nodes know its cause.
  void tell(std::uint32_t link, const Cause& cause, std::uint32_t informed) {
    Control control;
    control.kind = ControlKind::kCause;
    control.cause = cause;
    control.number = informed;
    detector.handle_control(link, control);
    detector.run(true);
  }
  // What this node said last on all links.
  [[nodiscard]] std::uint32_t said() const { return endpoint.controls.back().control.number; }

  ScriptedEndpoint endpoint{5, {4, 3, 1}};
  FailureDetector detector;
  bool is_linked = true;
  static constexpr Cause kOwn = {Status::kCancelled, 5, 5};
};

TEST_F(FailureDetectorEarlyEnd, ComesOnceAllNodesKnow) {
  detector.fail(Status::kCancelled, 5);
  detector.run(true);
  EXPECT_EQ(said(), 1u);
  tell(0, kOwn, 2);  // nodes 3 and 4
  EXPECT_EQ(said(), 3u);
  tell(1, kOwn, 2);  // nodes 2 and 3
  EXPECT_EQ(said(), 4u);
  EXPECT_FALSE(detector.ended());
  tell(2, kOwn, 4);  // nodes 6, 7, 0 and 1
  EXPECT_EQ(said(), 8u);
  EXPECT_TRUE(detector.ended());
  EXPECT_EQ(endpoint.released, 1);
}

// Links lead anywhere: node 5 does not know who is behind its peers.
TEST_F(FailureDetectorEarlyEnd, CountsByNameInAGraph) {
  detector.end_early(
      nullptr, [](void*) { return true; }, 8, true, nullptr);
  detector.fail(Status::kCancelled, 5);
  detector.run(true);
  EXPECT_EQ(said(), 0x20u);
  tell(0, kOwn, 0x13);  // nodes 0, 1 and 4
  EXPECT_EQ(said(), 0x33u);
  tell(1, kOwn, 0x02);  // known already
  tell(2, kOwn, 0xc6);
  EXPECT_EQ(said(), 0xf7u);
  EXPECT_FALSE(detector.ended());
  tell(1, kOwn, 0x08);
  EXPECT_EQ(said(), 0xffu);
  EXPECT_TRUE(detector.ended());
}

TEST_F(FailureDetectorEarlyEnd, LeavesNoNodeOut) {
  detector.fail(Status::kCancelled, 5);
  detector.run(true);
  tell(2, kOwn, 4);  // nodes 2, 3 and 4 may not know
  EXPECT_EQ(said(), 1u);
  EXPECT_FALSE(detector.ended());
  tell(1, kOwn, 1);  // node 4 may not
  EXPECT_EQ(said(), 1u);
  tell(0, kOwn, 8);  // node 4 knows that all do
  EXPECT_TRUE(detector.ended());
}

TEST_F(FailureDetectorEarlyEnd, CountsAnewForASmallerCause) {
  detector.fail(Status::kCancelled, 5);
  detector.run(true);
  tell(0, kOwn, 4);
  EXPECT_EQ(said(), 5u);
  const Cause smaller = {Status::kCancelled, 2, 2};
  tell(1, smaller, 1);
  EXPECT_EQ(said(), 1u);
  tell(0, kOwn, 8);  // of the cause that was replaced
  EXPECT_FALSE(detector.ended());
  EXPECT_EQ(detector.cause().detector, 2u);
  tell(0, smaller, 8);
  EXPECT_TRUE(detector.ended());
}

// The others do not count a node that has not all its links yet.
TEST_F(FailureDetectorEarlyEnd, WaitsForTheLinks) {
  is_linked = false;
  detector.fail(Status::kCancelled, 5);
  detector.run(true);
  EXPECT_EQ(said(), 0u);
  tell(0, kOwn, 7);
  EXPECT_EQ(said(), 0u);
  EXPECT_FALSE(detector.ended());
  is_linked = true;
  detector.run(true);
  EXPECT_EQ(said(), 8u);
  EXPECT_TRUE(detector.ended());
}

TEST_F(FailureDetectorEarlyEnd, IsOfEachCause) {
  const Cause own = {Status::kMismatch, 5, 4};
  detector.fail(Status::kMismatch, 4);
  detector.run(true);
  tell(0, {Status::kMismatch, 6, 4}, 8);  // another one, which is larger
  EXPECT_FALSE(detector.ended());
  tell(0, own, 8);
  EXPECT_TRUE(detector.ended());
  EXPECT_EQ(detector.cause().detector, 5u);
}

}  // namespace
}  // namespace espalier
