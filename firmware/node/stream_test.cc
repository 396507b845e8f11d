#include "firmware/node/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "base/clock.h"

namespace espalier::node {
namespace {

// The launcher's end of a stream, and frames of a host whose clock is kAhead before this one's.
class Stream : public testing::Test {
 protected:
  static constexpr std::uint64_t kAhead = 1'000'000'000'000;  // ns

  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    stream_.emplace(ends_[0], ends_[0]);
  }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  // Sends the packet `late_ns` before its frame is received.
  template <class P>
  void send(const P& packet, std::int64_t bound_ns, std::uint64_t late_ns = 0) {
    const FrameHeader header{Frame::kPacket, sizeof packet, 0, monotonic_ns() + kAhead - late_ns,
                             bound_ns};
    ASSERT_EQ(write(ends_[1], &header, sizeof header), static_cast<ssize_t>(sizeof header));
    control::Any wire;
    std::memcpy(static_cast<void*>(&wire), &packet, sizeof packet);
    control::convert_order(wire, packet.packet);
    ASSERT_EQ(write(ends_[1], &wire, sizeof packet), static_cast<ssize_t>(sizeof packet));
  }
  bool take(control::Any& packet) {
    FrameHeader header;
    std::vector<std::uint8_t> bytes;
    return stream_->receive(header, bytes, 0) == control::Received::kPacket &&
           stream_->take_packet(bytes, memory_, packet);
  }

  int ends_[2] = {-1, -1};
  SharedMemory memory_;
  std::optional<ControlStream> stream_;
};

TEST_F(Stream, ConvertsTimesToItsOwnClock) {
  control::Any packet;
  // The other end knows that its clock is ahead by at most kAhead + 40 us.
  send(control::Ready{}, static_cast<std::int64_t>(kAhead + 40'000));
  ASSERT_TRUE(take(packet));
  // A report that was 3 s on its way.
  control::Report report;
  report.begin_ns = monotonic_ns() + kAhead;
  report.end_ns = report.begin_ns + 5'000;
  send(report, static_cast<std::int64_t>(kAhead + 40'000), 3'000'000'000);
  ASSERT_TRUE(take(packet));
  const control::Report& converted = packet.report;
  EXPECT_EQ(converted.end_ns - converted.begin_ns, 5'000u);
  EXPECT_GT(converted.clock_error_ns, 20'000u);
  EXPECT_LT(converted.clock_error_ns, 3'000'000'000u);
  EXPECT_LE(converted.begin_ns, report.begin_ns - kAhead + converted.clock_error_ns);
  EXPECT_GE(converted.begin_ns + converted.clock_error_ns, report.begin_ns - kAhead);
}

TEST_F(Stream, RefusesTimesThatItCannotConvert) {
  control::Any packet;
  send(control::Ready{}, FrameHeader::kNoBound);
  EXPECT_TRUE(take(packet));
  send(control::Report{}, FrameHeader::kNoBound);
  EXPECT_FALSE(take(packet));
}

TEST_F(Stream, TakesNoMemoryForBytesThatDoNotArrive) {
  const FrameHeader header{Frame::kBytes, 64 << 20, 0, monotonic_ns(), FrameHeader::kNoBound};
  ASSERT_EQ(write(ends_[1], &header, sizeof header), static_cast<ssize_t>(sizeof header));
  ASSERT_EQ(shutdown(ends_[1], SHUT_WR), 0);
  FrameHeader received;
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(stream_->receive(received, bytes, 0), control::Received::kEnd);
  EXPECT_LE(bytes.capacity(), std::size_t{1} << 20);
}

// Their differences would overflow.
TEST_F(Stream, RefusesTimesBeyondAllClocks) {
  constexpr std::int64_t kMax = std::int64_t{1} << 60;
  const struct {
    std::int64_t bound_ns;
    std::uint64_t late_ns;
    bool is_taken;
  } cases[] = {{INT64_MIN + 1, 0, false},
               {-kMax - 1, 0, false},
               {kMax + 1, 0, false},
               {INT64_MAX, 0, false},
               {0, monotonic_ns() + 2 * kAhead, false},
               {-kMax, 0, true}};
  for (const auto& each : cases) {
    control::Any packet;
    send(control::Ready{}, each.bound_ns, each.late_ns);
    EXPECT_EQ(take(packet), each.is_taken) << each.bound_ns;
    TearDown();
    SetUp();
  }
}

// Both ends of the protocol itself, on one clock.
TEST_F(Stream, TwoEndsAgreeOnOneClock) {
  ControlStream& here = *stream_;
  ControlStream there(ends_[1], ends_[1]);
  FrameHeader header;
  std::vector<std::uint8_t> bytes;
  control::Any packet;
  packet.packet = control::Packet::kReady;
  packet.ready = {};
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(here.send_packet(packet));
    ASSERT_EQ(there.receive(header, bytes, 0), control::Received::kPacket);
    ASSERT_TRUE(there.send_packet(packet));
    ASSERT_EQ(here.receive(header, bytes, 0), control::Received::kPacket);
  }
  control::Any run;
  run.packet = control::Packet::kRun;
  run.run_request = {};
  run.run_request.start_ns = monotonic_ns();
  control::Any received;
  ASSERT_TRUE(there.send_packet(run));
  ASSERT_EQ(here.receive(header, bytes, 0), control::Received::kPacket);
  ASSERT_TRUE(here.take_packet(bytes, memory_, received));
  const std::uint64_t before = run.run_request.start_ns;
  const std::uint64_t after = received.run_request.start_ns;
  EXPECT_LT(before > after ? before - after : after - before, 1'000'000'000u);
}

}  // namespace
}  // namespace espalier::node
