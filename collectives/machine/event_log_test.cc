#include "espalier/internal/collectives/machine/event_log.h"

#include <gtest/gtest.h>

#include <array>

#include "collectives/machine/testing/chain_test.h"

namespace espalier::testing {
namespace {

class EventLogTest : public ChainTest {
 protected:
  void init_with(EventLog& log) {
    MachineConfig config;
    config.log = &log;
    ASSERT_EQ(machine.init(endpoint, config), Status::kOk);
  }
  std::array<Event, 16> events;
  std::array<EventTimes, 16> times;
};

// Four blocks: a receive, a send and a copy of each.
TEST_F(EventLogTest, HasEachMessageOnce) {
  EventLog log(events.data(), times.data(), 16);
  init_with(log);
  ASSERT_EQ(start(), Status::kOk);
  ASSERT_EQ(finish(), Status::kOk);
  ASSERT_EQ(log.count(), 12u);
  EXPECT_EQ(log.retired(), 12u);
  EXPECT_EQ(log.lost(), 0u);
  std::array<std::uint8_t, kEventBytes> bytes{};
  event_bytes(log.event(2), bytes.data());  // step 1: the second receive, link 0
  const std::array<std::uint8_t, kEventBytes> receive = {
      1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, ActionKind::kReceive, 0};
  EXPECT_EQ(bytes, receive);
  event_bytes(log.event(4), bytes.data());  // the copy after it
  const std::array<std::uint8_t, kEventBytes> copy = {
      1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 255, ActionKind::kCopy, 0};
  EXPECT_EQ(bytes, copy);
  EXPECT_EQ(log.event(2).port, 2);  // the endpoint's link to node 0
}

TEST_F(EventLogTest, BeginsAnewWithEachCollective) {
  EventLog log(events.data(), nullptr, 16);
  init_with(log);
  for (const std::uint64_t count : {64u, 32u}) {
    ASSERT_EQ(start(count), Status::kOk);
    ASSERT_EQ(finish(), Status::kOk);
    EXPECT_EQ(log.count(), count / 16 * 3);
  }
}

// A later record must not get the times of a dropped one: after a drop nothing is added.
TEST_F(EventLogTest, KeepsTheFirstAndCountsTheLost) {
  EventLog log(events.data(), times.data(), 5);
  init_with(log);
  ASSERT_EQ(start(), Status::kOk);
  ASSERT_EQ(finish(), Status::kOk);
  EXPECT_EQ(log.count(), 5u);
  EXPECT_EQ(log.lost(), 7u);
  EXPECT_EQ(log.retired(), 5u);
}

// Steps that did not retire are not reported as retired.
TEST_F(EventLogTest, TellsWhatHasRetired) {
  EventLog log(events.data(), times.data(), 16);
  init_with(log);
  ASSERT_EQ(start(), Status::kOk);
  EXPECT_EQ(machine.poll(), Status::kBusy);
  ASSERT_GT(log.count(), 0u);
  EXPECT_TRUE(log.event(0).begun);
  EXPECT_FALSE(log.event(0).done);
  EXPECT_EQ(log.retired(), 0u);
  ASSERT_TRUE(endpoint.complete(false, 2));
  for (int poll = 0; poll < 4; ++poll) EXPECT_EQ(machine.poll(), Status::kBusy);
  EXPECT_EQ(log.retired(), 2u);  // the receive and the copy of step 0
}

}  // namespace
}  // namespace espalier::testing
