#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "espalier/hal/serial/carrier.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Bytes that were put can be got; at most `room` bytes.
class Loop final : public ByteStream {
 public:
  explicit Loop(std::size_t room) : room(room) {}
  [[nodiscard]] bool put(std::uint8_t byte) override {
    if (bytes.size() >= room) return false;
    bytes.push_back(byte);
    return true;
  }
  [[nodiscard]] bool get(std::uint8_t& byte) override {
    if (bytes.empty()) return false;
    byte = bytes.front();
    bytes.pop_front();
    return true;
  }
  std::deque<std::uint8_t> bytes;
  std::size_t room;
};

Bytes stuffed(const Bytes& frame) {
  Loop loop(10'000);
  ByteCarrier carrier(loop, 2000);
  EXPECT_EQ(carrier.send(frame.data(), static_cast<std::uint32_t>(frame.size())), Status::kOk);
  return {loop.bytes.begin(), loop.bytes.end()};
}

Bytes counting(std::uint8_t from, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(from + i);
  return bytes;
}

// The examples of the paper's section 3, and runs around the maximum length.
TEST(ByteCarrier, StuffsAsThePaperSays) {
  EXPECT_EQ(stuffed({0x00}), (Bytes{1, 1, 0}));
  EXPECT_EQ(stuffed({0x00, 0x00}), (Bytes{1, 1, 1, 0}));
  EXPECT_EQ(stuffed({0x11, 0x22, 0x00, 0x33}), (Bytes{3, 0x11, 0x22, 2, 0x33, 0}));
  EXPECT_EQ(stuffed({0x11, 0x22, 0x33, 0x44}), (Bytes{5, 0x11, 0x22, 0x33, 0x44, 0}));
  EXPECT_EQ(stuffed({0x11, 0x00, 0x00, 0x00}), (Bytes{2, 0x11, 1, 1, 1, 0}));
  Bytes expected = counting(1, 254);
  expected.insert(expected.begin(), 0xff);
  expected.push_back(0);
  EXPECT_EQ(stuffed(counting(1, 254)), expected);
  expected.pop_back();
  expected.insert(expected.end(), {2, 0xff, 0});
  EXPECT_EQ(stuffed(counting(1, 255)), expected);
  Bytes zero_last = counting(1, 254);
  zero_last.push_back(0);
  expected.resize(255);
  expected.insert(expected.end(), {1, 1, 0});
  EXPECT_EQ(stuffed(zero_last), expected);
}

// Through a stream that takes few bytes at a time, so that both ends stop at every position.
TEST(ByteCarrier, CarriesAnyFrame) {
  std::mt19937 random(1);
  for (std::size_t room = 1; room < 40; room += 3) {
    Loop loop(room);
    ByteCarrier out(loop, 700), in(loop, 700);
    Bytes got(700);
    for (std::uint32_t round = 0; round < 150; ++round) {
      Bytes frame(1 + random() % 700);
      const unsigned zeros = 1 + random() % 400;
      for (auto& byte : frame) {
        byte = random() % zeros == 0 ? 0 : static_cast<std::uint8_t>(1 + random() % 255);
      }
      const auto size = static_cast<std::uint32_t>(frame.size());
      std::uint32_t came = 0;
      while (out.send(frame.data(), size) == Status::kTryAgain) {
        ASSERT_EQ(came = in.receive(got.data()), 0u);
      }
      while (came == 0) came = in.receive(got.data());
      ASSERT_EQ(came, size);
      ASSERT_TRUE(std::equal(frame.begin(), frame.end(), got.begin()));
    }
  }
}

// After any damage, the frame after the next zero is decoded correctly, and no byte is written
// beyond the mtu.
TEST(ByteCarrier, FindsTheNextFrameAfterAnyDamage) {
  constexpr std::uint32_t kMtu = 64;
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    Loop loop(100'000);
    ByteCarrier carrier(loop, kMtu);
    Bytes got(kMtu + 16, 0x5a);
    const std::size_t garbage = random() % 400;
    for (std::size_t i = 0; i < garbage; ++i) {
      loop.bytes.push_back(static_cast<std::uint8_t>(random() % 20 == 0 ? 0 : random()));
    }
    loop.bytes.push_back(0);
    const Bytes frame = counting(static_cast<std::uint8_t>(random()), 1 + random() % kMtu);
    const Bytes stuffing = stuffed(frame);
    loop.bytes.insert(loop.bytes.end(), stuffing.begin(), stuffing.end());
    std::uint32_t size = 0;
    while (!loop.bytes.empty()) {
      size = carrier.receive(got.data());
      ASSERT_LE(size, kMtu);
    }
    ASSERT_EQ(size, frame.size());
    ASSERT_TRUE(std::equal(frame.begin(), frame.end(), got.begin()));
    for (std::size_t i = kMtu; i < got.size(); ++i) ASSERT_EQ(got[i], 0x5a);
  }
}

TEST(ByteCarrier, DropsFramesAboveTheMtu) {
  Loop loop(10'000);
  ByteCarrier sender(loop, 2000), receiver(loop, 100);
  Bytes got(100);
  const Bytes just = counting(0, 100), over = counting(0, 101);
  ASSERT_EQ(sender.send(over.data(), 101), Status::kOk);
  ASSERT_EQ(sender.send(just.data(), 100), Status::kOk);
  EXPECT_EQ(receiver.receive(got.data()), 0u) << "it takes a bounded number of bytes per call";
  EXPECT_EQ(receiver.receive(got.data()), 100u);
  EXPECT_EQ(got, just);
}

}  // namespace
}  // namespace espalier
