// How often an end sends again, over a serial cable that loses bytes, in virtual time.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hal/serial/testing/cable.h"

namespace espalier::serial {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kMaxDoubledNs = 2 * (std::uint64_t{1024} << 18);  // 537 ms
constexpr std::uint32_t kMessages = 100, kBytes = 450;

struct Line {
  const char* name;
  std::uint32_t baud;
  std::uint64_t resend_ns;
  std::uint32_t lose;
};

class BadCable : public testing::TestWithParam<Line> {};

// While an end waits for a reply, the line is never silent for longer than the upper limit, plus
// the time of the frame that is sent first.
TEST_P(BadCable, SilenceHasALimit) {
  CableSpec cable{
      .baud = GetParam().baud, .lose = GetParam().lose, .resend_ns = GetParam().resend_ns};
  const std::uint64_t limit = std::max(cable.resend_ns, kMaxDoubledNs);
  for (cable.seed = 1; cable.seed <= 5; ++cable.seed) {
    const CableTimes times = exchange(cable, kMessages, kBytes);
    EXPECT_EQ(times.correct, kMessages);
    EXPECT_LE(times.silence_ns, limit + times.frame_ns) << "seed " << cable.seed;
    EXPECT_GE(times.silence_ns, cable.resend_ns) << "no frame was lost: seed " << cable.seed;
  }
}

// The rates of boards/microbit and of a gateway; and a fast line, whose interval doubles often.
INSTANTIATE_TEST_SUITE_P(Of, BadCable,
                         testing::Values(Line{"microbit_2000", 19200, 1000 * kMs, 2000},
                                         Line{"microbit_500", 19200, 1000 * kMs, 500},
                                         Line{"gateway_2000", 115200, 200 * kMs, 2000},
                                         Line{"gateway_500", 115200, 200 * kMs, 500},
                                         Line{"fast_500", 4000000, 20 * kMs, 500}),
                         [](const auto& info) { return std::string(info.param.name); });

// With several links, replies wait for the other links' frames and take longer than the interval.
// The line nevertheless carries hardly more bytes per message than with one link.
TEST(SlowCable, FramesDoNotPileUp) {
  for (const std::uint32_t lose : {0u, 2000u, 500u}) {
    CableSpec cable{.baud = 19200, .lose = lose, .resend_ns = 1000 * kMs, .both = true};
    const std::uint64_t alone = exchange(cable, kMessages / 2, kBytes).bytes;
    for (const std::uint32_t links : {4u, 8u}) {
      cable.links = links;
      const CableTimes times = exchange(cable, kMessages / 2, kBytes);
      EXPECT_EQ(times.correct, links * kMessages);
      EXPECT_LE(times.bytes, links * alone * 4 / 3) << links << " links, lose " << lose;
    }
    cable.links = 1;
  }
}

// An interval below the time of the longest frame and its reply does cost bytes.
TEST(SlowCable, AnIntervalThatIsTooShortRepeatsFrames) {
  CableSpec cable{.baud = 19200, .resend_ns = 1000 * kMs, .links = 8, .both = true};
  const std::uint64_t bytes = exchange(cable, kMessages, kBytes).bytes;
  cable.resend_ns = 100 * kMs;
  EXPECT_GE(exchange(cable, kMessages, kBytes).bytes, bytes * 4 / 3);
}

}  // namespace
}  // namespace espalier::serial
