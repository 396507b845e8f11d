// Blocks that are in order and agree: order, windows, sizes, landing, regions.

#include <algorithm>
#include <array>

#include "hal/conformance/conformance.h"
#include "tests/whole.h"

namespace espalier::conformance {
namespace {

using Kind = Completion::Kind;

constexpr std::uint64_t kMiB = 1u << 20;

TEST_P(ConformanceTest, TellsItsTable) {
  open(complete(4));
  for (std::uint32_t v = 0; v < 4; ++v) {
    Endpoint& endpoint = *node(v).endpoint;
    EXPECT_EQ(endpoint.node(), v);
    ASSERT_EQ(endpoint.links(), 3u);
    for (std::uint32_t l = 0; l < 3; ++l) EXPECT_EQ(endpoint.peer(l), l < v ? l : l + 1);
    EXPECT_GE(endpoint.window(), 1u);
    EXPECT_EQ(endpoint.window(), window());
    EXPECT_EQ(endpoint.eager_bytes(), eager());
  }
}

TEST_P(ConformanceTest, KeepsOrderCookiesAndCheckWords) {
  open(complete(2));
  constexpr std::uint32_t kMessages = 200;
  constexpr std::uint64_t kSize = 48;
  std::uint32_t sent = 0, posted = 0, sends_done = 0, received = 0;
  const auto step = [&] {
    while (sent < kMessages && sent - sends_done < window()) {
      std::uint8_t* bytes = node(0).out.data() + sent * kSize;
      fill(bytes, kSize, sent);
      const SendPost post{bytes, kSize, 1000 + sent, 7 * sent, 0x80000000u + sent};
      EXPECT_EQ(send(0, 0, post), Status::kOk);
      ++sent;
    }
    while (posted < kMessages && posted - received < window()) {
      const ReceivePost post{node(1).in.data() + posted * kSize, kSize, 1000 + posted, 5 + posted};
      EXPECT_EQ(receive(1, 0, post), Status::kOk);
      ++posted;
    }
    for (; !node(0).log.empty(); node(0).log.pop_front()) {
      const Completion& c = node(0).log.front();
      EXPECT_EQ(c.kind, Kind::kSent);
      EXPECT_EQ(c.status, Status::kOk);
      EXPECT_EQ(c.link, 0u);
      EXPECT_EQ(c.context, 0x80000000u + sends_done++);
    }
    for (; !node(1).log.empty(); node(1).log.pop_front()) {
      const Completion& c = node(1).log.front();
      if (c.kind == Kind::kUnexpected) continue;
      EXPECT_EQ(c.kind, Kind::kReceived);
      EXPECT_EQ(c.status, Status::kOk);
      EXPECT_EQ(c.context, 5 + received);
      EXPECT_EQ(c.check, 7 * received);
      EXPECT_EQ(first_difference(node(1).in.data() + received * kSize, kSize, received), -1);
      ++received;
    }
    return sends_done == kMessages && received == kMessages;
  };
  ASSERT_TRUE(drive(step));
}

TEST_P(ConformanceTest, RefusesMoreThanTheWindow) {
  open(complete(2));
  for (std::uint32_t round = 0; round < 3; ++round) {
    const auto at = [&](std::uint32_t i) { return (round * window() + i) * 16; };
    for (std::uint32_t i = 0; i < window(); ++i) {
      fill(node(0).out.data() + at(i), 16, at(i));
      ASSERT_EQ(send(0, 0, {node(0).out.data() + at(i), 16, i, 0, i}), Status::kOk);
    }
    EXPECT_EQ(send(0, 0, {node(0).out.data(), 16, 99, 0, 99}), Status::kTooLarge);
    for (std::uint32_t i = 0; i < window(); ++i) {
      ASSERT_EQ(receive(1, 0, {node(1).in.data() + at(i), 16, i, i}), Status::kOk);
    }
    // Not yet polled, so still outstanding in any case.
    EXPECT_EQ(receive(1, 0, {node(1).in.data(), 16, 99, 99}), Status::kTooLarge);
    Completion c;
    for (std::uint32_t i = 0; i < window(); ++i) {
      ASSERT_TRUE(next(1, Kind::kReceived, c));
      EXPECT_EQ(c.context, i);
      EXPECT_EQ(first_difference(node(1).in.data() + at(i), 16, at(i)), -1);
      ASSERT_TRUE(next(0, Kind::kSent, c));
      EXPECT_EQ(c.context, i);
    }
  }
}

TEST_P(ConformanceTest, MovesEverySizeBothWaysAtOnce) {
  open(complete(2));
  constexpr std::uint64_t kGuard = 64;
  std::vector<std::uint64_t> sizes = {0,  1,   7,   8,   48,  49,  63,
                                      64, 112, 113, 127, 128, 129, 4 * kMiB};
  for (const std::uint64_t size :
       {eager() - 16, eager(), 2 * eager(), 3 * eager() + 5, 16 * eager(), kMiB}) {
    for (const std::uint64_t each : {size - 1, size, size + 1}) sizes.push_back(each);
  }
  for (const std::uint64_t size : sizes) {
    if (small_sample() && size >= kMiB - 1 && size != kMiB + 1) continue;
    for (std::uint32_t v = 0; v < 2; ++v) {
      std::fill(node(v).in.begin(), node(v).in.end(), kUntouched);
      fill(node(v).out.data(), size, size + v);
      ASSERT_EQ(receive(v, 0, {node(v).in.data() + kGuard, size, size, 1}), Status::kOk);
      ASSERT_EQ(send(v, 0, {node(v).out.data(), size, size, v, 2}), Status::kOk);
    }
    for (std::uint32_t v = 0; v < 2; ++v) {
      Completion c;
      ASSERT_TRUE(next(v, Kind::kReceived, c));
      EXPECT_EQ(c.status, Status::kOk);
      EXPECT_EQ(c.check, 1 - v);
      ASSERT_TRUE(next(v, Kind::kSent, c));
      EXPECT_EQ(c.status, Status::kOk);
      const std::uint8_t* in = node(v).in.data();
      EXPECT_EQ(first_difference(in + kGuard, size, size + 1 - v), -1) << size << " bytes";
      EXPECT_EQ(first_other(in, kGuard, kUntouched), -1) << size << " bytes";
      EXPECT_EQ(first_other(in + kGuard + size, kGuard, kUntouched), -1) << size << " bytes";
    }
  }
}

TEST_P(ConformanceTest, SendsFromMemoryThatWasNotPrepared) {
  open(complete(2));
  std::vector<std::uint8_t> own(eager());
  fill(own.data(), own.size(), 1);
  std::vector<std::uint8_t> in(eager());
  ASSERT_EQ(send(0, 0, {own.data(), own.size(), 3, 0, 0}), Status::kOk);
  ASSERT_EQ(receive(1, 0, {in.data(), in.size(), 3, 0}), Status::kOk);
  Completion c;
  ASSERT_TRUE(next(1, Kind::kReceived, c));
  ASSERT_TRUE(next(0, Kind::kSent, c));
  EXPECT_EQ(first_difference(in.data(), in.size(), 1), -1);
}

TEST_P(ConformanceTest, KeepsManyLinksApart) {
  constexpr std::uint32_t kNodes = 7;
  open(complete(kNodes));
  const auto seed = [](std::uint32_t from, std::uint32_t to) { return from * 100 + to; };
  for (const std::uint64_t size : {std::uint64_t{40}, 5 * eager() + 3}) {
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      for (std::uint32_t l = 0; l + 1 < kNodes; ++l) {
        const std::uint32_t peer = node(v).endpoint->peer(l);
        fill(node(v).out.data() + l * size, size, seed(v, peer));
        ASSERT_EQ(send(v, l, {node(v).out.data() + l * size, size, 1, seed(v, peer), l}),
                  Status::kOk);
        ASSERT_EQ(receive(v, l, {node(v).in.data() + l * size, size, 1, l}), Status::kOk);
      }
    }
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      Completion c;
      for (std::uint32_t i = 0; i + 1 < kNodes; ++i) {
        ASSERT_TRUE(next(v, Kind::kReceived, c));
        EXPECT_EQ(c.link, c.context);
        const std::uint32_t peer = node(v).endpoint->peer(c.link);
        EXPECT_EQ(c.check, seed(peer, v));
        EXPECT_EQ(first_difference(node(v).in.data() + c.link * size, size, seed(peer, v)), -1);
        ASSERT_TRUE(next(v, Kind::kSent, c));
        EXPECT_EQ(c.link, c.context);
      }
    }
  }
}

TEST_P(ConformanceTest, KeepsEarlyBlocksUntilTheirReceives) {
  open(complete(2));
  const std::uint64_t size = eager();
  // More rounds than a window: the slots and their credits must come back.
  for (std::uint32_t round = 0; round < 4; ++round) {
    for (std::uint32_t i = 0; i < window(); ++i) {
      fill(node(0).out.data() + i * size, size, round * 1000 + i);
      ASSERT_EQ(send(0, 0, {node(0).out.data() + i * size, size, i, i, i}), Status::kOk);
    }
    idle();
    EXPECT_EQ(count(1, Kind::kReceived), 0u);
    EXPECT_EQ(first_other(node(1).in.data(), kArena, kUntouched), -1) << "before any receive";
    for (std::uint32_t i = 0; i < window(); ++i) {
      ASSERT_EQ(receive(1, 0, {node(1).in.data() + i * size, size, i, i}), Status::kOk);
      Completion c;
      ASSERT_TRUE(next(1, Kind::kReceived, c));
      EXPECT_EQ(c.status, Status::kOk);
      EXPECT_EQ(c.check, i);
      EXPECT_EQ(first_difference(node(1).in.data() + i * size, size, round * 1000 + i), -1);
      ASSERT_TRUE(next(0, Kind::kSent, c));
      EXPECT_EQ(c.context, i);
    }
    std::fill(node(1).in.begin(), node(1).in.end(), kUntouched);
  }
}

TEST_P(ConformanceTest, RendezvousWaitsForItsReceive) {
  open(complete(2));
  const std::uint64_t size = 3 * eager() + 1;
  for (std::uint32_t i = 0; i < window(); ++i) {
    fill(node(0).out.data() + i * size, size, i);
    ASSERT_EQ(send(0, 0, {node(0).out.data() + i * size, size, i, 0, i}), Status::kOk);
  }
  idle();
  EXPECT_EQ(count(0, Kind::kSent), 0u) << "no receive was posted";
  EXPECT_EQ(first_other(node(1).in.data(), kArena, kUntouched), -1);
  for (std::uint32_t i = 0; i < window(); ++i) {
    ASSERT_EQ(receive(1, 0, {node(1).in.data() + i * size, size, i, i}), Status::kOk);
    Completion c;
    ASSERT_TRUE(next(1, Kind::kReceived, c));
    EXPECT_EQ(c.context, i);
    EXPECT_EQ(first_difference(node(1).in.data() + i * size, size, i), -1);
    EXPECT_EQ(first_other(node(1).in.data() + (i + 1) * size, size, kUntouched), -1)
        << "the next receive is not posted yet";
    ASSERT_TRUE(next(0, Kind::kSent, c));
  }
}

TEST_P(ConformanceTest, RendezvousAfterItsReceive) {
  open(complete(2));
  const std::uint64_t size = 3 * eager() + 1;
  for (std::uint32_t i = 0; i < window(); ++i) {
    ASSERT_EQ(receive(1, 0, {node(1).in.data() + i * size, size, i, i}), Status::kOk);
  }
  idle();
  for (std::uint32_t i = 0; i < window(); ++i) {
    fill(node(0).out.data() + i * size, size, i);
    ASSERT_EQ(send(0, 0, {node(0).out.data() + i * size, size, i, 0, i}), Status::kOk);
    Completion c;
    ASSERT_TRUE(next(1, Kind::kReceived, c));
    EXPECT_EQ(first_difference(node(1).in.data() + i * size, size, i), -1);
    ASSERT_TRUE(next(0, Kind::kSent, c));
  }
  EXPECT_EQ(count(1, Kind::kUnexpected), 0u) << "all receives were posted before";
}

// From its completion onward, each end may use its memory freely.
TEST_P(ConformanceTest, LeavesBytesAloneAfterCompletion) {
  open(complete(2));
  for (const std::uint64_t size : {std::uint64_t{24}, eager(), 2 * eager()}) {
    std::fill(node(1).in.begin(), node(1).in.end(), kUntouched);
    for (std::uint32_t i = 0; i < 3 * window(); ++i) {
      // The sender reuses the same memory for each message.
      fill(node(0).out.data(), size, i);
      ASSERT_EQ(send(0, 0, {node(0).out.data(), size, i, 0, 0}), Status::kOk);
      ASSERT_EQ(receive(1, 0, {node(1).in.data() + (i % 2) * size, size, i, 0}), Status::kOk);
      Completion c;
      ASSERT_TRUE(next(0, Kind::kSent, c));
      std::fill_n(node(0).out.data(), size, std::uint8_t{0xee});
      ASSERT_TRUE(next(1, Kind::kReceived, c));
      EXPECT_EQ(first_difference(node(1).in.data() + (i % 2) * size, size, i), -1);
      std::fill_n(node(1).in.data() + (i % 2) * size, size, kUntouched);
      idle();
      EXPECT_EQ(first_other(node(1).in.data(), 2 * size, kUntouched), -1) << "message " << i;
    }
  }
}

TEST_P(ConformanceTest, PreparesNewRegionsAgainAndAgain) {
  open(complete(2));
  const std::array<Region, Endpoint::kMaxRegions + 1> too_many = {};
  EXPECT_EQ(node(0).endpoint->prepare(too_many.data(), too_many.size()), Status::kTooLarge);
  for (std::uint32_t round = 0; round < 40; ++round) {
    const std::uint64_t size = 2 * eager() + 100 * round;
    // The regions of the previous round are freed while still prepared: they must not be accessed.
    std::vector<std::uint8_t> from(size), to(size), other(100), last(1);
    std::array<Region, Endpoint::kMaxRegions> regions = {
        Region{from.data(), size}, Region{to.data(), size}, Region{other.data(), 100},
        Region{last.data(), round % 2}};
    const std::uint32_t regions_count = 2 + round % 3;
    ASSERT_EQ(node(0).endpoint->prepare(regions.data(), regions_count), Status::kOk);
    ASSERT_EQ(node(1).endpoint->prepare(regions.data(), regions_count), Status::kOk);
    fill(from.data(), size, round);
    if (round % 2 == 0) {
      ASSERT_EQ(receive(1, 0, {to.data() + 1, size - 1, round, 0}), Status::kOk);
    }
    ASSERT_EQ(send(0, 0, {from.data(), size - 1, round, 0, 0}), Status::kOk);
    if (round % 2 != 0) {
      idle();
      ASSERT_EQ(receive(1, 0, {to.data() + 1, size - 1, round, 0}), Status::kOk);
    }
    Completion c;
    ASSERT_TRUE(next(1, Kind::kReceived, c));
    ASSERT_TRUE(next(0, Kind::kSent, c));
    EXPECT_EQ(first_difference(to.data() + 1, size - 1, round), -1);
  }
}

}  // namespace
}  // namespace espalier::conformance
