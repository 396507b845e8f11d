#include "hal/fault/faults.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "espalier/hal/sim/network.h"
#include "hal/fault/fault_endpoint.h"

namespace espalier::fault {
namespace {

TEST(Faults, ReadsAScript) {
  const Faults faults =
      or_throw(parse_faults("drop link=2 message=5;delay ns=1000000 link=0 message=3; ;\n"
                            "corrupt link=1 message=0 bit=77; reorder link=0 message=9;"
                            "kill after=100; random seed=7 drop=0.25 duplicate=1e-3 ns=5"));
  ASSERT_EQ(faults.script.size(), 5u);
  EXPECT_EQ(faults.script[0].kind, Kind::kDrop);
  EXPECT_EQ(faults.script[0].link, 2u);
  EXPECT_EQ(faults.script[0].message, 5u);
  EXPECT_EQ(faults.script[1].kind, Kind::kDelay);
  EXPECT_EQ(faults.script[1].ns, 1'000'000u);
  EXPECT_EQ(faults.script[2].bit, 77u);
  EXPECT_EQ(faults.script[3].kind, Kind::kReorder);
  EXPECT_EQ(faults.script[4].kind, Kind::kKill);
  EXPECT_EQ(faults.script[4].after, 100u);
  EXPECT_EQ(faults.seed, 7u);
  EXPECT_EQ(faults.ns, 5u);
  EXPECT_EQ(faults.chance[0], 0.25);
  EXPECT_EQ(faults.chance[1], 1e-3);
}

TEST(Faults, ReportsErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {"dorp link=1 message=2",
       "fault \"dorp link=1 message=2\": unknown fault \"dorp\"; expected drop, duplicate, "
       "reorder, "
       "corrupt, delay, kill or random"},
      {"drop link=1", "fault \"drop link=1\": needs message=NUMBER"},
      {"kill", "fault \"kill\": needs after=NUMBER"},
      {"kill after=1; delay link=0 message=1", "fault \"delay link=0 message=1\": needs ns=NUMBER"},
      {"drop link=x message=1",
       "fault \"drop link=x message=1\": link=x is not a number; expected a whole number >= 0"},
      {"drop link=-1 message=1",
       "fault \"drop link=-1 message=1\": link=-1 is not a number; expected a whole number >= 0"},
      {"drop link=99999999 message=1",
       "fault \"drop link=99999999 message=1\": there is no link 99999999"},
      {"drop link=1 message=1 ns=4", "fault \"drop link=1 message=1 ns=4\": drop takes no ns="},
      {"drop link=1 link=2", "fault \"drop link=1 link=2\": link is given twice"},
      {"drop 3", "fault \"drop 3\": \"3\" is not key=value"},
      {"random drop=0.1", "fault \"random drop=0.1\": needs seed=NUMBER"},
      {"random seed=1 drop=2",
       "fault \"random seed=1 drop=2\": drop=2 is not a probability; expected 0 to 1"},
      {"random seed=1 drop=0.6 delay=0.6",
       "fault \"random seed=1 drop=0.6 delay=0.6\": the probabilities add up to more than 1"},
  };
  for (const auto& [text, expected] : cases) {
    const auto faults = parse_faults(text);
    ASSERT_FALSE(faults) << text;
    EXPECT_EQ(faults.error().message, expected);
  }
}

// Sends messages 0 .. 5 from node 0, whose endpoint has the faults, to node 1, where receive k
// expects message k. Returns one letter per message that node 1 received: '.' correct, 'x'
// mismatch, 'c' other bytes, '-' none.
std::string outcome(const char* text, std::string* sender = nullptr) {
  constexpr std::uint32_t kMessages = 6;
  const Faults faults = or_throw(parse_faults(text));
  sim::Network network(sim::Model(), {{1}, {0}});
  FaultEndpoint::Hooks hooks;
  hooks.wake = [&](std::uint64_t at) { network.wake(0, at); };
  FaultEndpoint endpoint(network.endpoint(0), faults, hooks);
  std::uint32_t out[kMessages];
  std::uint32_t in[kMessages] = {};
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    out[i] = 0x1000 + i;
    EXPECT_EQ(network.endpoint(1).post_receive(0, {&in[i], 4, i, i}), Status::kOk);
    EXPECT_EQ(endpoint.post_send(0, {&out[i], 4, i, 0, i}), Status::kOk);
  }
  std::string got(kMessages, '-'), sent(kMessages, '-');
  Completion c;
  do {
    while (endpoint.poll(c)) sent[c.context] = c.status == Status::kOk ? '.' : 'x';
    while (network.endpoint(1).poll(c)) {
      if (c.kind != Completion::Kind::kReceived) continue;
      const bool right = in[c.context] == out[c.context];
      got[c.context] = c.status == Status::kMismatch ? 'x' : right ? '.' : 'c';
    }
  } while (network.advance(UINT64_MAX));
  if (sender != nullptr) *sender = sent;
  return got;
}

TEST(FaultEndpoint, FollowsTheScript) {
  std::string sender;
  EXPECT_EQ(outcome("", &sender), "......");
  EXPECT_EQ(sender, "......");
  EXPECT_EQ(outcome("delay link=0 message=2 ns=5000000", &sender), "......");
  EXPECT_EQ(sender, "......");
  EXPECT_EQ(outcome("drop link=0 message=5", &sender), ".....-");
  EXPECT_EQ(sender, "......");
  EXPECT_EQ(outcome("drop link=0 message=3", &sender), "...xx-");
  EXPECT_EQ(sender, "....xx");
  EXPECT_EQ(outcome("duplicate link=0 message=3", &sender), "....xx");
  EXPECT_EQ(outcome("duplicate link=0 message=5", &sender), "......");
  EXPECT_EQ(outcome("reorder link=0 message=2", &sender), "..xx..");
  EXPECT_EQ(sender, "..xx..");
  EXPECT_EQ(outcome("reorder link=0 message=5", &sender), "......") << "nothing to overtake it";
  EXPECT_EQ(sender, "......");
  EXPECT_EQ(outcome("corrupt link=0 message=1 bit=40", &sender), ".c....");
  EXPECT_EQ(sender, "......");
  EXPECT_EQ(outcome("kill after=3", &sender), "------") << "messages in flight are lost";
}

TEST(FaultEndpoint, KillSilencesTheNode) {
  const Faults faults = or_throw(parse_faults("kill after=2"));
  sim::Network network(sim::Model(), {{1}, {0}});
  bool killed = false;
  FaultEndpoint::Hooks hooks;
  hooks.killed = [&] {
    killed = true;
    network.kill(0);
  };
  FaultEndpoint endpoint(network.endpoint(0), faults, hooks);
  std::uint32_t bytes[4] = {};
  ASSERT_EQ(endpoint.post_receive(0, {&bytes[0], 4, 1, 0}), Status::kOk);
  ASSERT_EQ(endpoint.post_send(0, {&bytes[1], 4, 1, 0, 0}), Status::kOk);
  EXPECT_FALSE(killed);
  ASSERT_EQ(network.endpoint(1).post_send(0, {&bytes[2], 4, 1, 0, 0}), Status::kOk);
  ASSERT_EQ(endpoint.post_send(0, {&bytes[1], 4, 2, 0, 0}), Status::kOk);
  EXPECT_TRUE(killed);
  EXPECT_FALSE(network.alive(0));
  ASSERT_EQ(network.endpoint(1).post_control(0, Control()), Status::kOk);
  while (network.advance(UINT64_MAX)) {
  }
  Completion c;
  EXPECT_FALSE(endpoint.poll(c));
  EXPECT_FALSE(network.endpoint(1).poll(c)) << "messages that it had begun to send are lost";
  EXPECT_EQ(endpoint.struck(Kind::kKill), 1u);
}

TEST(FaultEndpoint, FaultsOccurWithTheGivenProbability) {
  constexpr std::uint32_t kMessages = 2000;
  const Faults faults = or_throw(parse_faults("random seed=5 drop=0.1 corrupt=0.05"));
  sim::Network network(sim::Model(), {{1}, {0}});
  FaultEndpoint endpoint(network.endpoint(0), faults);
  std::uint32_t out = 1, in = 0, received = 0;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(endpoint.post_send(0, {&out, 4, 0, 0, 0}), Status::kOk);
    while (network.endpoint(1).post_receive(0, {&in, 4, 0, 0}) == Status::kOk) {
    }
    while (network.advance(UINT64_MAX)) {
    }
    Completion c;
    while (endpoint.poll(c)) {
    }
    while (network.endpoint(1).poll(c)) received += c.kind == Completion::Kind::kReceived ? 1 : 0;
  }
  EXPECT_EQ(received, kMessages - endpoint.struck(Kind::kDrop));
  EXPECT_NEAR(static_cast<double>(endpoint.struck(Kind::kDrop)), 200, 50);
  EXPECT_NEAR(static_cast<double>(endpoint.struck(Kind::kCorrupt)), 100, 40);
}

}  // namespace
}  // namespace espalier::fault
