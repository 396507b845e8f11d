// The storm itself: plans and their texts, what the judge must refuse, and shorter plans.

#include <gtest/gtest.h>

#include <sstream>

#include "base/testing/results.h"
#include "tests/storm/draw.h"
#include "tests/storm/promises.h"
#include "tests/storm/trial.h"

namespace espalier::storm {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Plan plan_of(const std::string& text) { return or_throw(parse_plan(words_of(text))); }

TEST(Plan, TextsAreReadBack) {
  constexpr Over kAll[] = {Over::kNetwork, Over::kFrames, Over::kTcp, Over::kMem, Over::kMixed};
  Schedules schedules;
  std::size_t faults = 0;
  for (std::uint64_t seed = 0; seed < 30 * kSeedsPerSchedule; seed += 7) {
    const Plan plan = draw_plan(seed, schedules.drawn(seed), kAll[seed % std::size(kAll)]);
    // A topology's text has spaces, which the shell takes together.
    if (plan.schedule.topology.find(' ') != std::string::npos) continue;
    const std::string text = plan_text(plan);
    EXPECT_EQ(plan_text(plan_of(text)), text);
    faults += plan.faults.size();
  }
  EXPECT_GT(faults, 100u);
}

TEST(Plan, ReportsErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {"algorithm", "\"algorithm\" is not a fault; expected one such as kill:node=3,at=1000"},
      {"root=x", "\"root=x\": not a value of root"},
      {"op=sums", "\"op=sums\": not a value of op"},
      {"kill:node=1,ns=3", "\"kill:node=1,ns=3\": kill takes node at operation"},
      {"kill:node=", "\"kill:node=\": node is not a whole number in its range"},
      {"kill:node=1024", "\"kill:node=1024\": node is not a whole number in its range"},
      {"over=udp", "\"over=udp\": not a value of over"},
      {"mtu=512", "\"mtu\" has no effect over network"},
      {"key=1", "\"key\" has no effect over network"},
      {"over=frames jitter=3", "\"jitter\" has no effect over frames"},
      {"over=bytes eager=64", "\"eager\" has no effect over bytes"},
      {"over=frames mtu=111", "mtu: expected at least 112"},
      {"over=frames endpoint-window=17", "endpoint-window: expected at most 16 over frames"},
      {"restart:node=1,at=5,ns=5", "there is no restart over network"},
      {"over=tcp duplicate:node=1,peer=0,message=5", "there is no duplicate over tcp"},
  };
  for (const auto& [text, expected] : cases) {
    const auto plan = parse_plan(words_of(text));
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().message, expected);
  }
}

TEST(Plan, FaultsOfOtherNodesAreRefused) {
  Schedules schedules;
  std::string error;
  const auto refused = [&](const std::string& text) {
    const Plan plan = plan_of("topology=complete:4 " + text);
    const Schedule* schedule = schedules.made(plan.schedule, error);
    const auto checked = check_faults(plan, *schedule);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refused("kill:node=3,at=5"), "");
  EXPECT_EQ(refused("kill:node=4,at=5"), "kill: there is no node 4; expected 0 to 3");
  EXPECT_EQ(refused("one-way:node=0,peer=9,at=5"), "one-way: there is no node 9; expected 0 to 3");
  EXPECT_EQ(refused("drop:node=0,peer=2,message=0"), "drop: node 0 has no link to node 2");
}

// ---- the judge ----

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() : schedule_(or_throw(make_schedule(ScheduleSpec{.topology = "complete:4"}))) {
    facts_.nodes.resize(4);
    for (NodeFacts& node : facts_.nodes) {
      node.ended = true;
      node.rounds = 1;
    }
    plan_.schedule = schedule_.spec;
  }
  void add(const std::string& fault, std::uint64_t at_ns = 0) {
    const Plan plan = plan_of(fault);
    plan_.over = plan.over;
    plan_.faults.push_back(plan.faults[0]);
    facts_.struck.push_back(true);
    facts_.struck_ns.push_back(at_ns);
  }
  void end(std::uint32_t node, Status status, std::uint32_t detector, std::uint32_t peer) {
    facts_.nodes[node].status = status;
    facts_.nodes[node].cause = {status, detector, peer};
    facts_.nodes[node].rounds = 0;
  }
  void end_all(Status status, std::uint32_t detector, std::uint32_t peer) {
    for (std::uint32_t node = 0; node < 4; ++node) end(node, status, detector, peer);
  }
  // Nodes 3 and 1 detect a failure each. The others end D/4 after the first one was detected.
  void find_two_a_quarter_apart() {
    add("drop:node=0,peer=1,message=0");
    add("drop:node=2,peer=3,message=0");
    end_all(Status::kMismatch, 3, 2);
    end(0, Status::kMismatch, 1, 0);
    facts_.nodes[3].found_ns = 20'000'000;
    facts_.nodes[1].found_ns = 24'900'000;
    for (NodeFacts& node : facts_.nodes) node.ended_ns = 25'000'000;
  }
  std::string verdict() { return broken_promise(plan_, schedule_, facts_).kind; }

  Schedule schedule_;
  Plan plan_;
  Facts facts_;
};

TEST_F(JudgeTest, AcceptsARightResult) { EXPECT_EQ(verdict(), ""); }

TEST_F(JudgeTest, RefusesAWrongResult) {
  facts_.nodes[2].wrong = "a byte outside its buffers";
  EXPECT_EQ(verdict(), "result");
}

TEST_F(JudgeTest, RefusesAHang) {
  facts_.nodes[2].ended = false;
  EXPECT_EQ(verdict(), "hang");
  facts_.nodes[2].ended = true;
  facts_.nodes[2].rounds = 0;
  EXPECT_EQ(verdict(), "hang");
}

TEST_F(JudgeTest, RefusesAFailureWithoutAReason) {
  end_all(Status::kDeadLink, 0, 1);
  EXPECT_EQ(verdict(), "failure");
  add("pause:node=1,ns=5000000");  // D/4
  EXPECT_EQ(verdict(), "failure");
  plan_.faults[0].ns = 10'000'000;
  EXPECT_EQ(verdict(), "");
}

TEST_F(JudgeTest, RefusesTheWrongCulprit) {
  add("kill:node=1,at=0");
  facts_.nodes[1].alive = false;
  end_all(Status::kDeadLink, 0, 1);
  EXPECT_EQ(verdict(), "");
  end_all(Status::kDeadLink, 2, 3);
  EXPECT_EQ(verdict(), "culprit");
  end_all(Status::kDeadLink, 1, 0);  // the dead node is no detector
  EXPECT_EQ(verdict(), "culprit");
  end_all(Status::kStalled, 0, 1);
  EXPECT_EQ(verdict(), "culprit");
}

TEST_F(JudgeTest, RefusesAnotherLinkThanTheMessages) {
  add("drop:node=1,peer=2,message=0");
  end_all(Status::kMismatch, 2, 1);
  EXPECT_EQ(verdict(), "");
  end_all(Status::kMismatch, 2, 3);
  EXPECT_EQ(verdict(), "culprit");
  end_all(Status::kCorrupt, 2, 1);
  EXPECT_EQ(verdict(), "culprit");
}

TEST_F(JudgeTest, RefusesALostMessageThatNobodyMisses) {
  add("drop:node=1,peer=2,message=0");
  EXPECT_EQ(verdict(), "unseen");
  add("duplicate:node=1,peer=0,message=0");
  EXPECT_EQ(verdict(), "unseen");
  add("duplicate:node=1,peer=2,message=0");  // the copy takes its place
  EXPECT_EQ(verdict(), "");
}

TEST_F(JudgeTest, RefusesTwoCauses) {
  add("kill:node=1,at=0");
  facts_.nodes[1].alive = false;
  end_all(Status::kDeadLink, 0, 1);
  end(3, Status::kDeadLink, 2, 1);
  // A chain: the dead node parts node 0 from nodes 2 and 3.
  end(2, Status::kDeadLink, 2, 1);
  EXPECT_EQ(verdict(), "");
  end(3, Status::kDeadLink, 0, 1);
  EXPECT_EQ(verdict(), "two causes");
}

// Nodes 0 and 1 find the sleeping node 2 dead, and so does node 3. It wakes at 3/2 D: the news of
// the other part may reach some within the D/4 before they end.
TEST_F(JudgeTest, RefusesTwoCausesUnlessAPartWokeUp) {
  add("pause:node=2,ns=30000000");
  end_all(Status::kDeadLink, 1, 2);
  end(0, Status::kDeadLink, 3, 2);
  facts_.nodes[0].ended_ns = 20'000'000;  // before it wakes
  EXPECT_EQ(verdict(), "two causes");
  facts_.nodes[0].ended_ns = 31'000'000;
  EXPECT_EQ(verdict(), "");
  facts_.nodes[0].ended_ns = 40'000'000;  // D/4 after it woke
  EXPECT_EQ(verdict(), "two causes");
}

TEST_F(JudgeTest, RefusesTwoCausesUnlessTheyWereFoundAQuarterApart) {
  find_two_a_quarter_apart();
  EXPECT_EQ(verdict(), "");
  facts_.nodes[1].found_ns = 23'000'000;
  EXPECT_EQ(verdict(), "two causes");
  facts_.nodes[1].found_ns = 27'000'000;
  EXPECT_EQ(verdict(), "two causes");
}

// Node 2 sleeps while the others of its part end, or hears of their cause from one that slept, and
// ends with it later.
TEST_F(JudgeTest, RefusesALaterCauseUnlessItsNodeSlept) {
  find_two_a_quarter_apart();
  facts_.nodes[2].ended_ns = 28'000'000;
  EXPECT_EQ(verdict(), "two causes");
  add("pause:node=1,ns=2000000", 22'000'000);
  EXPECT_EQ(verdict(), "two causes");
  facts_.nodes[2].ended_ns = 27'000'000;  // the news came over node 1
  EXPECT_EQ(verdict(), "");
  facts_.nodes[2].ended_ns = 28'000'000;
  add("pause:node=2,ns=2000000", 22'000'000);
  EXPECT_EQ(verdict(), "");
  facts_.struck_ns.back() = 10'000'000;  // D/4 before it ends
  EXPECT_EQ(verdict(), "two causes");
}

TEST_F(JudgeTest, RefusesAFailureOfOthersWhenANodeRestarts) {
  add("over=frames restart:node=1,at=0,ns=1000000");
  end_all(Status::kMismatch, 0, 1);
  EXPECT_EQ(verdict(), "");
  end_all(Status::kStalled, 0, 3);
  EXPECT_EQ(verdict(), "");
  end_all(Status::kMismatch, 2, 3);
  EXPECT_EQ(verdict(), "culprit");
  end_all(Status::kCorrupt, 0, 1);
  EXPECT_EQ(verdict(), "culprit");
  end_all(Status::kDeadLink, 0, 1);  // it was away for D/20
  EXPECT_EQ(verdict(), "culprit");
  plan_.faults[0].ns = 10'000'000;
  EXPECT_EQ(verdict(), "");
}

// What is lost on a framed link for some time is sent again later.
TEST_F(JudgeTest, GivesFramedLinksTwiceTheTimeOfAnOutage) {
  add("outage:node=0,peer=1,at=0,ns=4000000");
  end_all(Status::kDeadLink, 0, 1);
  EXPECT_EQ(verdict(), "failure");
  plan_.over = Over::kFrames;
  EXPECT_EQ(verdict(), "");
}

TEST_F(JudgeTest, RefusesAStallWithoutPauses) {
  add("kill:node=1,at=0");
  facts_.nodes[1].alive = false;
  end_all(Status::kStalled, 2, 3);
  EXPECT_EQ(verdict(), "culprit");
  add("hiccup:node=2,at=0,ns=4000000,every=6000000,times=2");
  EXPECT_EQ(verdict(), "");
}

TEST_F(JudgeTest, RefusesALateCause) {
  add("kill:node=1,at=0", 1000);
  facts_.nodes[1].alive = false;
  end_all(Status::kDeadLink, 0, 1);
  facts_.nodes[0].ended_ns = 1000 + 2 * plan_.deadline_ns;
  EXPECT_EQ(verdict(), "");
  facts_.nodes[0].ended_ns += plan_.deadline_ns / 8;
  EXPECT_EQ(verdict(), "late");
}

// ---- trials ----

Outcome run(const std::string& text) {
  const Plan plan = plan_of(text);
  return run_trial(plan, or_throw(make_schedule(plan.schedule)));
}

// Without check words, corruption passes: the comparison of results finds it.
TEST(Trial, FindsAnIncorrectResult) {
  const std::string corrupt =
      "topology=complete:6 N=3 block=64 corrupt:node=1,peer=2,message=1,bit=9";
  EXPECT_EQ(run(corrupt).wrong_kind, "");
  EXPECT_EQ(run(corrupt).verdicts.count("corrupt"), 1u);
  EXPECT_EQ(run(corrupt + " check=0").wrong_kind, "result");
}

// Seed 241 over frames: a frame waits for room while others are due, and the node must not ask for
// immediate polls until there is room.
TEST(Trial, RunsOverBytesThatHaveNoRoom) {
  const Outcome outcome = run(
      "topology=complete:4 algorithm=scatter-allgather block=256 r=1 L=3 share=1 of=4 over=bytes "
      "rounds=3 N=3 op=or type=f64loc line=5 seed=241");
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(outcome.verdicts.count("right"), 1u);
}

// A node restarts in the second collective, and begins with the first: no node takes it for the
// node that it was before. If it restarts before it has sent or received anything, it may do all of
// them.
TEST(Trial, DoesNotBelieveANodeThatRestarted) {
  const std::string plan =
      "topology=complete:5 collective=allreduce algorithm=two-tree N=4 rounds=2 over=";
  for (const std::string over : {"frames", "bytes pace=2000", "frames key=1"}) {
    const Outcome late = run(plan + over + " restart:node=2,at=900000,ns=1000000");
    EXPECT_EQ(late.wrong, "");
    EXPECT_EQ(late.struck[static_cast<std::size_t>(Kind::kRestart)], 1u);
    EXPECT_EQ(late.verdicts.count("right"), 0u);
    EXPECT_EQ(late.verdicts.size(), 1u);
    const Outcome early = run(plan + over + " restart:node=2,at=0,ns=1000");
    EXPECT_EQ(early.wrong, "");
    EXPECT_EQ(early.verdicts.count("right"), 1u);
  }
}

#if ESPALIER_STORM_REAL
TEST(Trial, RunsOverProviders) {
  for (const std::string over : {"tcp", "mem", "mem+tcp", "tcp key=1", "mem+tcp key=1"}) {
    const std::string plan =
        "topology=complete:4 collective=allreduce algorithm=ring N=2 deadline=50000000 over=" +
        over;
    EXPECT_EQ(run(plan).wrong, "");
    EXPECT_EQ(run(plan).verdicts.count("right"), 1u);
    const Outcome killed = run(plan + " kill:node=2,operation=3");
    EXPECT_EQ(killed.wrong, "");
    EXPECT_EQ(killed.verdicts.count("dead link"), 1u);
    const Outcome restarted = run(plan + " restart:node=2,at=0,ns=1000");
    EXPECT_EQ(restarted.wrong, "");
    EXPECT_EQ(restarted.verdicts.count("dead link"), 1u);
  }
}
#endif

TEST(Trial, LinesLoseFramesAndTheLinksRepairIt) {
  const Outcome outcome =
      run("topology=complete:6 algorithm=chain N=6 rounds=2 over=frames line=20000 key=1 "
          "outage:node=1,peer=2,at=50000,ns=1000000");
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(outcome.struck[static_cast<std::size_t>(Kind::kOutage)], 1u);
  EXPECT_EQ(outcome.verdicts.count("right"), 1u);
}

// A chain of 49 ranks passes one router, hop by hop: without faults, the last rank waits longer
// than the deadline of small clusters.
TEST(Trial, ARouterHasTheTimeThatItsCollectiveTakes) {
  const Schedule schedule = or_throw(make_schedule(
      {.topology = "fattree:k=49,h=1,c=1", .links = Links::kSingleSend, .block_bytes = 4096}));
  Plan plan = draw_plan(7, schedule, Over::kFrames);
  plan.faults.clear();
  EXPECT_EQ(run_trial(plan, schedule).wrong, "") << plan_text(plan);
  plan.deadline_ns = Plan().deadline_ns;
  EXPECT_EQ(run_trial(plan, schedule).wrong_kind, "failure") << plan_text(plan);
}

// What an outage held comes to a node that has become deaf meanwhile: that is a loss, too.
TEST(Trial, ADeafNodeLosesWhatAnOutageHeld) {
  const Outcome outcome =
      run("topology=complete:22 collective=scatter algorithm=binomial root=19 L=3 rounds=2 N=2 "
          "jitter=46 link-jitter=34 duplicate:node=20,peer=21,message=0 deaf:node=19,at=15365 "
          "outage:node=20,peer=19,at=11090,ns=667760");
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(outcome.struck[static_cast<std::size_t>(Kind::kDeaf)], 1u);
}

TEST(Trial, ShrinksWhatFails) {
  const Plan plan = plan_of(
      "topology=complete:9 algorithm=binomial N=5 rounds=3 root=4 jitter=80 pace=2000 check=0 "
      "drift:node=3,ppm=1050000 corrupt:node=4,peer=8,message=1,bit=9 tick:node=5,ns=1000");
  Schedules schedules;
  std::string error;
  ASSERT_EQ(run_trial(plan, *schedules.made(plan.schedule, error)).wrong_kind, "result");
  const Plan shorter = shrink(plan, "result", schedules);
  EXPECT_EQ(shorter.faults.size(), 1u);
  EXPECT_EQ(shorter.rounds, 1u);
  EXPECT_EQ(shorter.pace_ns, 0u);
  EXPECT_LE(or_throw(make_schedule(shorter.schedule)).programs.size(), 4u);
  EXPECT_EQ(run_trial(shorter, *schedules.made(shorter.schedule, error)).wrong_kind, "result");
}

}  // namespace
}  // namespace espalier::storm
