// Controls, release, time, and long mixed traffic.

#include <algorithm>

#include "hal/conformance/conformance.h"
#include "tests/whole.h"

namespace espalier::conformance {
namespace {

using Kind = Completion::Kind;

Control cause_of(std::uint32_t number) {
  return {.kind = ControlKind::kCause,
          .number = number,
          .cause = {Status::kDeadLink, 40000 + number, 70000 + number}};
}

void expect_cause(const Completion& c, std::uint32_t number) {
  EXPECT_EQ(c.control.kind, ControlKind::kCause);
  EXPECT_EQ(c.control.cause.status, Status::kDeadLink);
  EXPECT_EQ(c.control.cause.detector, 40000 + number);
  EXPECT_EQ(c.control.cause.peer, 70000 + number);
}

TEST_P(ConformanceTest, HandsControlsOver) {
  open(complete(3));
  for (std::uint32_t i = 0; i < 50; ++i) {
    const std::uint32_t from = i % 3;
    const std::uint32_t link = i % 2;
    const std::uint32_t to = node(from).endpoint->peer(link);
    Control sent;
    sent.kind = static_cast<ControlKind>(i % 2);  // kProbe, kAnswer
    sent.number = 0xfff00000u + i;
    ASSERT_EQ(control(from, link, sent), Status::kOk);
    Completion c;
    ASSERT_TRUE(next(to, Kind::kControl, c));
    EXPECT_EQ(node(to).endpoint->peer(c.link), from);
    EXPECT_EQ(c.control.kind, sent.kind);
    EXPECT_EQ(c.control.number, sent.number);
    ASSERT_EQ(control(from, link, cause_of(i)), Status::kOk);
    ASSERT_TRUE(next(to, Kind::kControl, c));
    expect_cause(c, i);
  }
}

TEST_P(ConformanceTest, ANewerControlMayReplaceAnOlder) {
  open(complete(2));
  constexpr std::uint32_t kLast = 300;
  for (std::uint32_t i = 1; i <= kLast; ++i) {
    Control probe;
    probe.number = i;
    ASSERT_EQ(control(0, 0, probe), Status::kOk);
    ASSERT_EQ(control(0, 0, cause_of(i)), Status::kOk);
  }
  std::uint32_t probe = 0, cause = 0;
  const auto step = [&] {
    for (; !node(1).log.empty(); node(1).log.pop_front()) {
      const Completion& c = node(1).log.front();
      EXPECT_EQ(c.kind, Kind::kControl);
      std::uint32_t& last = c.control.kind == ControlKind::kProbe ? probe : cause;
      const std::uint32_t number = c.control.kind == ControlKind::kProbe
                                       ? c.control.number
                                       : c.control.cause.detector - 40000;
      EXPECT_GT(number, last) << "older controls are replaced, and none arrives twice";
      last = number;
    }
    return probe == kLast && cause == kLast;
  };
  EXPECT_TRUE(drive(step)) << "last probe " << probe << ", last cause " << cause;
}

TEST_P(ConformanceTest, ControlsPassFullWindows) {
  open(complete(2));
  for (const std::uint64_t size : {std::uint64_t{16}, 4 * eager()}) {
    for (std::uint32_t v = 0; v < 2; ++v) {
      for (std::uint32_t i = 0; i < window(); ++i) {
        fill(node(v).out.data() + i * size, size, v * 100 + i);
        ASSERT_EQ(send(v, 0, {node(v).out.data() + i * size, size, i, 0, i}), Status::kOk);
      }
    }
    idle();
    for (std::uint32_t v = 0; v < 2; ++v) {
      ASSERT_EQ(control(v, 0, cause_of(v)), Status::kOk);
      Completion c;
      ASSERT_TRUE(next(1 - v, Kind::kControl, c));
      expect_cause(c, v);
    }
    for (std::uint32_t v = 0; v < 2; ++v) {
      for (std::uint32_t i = 0; i < window(); ++i) {
        ASSERT_EQ(receive(v, 0, {node(v).in.data() + i * size, size, i, i}), Status::kOk);
      }
    }
    Completion c;
    for (std::uint32_t v = 0; v < 2; ++v) {
      for (std::uint32_t i = 0; i < window(); ++i) {
        ASSERT_TRUE(next(v, Kind::kReceived, c));
        EXPECT_EQ(first_difference(node(v).in.data() + i * size, size, (1 - v) * 100 + i), -1);
        ASSERT_TRUE(next(v, Kind::kSent, c));
      }
    }
  }
}

TEST_P(ConformanceTest, ReleaseGivesTheBytesBack) {
  for (const bool big : {false, true}) {
    open(complete(2));
    const std::uint64_t size = big ? 8 * eager() : eager();
    // Node 1 has receives and sends outstanding; node 0 has begun to send.
    for (std::uint32_t i = 0; i < window(); ++i) {
      fill(node(1).out.data() + i * size, size, i);
      ASSERT_EQ(receive(1, 0, {node(1).in.data() + i * size, size, i, i}), Status::kOk);
      ASSERT_EQ(send(1, 0, {node(1).out.data() + i * size, size, i, 0, i}), Status::kOk);
    }
    fill(node(0).out.data(), size, 50);
    ASSERT_EQ(send(0, 0, {node(0).out.data(), size, 0, 0, 0}), Status::kOk);
    pump();
    node(1).endpoint->release();
    std::fill(node(1).in.begin(), node(1).in.end(), kUntouched);
    std::vector<std::uint8_t>().swap(node(1).out);  // a later read of it is a fault
    for (std::uint32_t i = 1; i < window(); ++i) {
      (void)send(0, 0, {node(0).out.data(), size, i, 0, i});
    }
    idle();
    EXPECT_EQ(first_other(node(1).in.data(), kArena, kUntouched), -1);
    for (std::uint32_t v = 0; v < 2; ++v) {
      ASSERT_EQ(control(v, 0, cause_of(v)), Status::kOk);
      Completion c;
      ASSERT_TRUE(next(1 - v, Kind::kControl, c)) << "controls still pass";
      expect_cause(c, v);
    }
  }
}

TEST_P(ConformanceTest, TimeAdvancesAndWaitReturns) {
  open(complete(2));
  Endpoint& endpoint = *node(1).endpoint;
  const std::uint64_t start = endpoint.now();
  endpoint.wait(start);
  constexpr std::uint64_t kMillisecond = 1'000'000;
  // Nothing arrives: wait() may return early, but time must reach `until`.
  std::uint64_t last = start;
  while (endpoint.now() < start + 2 * kMillisecond) {
    EXPECT_GE(endpoint.now(), last);
    last = endpoint.now();
    endpoint.wait(start + 2 * kMillisecond);
    pump();
  }
  // Something arrives: a far `until` is not waited for.
  constexpr std::uint64_t kHour = 3600ull * 1000 * kMillisecond;
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(receive(1, 0, {node(1).in.data(), 8, i, 0}), Status::kOk);
    ASSERT_EQ(send(0, 0, {node(0).out.data(), 8, i, 0, 0}), Status::kOk);
    const std::uint64_t too_late = endpoint.now() + kHour;
    while (count(1, Kind::kReceived) == 0) {
      endpoint.wait(too_late);
      pump();
      ASSERT_LT(endpoint.now(), too_late);
    }
    Completion c;
    ASSERT_TRUE(next(1, Kind::kReceived, c));
    ASSERT_TRUE(next(0, Kind::kSent, c));
  }
}

// Thousands of messages of all sizes around a ring, posted at random moments.
class Traffic {
 public:
  static constexpr std::uint64_t kStride = 80 * 1024;  // bytes of a slot in the arenas

  struct Flow {
    std::uint32_t from, from_link, to, to_link;
    Random sender, receiver;  // both draw the same sizes
    std::uint32_t sent = 0, sends_done = 0, posted = 0, received = 0;
    std::vector<std::uint64_t> expected;  // sizes of posted receives
  };

  static std::uint64_t draw(Random& random, std::uint64_t eager) {
    switch (random.below(5)) {
      case 0: return random.below(4) == 0 ? 0 : random.below(64);
      case 1: return eager - 2 + random.below(5);
      case 2: return random.below(eager) + 1;
      case 3: return 8 * (1 + random.below(1000));
      default: return random.below(kStride);
    }
  }
};

TEST_P(ConformanceTest, CarriesThousandsOfMixedMessages) {
  constexpr std::uint32_t kNodes = 3;
  const std::uint32_t messages = small_sample() ? 200 : 1000;  // per flow; there are six flows
  open(ring(kNodes));
  ASSERT_LE(2 * window() * Traffic::kStride, kArena);
  std::vector<Traffic::Flow> flows;
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    flows.push_back({v, 0, (v + 1) % kNodes, 1, Random(v), Random(v), 0, 0, 0, 0, {}});
    flows.push_back(
        {v, 1, (v + kNodes - 1) % kNodes, 0, Random(v + 9), Random(v + 9), 0, 0, 0, 0, {}});
  }
  Random dice(1);
  const auto slot = [&](std::uint32_t link, std::uint32_t message) {
    return (link * window() + message % window()) * Traffic::kStride;
  };
  const auto seed = [](std::size_t flow, std::uint32_t message) { return flow * 100000 + message; };
  const auto step = [&] {
    bool done = true;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      Traffic::Flow& flow = flows[f];
      while (flow.sent < messages && flow.sent - flow.sends_done < window() && dice.below(4) > 0) {
        std::uint8_t* bytes = node(flow.from).out.data() + slot(flow.from_link, flow.sent);
        const std::uint64_t size = Traffic::draw(flow.sender, eager());
        fill(bytes, size, seed(f, flow.sent));
        EXPECT_EQ(send(flow.from, flow.from_link, {bytes, size, flow.sent, flow.sent, 0}),
                  Status::kOk);
        ++flow.sent;
      }
      while (flow.posted < messages && flow.posted - flow.received < window() &&
             dice.below(4) > 0) {
        std::uint8_t* bytes = node(flow.to).in.data() + slot(flow.to_link, flow.posted);
        flow.expected.push_back(Traffic::draw(flow.receiver, eager()));
        EXPECT_EQ(receive(flow.to, flow.to_link, {bytes, flow.expected.back(), flow.posted, 0}),
                  Status::kOk);
        ++flow.posted;
      }
      done = done && flow.sends_done == messages && flow.received == messages;
    }
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      for (; !node(v).log.empty(); node(v).log.pop_front()) {
        const Completion& c = node(v).log.front();
        if (c.kind == Kind::kUnexpected) continue;
        EXPECT_EQ(c.status, Status::kOk);
        const std::size_t out = 2 * v + c.link;
        const std::size_t in =
            c.link == 1 ? 2 * ((v + kNodes - 1) % kNodes) : 2 * ((v + 1) % kNodes) + 1;
        if (c.kind == Kind::kSent) {
          ++flows[out].sends_done;
          continue;
        }
        Traffic::Flow& flow = flows[in];
        EXPECT_EQ(c.check, flow.received);
        EXPECT_EQ(first_difference(node(v).in.data() + slot(c.link, flow.received),
                                   flow.expected[flow.received], seed(in, flow.received)),
                  -1)
            << "flow " << in << " message " << flow.received;
        ++flow.received;
      }
    }
    return done || HasFailure();
  };
  // By chance all windows may be empty for a round or two; in virtual time progress() then finds
  // nothing.
  constexpr int kManyRounds = 1000;
  for (int nothing = 0; !step(); ++nothing) {
    if (pump() || progress()) nothing = 0;
    ASSERT_LT(nothing, kManyRounds) << "messages are lost";
  }
}

}  // namespace
}  // namespace espalier::conformance
