#include "communicator/record/diagnosis.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "communicator/record/agreements.h"
#include "communicator/record/call_word.h"
#include "espalier/base/status.h"

namespace espalier::record {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kNow = 1000 * kSecond;

std::uint64_t word_of(Collective collective, std::uint64_t count) {
  return communicator::call_word(
      {.collective = collective, .type = Type::kF32, .op = Op::kSum, .count = count});
}

// A job of `ranks` ranks that live, have joined, and are between call 12 and the next one.
JobView job_of(std::uint32_t ranks) {
  JobView job{.name = "0123456789ab", .size = ranks};
  for (std::uint32_t i = 0; i < ranks; ++i) {
    RankView rank;
    rank.view.heartbeat_ns = kNow;
    rank.view.heartbeat_wall = kNow;
    rank.view.process.rank = i;
    rank.view.process.size = ranks;
    rank.view.process.state = ProcessState::kJoined;
    rank.view.process.since_ns = kNow - 100 * kSecond;
    CommunicatorView world{.id = 7,
                           .rank = i,
                           .size = ranks,
                           .begun = 12,
                           .done = 12,
                           .changed_ns = kNow - 41 * kSecond};
    for (std::uint64_t call = 1; call <= 12; ++call) {
      world.calls.push_back({.number = call, .word = word_of(Collective::kAllreduce, 50)});
    }
    rank.view.communicators.push_back(world);
    job.ranks.push_back(rank);
  }
  return job;
}

CommunicatorView& world_of(JobView& job, std::uint32_t rank) {
  return job.ranks[rank].view.communicators.front();
}

// The rank begins its next call, and waits there for `peer`.
void let_wait(JobView& job, std::uint32_t rank, std::uint32_t peer, std::int64_t step,
              std::uint64_t seconds = 5) {
  CommunicatorView& world = world_of(job, rank);
  ++world.begun;
  world.calls.push_back({.number = world.begun, .word = word_of(Collective::kAllreduce, 50)});
  world.wait = Wait{.call = world.begun,
                    .call_since_ns = kNow - seconds * kSecond,
                    .since_ns = kNow - seconds * kSecond,
                    .noted_ns = kNow,
                    .step = step,
                    .steps = 8,
                    .peer = peer,
                    .peer_in_job = peer,
                    .is_sending = 0,
                    .is_for_peer = 1};
}

void let_fail(JobView& job, std::uint32_t rank, Status status, std::uint32_t detector,
              std::uint32_t peer) {
  CommunicatorView& world = world_of(job, rank);
  Failure failure{.call = world.begun, .at_ns = kNow - kSecond, .at_wall = kNow - kSecond};
  failure.status = static_cast<std::uint32_t>(status);
  failure.detector = failure.detector_in_job = detector;
  failure.peer = failure.peer_in_job = peer;
  std::snprintf(failure.text, sizeof failure.text, "allreduce failed: %s", status_name(status));
  world.failure = failure;
}

// Checks the first suspect.
void expect_first(const JobView& job, Suspicion kind, const std::vector<std::uint32_t>& ranks,
                  const std::string& text) {
  const Diagnosis found = diagnose(job);
  ASSERT_FALSE(found.suspects.empty());
  const Suspect& first = found.suspects.front();
  EXPECT_EQ(first.kind, kind) << first.text;
  EXPECT_EQ(first.ranks, ranks) << first.text;
  EXPECT_NE(first.text.find(text), std::string::npos) << first.text;
}

TEST(Diagnosis, SuspectsNoneInAJobThatMoves) {
  EXPECT_TRUE(diagnose(job_of(4)).suspects.empty());
  JobView job = job_of(4);
  let_wait(job, 0, 1, 0, 0);  // for less than a second
  EXPECT_TRUE(diagnose(job).suspects.empty());
}

TEST(Diagnosis, NamesARankThatNeverStarted) {
  JobView job = job_of(4);
  job.ranks.erase(job.ranks.begin() + 3);
  for (RankView& rank : job.ranks) {
    rank.view.process.state = ProcessState::kJoining;
    rank.view.communicators.clear();
  }
  expect_first(job, Suspicion::kNeverStarted, {3},
               "rank 3 never started: ranks 0, 1 and 2 wait in join(), for 100 s");
  // Who waits for the server gives no sign.
  for (RankView& rank : job.ranks) rank.quiet_s = 100;
  EXPECT_EQ(diagnose(job).suspects.size(), 1u);
  for (RankView& rank : job.ranks) {
    rank.quiet_s = 0;
    rank.view.process.since_ns = kNow;
  }
  EXPECT_TRUE(diagnose(job).suspects.empty());
}

TEST(Diagnosis, NamesAStoppedProcessBeforeThoseThatWaitForIt) {
  JobView job = job_of(3);
  for (const std::uint32_t rank : {0, 2}) let_wait(job, rank, 1, 0);
  job.ranks[1].life = Life::kStopped;
  job.ranks[1].quiet_s = 5;
  expect_first(job, Suspicion::kStopped, {1}, "is stopped, for 5.0 s");
  job.ranks[1].life = Life::kRuns;
  expect_first(job, Suspicion::kStopped, {1}, "does not run: no sign for 5.0 s");
  job.ranks[1].life = Life::kEnded;
  expect_first(job, Suspicion::kEnded, {1}, "has ended without leave()");
  job.has_ended = true;
  for (RankView& rank : job.ranks) rank.life = Life::kEnded;
  expect_first(job, Suspicion::kStopped, {1}, "was stopped, or ended, 5.0 s before");
}

TEST(Diagnosis, NamesTheRankThatComputesAtTheEndOfAChain) {
  JobView job = job_of(6);
  for (std::uint32_t rank = 0; rank < 5; ++rank) let_wait(job, rank, rank + 1, rank);
  expect_first(job, Suspicion::kComputing, {5}, "rank 5 is 1 call behind, computing for 41 s");
  world_of(job, 5).inside_ns = kNow - 3 * kSecond;
  expect_first(job, Suspicion::kWorking, {5}, "working inside a call for 3.0 s");
}

TEST(Diagnosis, CountsTheCallsBehind) {
  JobView job = job_of(3);
  world_of(job, 2).begun = world_of(job, 2).done = 10;
  world_of(job, 2).calls.resize(10);
  let_wait(job, 0, 2, 0);
  expect_first(job, Suspicion::kComputing, {2}, "rank 2 is 3 calls behind");
}

TEST(Diagnosis, NamesTheMinorityThatCalledSomethingElse) {
  JobView job = job_of(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) let_wait(job, rank, rank ^ 1, 0);
  world_of(job, 2).calls.back().word = word_of(Collective::kBroadcast, 50);
  expect_first(job, Suspicion::kDiverged, {2},
               "in call 13 of communicator 0, rank 2 called broadcast of 50 f32, root 0; ranks 0, "
               "1 and 3 called allreduce of 50 f32, sum");
  EXPECT_EQ(diagnose(job).divergence, diagnose(job).suspects.front().text);
}

TEST(Diagnosis, NamesBothOfTwoThatDiffer) {
  JobView job = job_of(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) let_wait(job, rank, rank ^ 1, 0);
  world_of(job, 1).calls.back().word = word_of(Collective::kAllreduce, 51);
  expect_first(job, Suspicion::kDiverged, {0, 1}, "called allreduce of 51 f32, sum");
}

// Old calls that differ, and are complete, were allowed to.
TEST(Diagnosis, LeavesCompleteCallsAlone) {
  JobView job = job_of(2);
  world_of(job, 1).calls.front().word = word_of(Collective::kBarrier, 0);
  EXPECT_TRUE(diagnose(job).suspects.empty());
}

TEST(Diagnosis, NamesTheCableBetweenTwoThatWaitForEachOther) {
  JobView job = job_of(4);
  let_wait(job, 1, 2, 3);
  let_wait(job, 2, 1, 3);
  let_wait(job, 0, 1, 5);
  expect_first(job, Suspicion::kCut, {1, 2}, "the link between ranks 1 and 2");
}

// A rank that came late waits, too: whether its messages pass is not known yet.
TEST(Diagnosis, AWaitThatHasJustBegunSaysNothing) {
  JobView job = job_of(2);
  let_wait(job, 0, 1, 0, 5);
  let_wait(job, 1, 0, 0, 0);
  EXPECT_TRUE(diagnose(job).suspects.empty());
  job = job_of(2);
  let_wait(job, 0, 1, 0, 5);
  world_of(job, 1).changed_ns = kNow - kSecond / 2;
  EXPECT_TRUE(diagnose(job).suspects.empty());
}

// In a ring only one direction carries data: the rank behind the cut is in the earliest step.
TEST(Diagnosis, NamesTheCableInACircle) {
  JobView job = job_of(4);
  const std::int64_t steps[] = {6, 3, 4, 5};
  for (std::uint32_t rank = 0; rank < 4; ++rank) let_wait(job, rank, (rank + 3) % 4, steps[rank]);
  expect_first(job, Suspicion::kCut, {0, 1}, "rank 1 waits in step 3 of 8 of call 13");
}

// The rank waits for `peer` in the first call of a communicator of its own with it.
void let_wait_apart(JobView& job, std::uint32_t rank, std::uint32_t peer) {
  CommunicatorView part{.id = 8, .number = 1, .size = 2, .begun = 0, .done = 0};
  if (peer < rank) part.rank = 1;
  auto& peers = job.ranks[peer].view.communicators;
  peers.push_back(part);
  peers.back().rank = 1 - part.rank;
  part.begun = 1;
  part.calls = {{.number = 1, .word = word_of(Collective::kAllreduce, 30)}};
  part.wait = Wait{.call = 1,
                   .call_since_ns = kNow - 3 * kSecond,
                   .since_ns = kNow - 3 * kSecond,
                   .noted_ns = kNow,
                   .steps = 2,
                   .peer = 1 - part.rank,
                   .peer_in_job = peer,
                   .is_for_peer = 1};
  job.ranks[rank].view.communicators.push_back(part);
}

TEST(Diagnosis, NamesTheRankThatUsesCommunicatorsInAnotherOrder) {
  JobView job = job_of(4);
  let_wait(job, 0, 2, 1);
  let_wait(job, 2, 1, 0);
  let_wait(job, 3, 0, 2);
  let_wait_apart(job, 1, 0);
  const std::string text =
      "rank 1 waits in call 1 of communicator 1 (allreduce of 30 f32, sum), and has not called "
      "call 13 of communicator 0 (allreduce of 50 f32, sum), in which ranks 0, 2 and 3 wait";
  expect_first(job, Suspicion::kDiverged, {1}, text);
  EXPECT_EQ(diagnose(job).suspects.size(), 1u);
  EXPECT_EQ(diagnose(job).divergence, text);
  job.has_ended = true;
  expect_first(job, Suspicion::kDiverged, {1}, text);
  // If there are two ranks, each may be wrong.
  job = job_of(2);
  let_wait(job, 0, 1, 0);
  let_wait_apart(job, 1, 0);
  expect_first(job, Suspicion::kDiverged, {0, 1}, "and has not called call 1");
  // Both have begun both calls: no message passes.
  job = job_of(2);
  let_wait(job, 0, 1, 0, 5);
  let_wait_apart(job, 1, 0);
  ++world_of(job, 1).begun;
  job.ranks[0].view.communicators.back().begun = 1;
  expect_first(job, Suspicion::kCut, {0, 1}, "both live");
}

TEST(Diagnosis, NamesTheCableToARankThatHasGoneOn) {
  JobView job = job_of(3);
  let_wait(job, 2, 0, 0);
  world_of(job, 0).begun = world_of(job, 0).done = 13;
  expect_first(job, Suspicion::kCut, {0, 2}, "rank 0 has completed that call");
}

TEST(Diagnosis, NamesARankWithoutARecord) {
  JobView job = job_of(3);
  for (const std::uint32_t rank : {0, 2}) let_wait(job, rank, 1, 0);
  job.ranks.erase(job.ranks.begin() + 1);
  expect_first(job, Suspicion::kNoRecord, {1}, "rank 1 has no record");
}

TEST(Diagnosis, TakesTheReasonOfAFailure) {
  JobView job = job_of(3);
  let_wait(job, 0, 1, 0);
  for (std::uint32_t rank = 0; rank < 3; ++rank) let_fail(job, rank, Status::kBadOperator, 1, 1);
  expect_first(job, Suspicion::kFailed, {1}, "bad operator");
  EXPECT_EQ(diagnose(job).cause, "allreduce failed: bad operator");
}

// A rank that was in no call knows only who found the failure.
TEST(Diagnosis, AMismatchWithoutAReasonAccusesNoRank) {
  JobView job = job_of(3);
  job.ranks.erase(job.ranks.begin() + 1, job.ranks.end());
  let_fail(job, 0, Status::kMismatch, 2, 0);
  world_of(job, 0).failure->text[0] = 0;
  EXPECT_TRUE(diagnose(job).suspects.empty());
  EXPECT_EQ(diagnose(job).cause, "mismatch, noted first by rank 2");
  job = job_of(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) let_fail(job, rank, Status::kMismatch, 2, 0);
  world_of(job, 0).failure->text[0] = 0;  // the first one
  expect_first(job, Suspicion::kDiverged, {0, 2}, "allreduce failed: mismatch");
  EXPECT_EQ(diagnose(job).cause, "allreduce failed: mismatch");
}

TEST(Diagnosis, ADeadLinkBetweenLivingRanksIsACable) {
  JobView job = job_of(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) let_fail(job, rank, Status::kDeadLink, 0, 2);
  expect_first(job, Suspicion::kCut, {0, 2}, "found dead, although both ranks lived");
  job.ranks.pop_back();
  expect_first(job, Suspicion::kNoRecord, {2}, "rank 2 was found dead, and has no record");
}

// The records of a job that ended: rank 1 gave its last sign `quiet_s` before the others, which
// found its link dead 1 s before their end.
JobView ended_job(double quiet_s) {
  JobView job = job_of(3);
  job.has_ended = true;
  for (const std::uint32_t rank : {0, 2}) let_fail(job, rank, Status::kDeadLink, 0, 1);
  for (RankView& rank : job.ranks) {
    rank.life = Life::kEnded;
    rank.view.process.deadline_ms = 2000;
  }
  job.ranks[1].quiet_s = quiet_s;
  job.ranks[1].view.heartbeat_wall -= static_cast<std::uint64_t>(quiet_s * 1e9);
  return job;
}

TEST(Diagnosis, TellsAKilledProcessFromAStoppedOneByTheRecords) {
  expect_first(ended_job(1.1), Suspicion::kEnded, {1}, "has ended without leave(), 1.1 s before");
  expect_first(ended_job(2.9), Suspicion::kStopped, {1}, "was stopped, or ended, 2.9 s before");
  for (const Sighted what : {Sighted::kStopped, Sighted::kEnded}) {
    JobView job = ended_job(2.9);
    job.ranks[2].view.process.sight = {kNow - 2 * kSecond, 1, what};
    job.ranks[0].view.process.sight = {kNow - kSecond, 1, Sighted::kEnded};
    expect_first(job, what == Sighted::kStopped ? Suspicion::kStopped : Suspicion::kEnded, {1},
                 what == Sighted::kStopped ? "was stopped, 2.9 s before the last sign of the "
                                             "others, as rank 2 saw"
                                           : "has ended without leave()");
  }
  JobView job = ended_job(0);
  job.ranks[1].view.process.end_wall = kNow;  // it left in order: no process was lost
  expect_first(job, Suspicion::kCut, {0, 1}, "although both ranks lived");
}

// Its last sign alone says little: the waits come first, unless they lead to it.
TEST(Diagnosis, ASilentRankIsTheCulpritOfAnEndedJobIfOthersWaitForIt) {
  JobView job = job_of(4);
  job.has_ended = true;
  job.ranks[3].quiet_s = 3.5;
  expect_first(job, Suspicion::kStopped, {3}, "was stopped, or ended, 3.5 s before");
  for (const std::uint32_t rank : {0, 2}) let_wait(job, rank, 1, 0);
  expect_first(job, Suspicion::kComputing, {1}, "computing for 41 s");
  let_wait(job, 1, 3, 0);
  expect_first(job, Suspicion::kStopped, {3}, "was stopped, or ended, 3.5 s before");
}

// Two nodes of a run in one process: another node saw one of them.
TEST(Diagnosis, AStoppedProcessIsAllItsNodes) {
  JobView job = ended_job(2.9);
  job.ranks[0].view.process.pid = 1;
  job.ranks[1].view.process.pid = job.ranks[2].view.process.pid = 2;
  for (const std::uint32_t rank : {1, 2}) {
    world_of(job, rank).failure.reset();
    job.ranks[rank].quiet_s = 2.9;
  }
  job.ranks[0].view.process.sight = {kNow - 2 * kSecond, 2, Sighted::kStopped};
  expect_first(job, Suspicion::kStopped, {1}, "rank 1 (process 2 on ) was stopped, 2.9 s before");
}

// The first ones are dead for the last ones.
TEST(Diagnosis, AJobThatIsKilledHasNoCulprit) {
  JobView job = ended_job(0.1);
  world_of(job, 2).failure.reset();
  world_of(job, 0).failure->at_wall = kNow - kSecond / 100;
  job.ranks[0].view.process.sight = {kNow - kSecond / 100, 1, Sighted::kEnded};
  const Diagnosis found = diagnose(job);
  ASSERT_EQ(found.suspects.size(), 1u);
  EXPECT_EQ(found.suspects.front().kind, Suspicion::kEnded);
  EXPECT_EQ(found.cause, "");
  // A rank that held the job up until then comes first.
  let_wait(job, 0, 2, 0);
  expect_first(job, Suspicion::kComputing, {2}, "rank 2 is 1 call behind, computing for 41 s");
}

TEST(Diagnosis, NamesTheMissingRankOfAFailedJoin) {
  JobView job = job_of(3);
  job.has_ended = true;
  job.ranks.erase(job.ranks.begin() + 1);
  for (RankView& rank : job.ranks) {
    rank.view.communicators.clear();
    rank.view.process.state = ProcessState::kJoinFailed;
    rank.view.process.joining_ns = kNow - 62 * kSecond;
    rank.view.process.since_ns = kNow - 2 * kSecond;
  }
  expect_first(job, Suspicion::kNeverStarted, {1},
               "rank 1 never started: join() failed on ranks 0 and 2 after 60 s");
  job.ranks[0].view.process.has_far_ranks = 1;
  expect_first(job, Suspicion::kNeverStarted, {1},
               "rank 1 never started, or on a host that was not asked (--host): join()");
}

// The rank waits for the others in accept() or rejoin().
void let_agree(JobView& job, std::uint32_t rank, AgreementKind kind, std::uint32_t newcomers = 0) {
  job.ranks[rank].view.process.agreement = {
      .communicator = 7, .since_ns = kNow - 12 * kSecond, .kind = kind, .newcomers = newcomers};
}

TEST(Diagnosis, NamesTheRankThatHasNotCalledAccept) {
  JobView job = job_of(3);
  for (const std::uint32_t rank : {0, 2}) let_agree(job, rank, AgreementKind::kAccept, 1);
  expect_first(job, Suspicion::kComputing, {1},
               "rank 1 has not called accept(): computing for 41 s");
  EXPECT_EQ(awaited_text(job, job.ranks[0]), "rank 1");
  EXPECT_EQ(absent_text(job, job.ranks[0], {1, 2, 5}),
            "rank 1 has not called accept(): computing for 41 s");
  EXPECT_EQ(absent_text(job, job.ranks[1], {0}), "");
  // It waits for them in a call: the program differs.
  let_wait(job, 1, 0, 0);
  expect_first(job, Suspicion::kDiverged, {1},
               "rank 1 has not called accept(): it waits in allreduce of 50 f32, sum, for 5.0 s");
  EXPECT_EQ(diagnose(job).suspects.size(), 1u);
  let_agree(job, 1, AgreementKind::kRejoin);
  EXPECT_EQ(diagnose(job).suspects.front().kind, Suspicion::kDiverged);
  EXPECT_EQ(diagnose(job).suspects.front().text,
            "rank 1 has not called accept(): it waits in rejoin(), for 12 s");
  job.ranks[1].life = Life::kStopped;
  expect_first(job, Suspicion::kStopped, {1}, "is stopped");
}

TEST(Diagnosis, NamesWhomAcceptAndRejoinAwait) {
  JobView job = job_of(3);
  for (const std::uint32_t rank : {0, 1, 2}) let_agree(job, rank, AgreementKind::kAccept, 2);
  expect_first(job, Suspicion::kNewcomers, {},
               "not all of 2 newcomers came: ranks 0, 1 and 2 wait in accept(), for 12 s");
  EXPECT_EQ(awaited_text(job, job.ranks[0]), "2 newcomers");
  job.ranks.pop_back();
  expect_first(job, Suspicion::kNoRecord, {2}, "rank 2 has no record: ended, or on a host");
  job = job_of(3);
  for (const std::uint32_t rank : {0, 1}) let_agree(job, rank, AgreementKind::kRejoin);
  job.ranks[2].life = Life::kEnded;  // rejoin() does not wait for it
  expect_first(job, Suspicion::kEnded, {2}, "has ended without leave()");
  EXPECT_EQ(awaited_text(job, job.ranks[0]), "");
  for (const std::uint32_t rank : {0, 1}) {
    job.ranks[rank].view.process.agreement.since_ns = kNow;
  }
  job.ranks[2].life = Life::kRuns;
  EXPECT_TRUE(diagnose(job).suspects.empty());
}

// A run of `espalier run` with three ranks and a router.
JobView run_of_four() {
  JobView job = job_of(4);
  job.schedule_ranks = 3;
  for (RankView& rank : job.ranks) rank.view.process.schedule_ranks = 3;
  return job;
}

TEST(Diagnosis, NamesRoutersOfARun) {
  JobView job = run_of_four();
  let_wait(job, 0, 3, 0);
  expect_first(job, Suspicion::kComputing, {3}, "router 3 is 1 call behind");
  job.ranks[3].life = Life::kStopped;
  expect_first(job, Suspicion::kStopped, {3}, "router 3 (process 0 on ) is stopped");
  EXPECT_EQ(ranks_text({1, 3}, 3), "rank 1 and router 3");
  EXPECT_EQ(ranks_text({1, 3}), "ranks 1 and 3");
}

TEST(Diagnosis, TakesTheReasonForWhichANodeEnded) {
  JobView job = run_of_four();
  let_wait(job, 0, 1, 0);
  std::snprintf(job.ranks[1].view.process.text, sizeof Process::text, "%s", "its board is gone");
  expect_first(job, Suspicion::kFailed, {1}, "rank 1 (process 0 on ) ended: its board is gone");
}

// What a board told before its cable was cut says nothing of what it waits for now.
TEST(Diagnosis, ABoardWithoutASignIsNotAskedForItsWait) {
  JobView job = run_of_four();
  std::snprintf(job.ranks[1].view.process.board, sizeof Process::board, "%s", "b at tty");
  let_wait(job, 0, 1, 0);
  let_wait(job, 1, 2, 0);
  job.ranks[1].quiet_s = 0.5;
  expect_first(job, Suspicion::kComputing, {2}, "rank 2 is 1 call behind");
  job.ranks[1].quiet_s = 1;
  EXPECT_TRUE(diagnose(job).suspects.empty() || diagnose(job).suspects.front().ranks[0] == 2);
  job.ranks[1].quiet_s = 2.5;
  expect_first(job, Suspicion::kStopped, {1},
               "rank 1 (board b at tty, gateway: process 0 on ) gives no sign, for 2.5 s");
}

// A communicator that failed, and that the job has replaced.
void add_past(JobView& job) {
  for (std::uint32_t rank = 0; rank < job.size; ++rank) let_wait(job, rank, (rank + 1) % 2, 1, 80);
  for (std::uint32_t rank = 0; rank < job.size; ++rank) {
    let_fail(job, rank, Status::kDeadLink, 0, 1);
    CommunicatorView next = job_of(job.size).ranks[rank].view.communicators.front();
    next.id = 8;
    world_of(job, rank).has_left = true;
    job.ranks[rank].view.communicators.insert(job.ranks[rank].view.communicators.begin(), next);
  }
}

TEST(Diagnosis, WhatAJobHasLeftIsNoCause) {
  JobView job = job_of(3);
  add_past(job);
  EXPECT_TRUE(diagnose(job).suspects.empty());
  EXPECT_EQ(diagnose(job).cause, "");
  for (const std::uint32_t rank : {0, 1}) let_wait(job, rank, 2, 0);
  expect_first(job, Suspicion::kComputing, {2}, "rank 2 is 1 call behind, computing for 41 s");
  job.ranks[2].life = Life::kEnded;
  expect_first(job, Suspicion::kEnded, {2}, "has ended without leave()");
  job.has_ended = true;
  EXPECT_EQ(diagnose(job).cause, "allreduce failed: dead link");
}

TEST(Diagnosis, ACancelHoldsNoRankUp) {
  JobView job = job_of(3);
  for (RankView& rank : job.ranks) {
    CommunicatorView part = rank.view.communicators.front();
    part.id = 9;
    part.number = 1;
    rank.view.communicators.push_back(part);
  }
  for (std::uint32_t rank = 0; rank < 3; ++rank) let_fail(job, rank, Status::kCancelled, 0, 0);
  for (RankView& rank : job.ranks) {
    rank.view.communicators.front().failure->text[0] = 0;  // no call was in progress
  }
  EXPECT_TRUE(diagnose(job).suspects.empty());
  job.ranks[1].life = Life::kEnded;
  expect_first(job, Suspicion::kEnded, {1}, "has ended without leave()");
  job.ranks[1].life = Life::kRuns;
  job.has_ended = true;
  expect_first(job, Suspicion::kFailed, {0}, "cancelled, noted first by rank 0");
}

// A rank may be far ahead: what it has forgotten is not walked through.
TEST(Diagnosis, ComparesCallsOfRanksThatAreFarApart) {
  JobView job = job_of(4);
  for (std::uint32_t rank = 1; rank < 4; ++rank) let_wait(job, rank, 0, 0);
  world_of(job, 3).calls.back().word = word_of(Collective::kBroadcast, 50);
  CommunicatorView& ahead = world_of(job, 0);
  ahead.begun = UINT64_MAX;
  ahead.done = ahead.begun - 1;
  ahead.calls = {{.number = UINT64_MAX, .word = word_of(Collective::kAllreduce, 50)}};
  expect_first(job, Suspicion::kDiverged, {3}, "in call 13 of communicator 0, rank 3 called");
}

TEST(Diagnosis, OneRankOfAHostSpeaks) {
  JobView job = job_of(3);
  let_wait(job, 1, 0, 0);
  let_wait(job, 2, 0, 0);
  EXPECT_FALSE(has_lower_waiter(job, 7, 1));
  EXPECT_TRUE(has_lower_waiter(job, 7, 2));
  EXPECT_FALSE(has_lower_waiter(job, 8, 2));
  job.ranks[1].life = Life::kStopped;
  EXPECT_FALSE(has_lower_waiter(job, 7, 2));
}

TEST(Diagnosis, SortsRanksIntoJobs) {
  const JobView whole = job_of(2);
  std::vector<RankView> ranks = whole.ranks;
  for (RankView& rank : ranks) {
    std::snprintf(rank.view.process.joining, sizeof rank.view.process.joining, "aa");
  }
  std::snprintf(ranks[1].view.process.job, sizeof ranks[1].view.process.job, "bb");
  ranks.push_back(ranks[0]);
  std::snprintf(ranks[2].view.process.joining, sizeof ranks[2].view.process.joining, "cc");
  const auto jobs = jobs_of(ranks);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].name, "bb");  // and the rank that still joins
  EXPECT_EQ(jobs[0].ranks.size(), 2u);
  EXPECT_EQ(jobs[1].name, "cc");
}

TEST(Diagnosis, WritesNumbersOfRanks) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1}), "ranks 0 and 1");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
  EXPECT_EQ(duration_text(1.25), "1.2 s");
  EXPECT_EQ(duration_text(41.4), "41 s");
}

}  // namespace
}  // namespace espalier::record
