// One machine ends with the right failure if its peers, their blocks or its endpoint misbehave.

#include "base/crc32.h"
#include "collectives/machine/testing/chain_test.h"

namespace espalier::testing {
namespace {

using AgreementTest = ChainTest;

TEST_F(AgreementTest, StallReportOutlastsTheFailure) {
  init();
  begin();
  endpoint.complete(false, 2, Status::kMismatch);
  (void)machine.poll();
  EXPECT_EQ(end_after(kD), Status::kMismatch);
  EXPECT_EQ(machine.cause().peer, 0u);
  EXPECT_EQ(machine.cause().detector, 1u);
  EXPECT_TRUE(machine.stall_report().waiting);
  EXPECT_EQ(endpoint.released, 1);
  EXPECT_EQ(start(), Status::kMismatch);
}

TEST_F(AgreementTest, ChecksumsAreSentAndChecked) {
  init(true);
  std::uint32_t sent = 0;
  for (std::size_t i = 0; i < sizeof output; ++i) output[i] = static_cast<std::uint8_t>(i);
  endpoint.on_post = [&](const ScriptedEndpoint::Post& post) {
    if (!post.send) return;
    EXPECT_EQ(post.check, crc32(0, post.bytes, post.size));
    ++sent;
  };
  endpoint.check_of = [&](const ScriptedEndpoint::Post& post) {
    return crc32(0, post.bytes, post.size) ^ (sent == 2 ? 1 : 0);
  };
  ASSERT_EQ(start(), Status::kOk);
  EXPECT_EQ(finish(), Status::kBusy);
  EXPECT_EQ(end_after(kD), Status::kCorrupt);
  EXPECT_EQ(machine.cause().peer, 0u);
}

TEST_F(AgreementTest, ChecksumsOfSeveralBlocksAreSpreadOverPolls) {
  init(true);
  program.actions[1].after = 0;  // every send of the window can be posted at once
  endpoint.check_of = [](const ScriptedEndpoint::Post& post) {
    return crc32(0, post.bytes, post.size);
  };
  std::uint32_t sent = 0, received = 0;
  endpoint.on_post = [&](const ScriptedEndpoint::Post& post) { sent += post.send ? 1 : 0; };
  const auto waiting = [&] {
    return std::count_if(endpoint.completions.begin(), endpoint.completions.end(),
                         [](const Completion& completion) {
                           return completion.kind == Completion::Kind::kReceived;
                         });
  };
  ASSERT_EQ(start(), Status::kOk);
  Status status = Status::kBusy;
  for (int polls = 0; polls < 100 && status == Status::kBusy; ++polls) {
    const auto before = waiting();
    const std::uint32_t sent_before = sent;
    status = machine.poll();
    EXPECT_LE(sent - sent_before, 1u);
    EXPECT_LE(before - waiting(), 1);
    if (before > 1 || machine.refused()) {
      EXPECT_EQ(machine.next_deadline(), 0u) << "a block waits";
    }
    if (!endpoint.completions.empty()) continue;
    while (endpoint.complete(false, 2)) ++received;
    while (endpoint.complete(true, 1)) {
    }
  }
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(received, 4u);
  EXPECT_EQ(sent, 4u);
}

TEST_F(AgreementTest, EarlyWordOfTheSameCollectiveIsFine) {
  init();
  std::vector<std::uint64_t> tags;
  endpoint.on_post = [&](const ScriptedEndpoint::Post& post) {
    if (!post.send) tags.push_back(post.tag);
  };
  run();
  ASSERT_EQ(tags.size(), 4u);
  endpoint.tell_early(2, tags[3]);  // reported late: its receive is complete already
  EXPECT_EQ(machine.poll(), Status::kOk);
  begin();
  ASSERT_EQ(tags.size(), 8u);
  endpoint.tell_early(2, tags[7] + 5);  // a window above ours
  EXPECT_EQ(machine.poll(), Status::kBusy);
  EXPECT_EQ(machine.cause().status, Status::kOk);
  // Then a receive must follow.
  EXPECT_EQ(finish(), Status::kBusy);
  EXPECT_EQ(machine.cause().status, Status::kNotInSchedule);
  EXPECT_EQ(end_after(kD), Status::kNotInSchedule);
}

TEST_F(AgreementTest, EarlyWordOfAnotherScheduleIsAMismatch) {
  init();
  begin();
  const std::uint64_t tag = endpoint.posts[0].tag;
  endpoint.tell_early(0, (tag & ~0xffffull << 32) ^ 0x1234'5678'9abcull);
  (void)machine.poll();
  expect_cause(Status::kMismatch, 5);
}

TEST_F(AgreementTest, EarlyWordToldBeforeTheStartIsJudgedThere) {
  init();
  endpoint.tell_early(0, (1ull << 48) | 4711);
  EXPECT_EQ(machine.poll(), Status::kOk);
  begin();
  expect_cause(Status::kMismatch, 5);
}

TEST_F(AgreementTest, WordOfAnEarlierCollectiveIsAMismatch) {
  init();
  begin();
  const std::uint64_t tag = endpoint.posts[0].tag;
  EXPECT_EQ(finish(), Status::kOk);
  ASSERT_EQ(start(), Status::kOk);
  endpoint.tell_early(0, tag);
  (void)machine.poll();
  EXPECT_EQ(machine.cause().status, Status::kMismatch);
}

TEST_F(AgreementTest, LateMismatchOfAnEagerSendCountsWhileIdle) {
  init();
  run();
  endpoint.completions.push_back(
      {.link = 1, .context = 3, .status = Status::kMismatch, .control = {}});
  EXPECT_EQ(machine.poll(), Status::kBusy);  // others may know a smaller cause
  EXPECT_EQ(end_after(kD), Status::kMismatch);
  EXPECT_EQ(machine.cause().peer, 2u);
}

TEST_F(AgreementTest, NonsenseFromTheEndpointIsNamed) {
  init();
  begin();
  Completion completion;
  completion.kind = Completion::Kind::kReceived;
  completion.link = 1;  // no post is outstanding there
  endpoint.completions.push_back(completion);
  (void)machine.poll();
  EXPECT_EQ(machine.cause().status, Status::kNotInSchedule);
}

}  // namespace
}  // namespace espalier::testing
