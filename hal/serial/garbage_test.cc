// Arbitrary bytes from a carrier: only the memory of posted receives is written, only that of
// posted sends is read (the sanitizers check this), and agreed messages stay unchanged.

#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"
#include "hal/serial/siphash.h"
#include "hal/serial/testing/hub.h"

namespace espalier {
namespace {

using Frame = serial::Hub::Frame;

constexpr std::uint8_t kPeersKey[16] = {4, 4, 4, 4, 5, 5, 5, 5};

// The code of what `from` sends over the only link.
void put_code_right(Frame& frame, std::uint32_t from) {
  frame[serial::header::kFormat.offset] = serial::kCodedFormat;
  const std::size_t covered = frame.size() - serial::kCodeBytes;
  serial::SipHash hash(kPeersKey);
  hash.add(std::uint64_t{from} | std::uint64_t{1 - from} << 32);
  std::uint8_t* channel = frame.data() + serial::header::kChannel.offset;
  const std::uint8_t kept = *channel;
  *channel = 0;
  store_le(frame.data() + covered, hash.finish(frame.data(), static_cast<std::uint32_t>(covered)),
           8);
  *channel = kept;
}

void put_right(Frame& frame) {
  const std::size_t covered = frame.size() - serial::kCrcBytes;
  store_le(frame.data() + covered, crc32(0, frame.data(), covered), 4);
}

// Changes a few bytes, most of them in numbers and sizes.
void mutate(Frame& frame, std::mt19937& random) {
  for (std::uint32_t change = 1 + random() % 4; change > 0; --change) {
    const std::size_t limit = random() % 2 == 0 ? 60 : frame.size();
    std::uint8_t& byte = frame[1 + random() % (std::min(limit, frame.size()) - 1)];
    switch (random() % 4) {
      case 0: byte ^= static_cast<std::uint8_t>(1u << random() % 8); break;
      case 1: byte = static_cast<std::uint8_t>(byte + random() % 5 - 2); break;
      case 2: byte = random() % 2 == 0 ? 0xff : 0; break;
      default: byte = static_cast<std::uint8_t>(random()); break;
    }
  }
  if (random() % 8 == 0) frame.resize(52 + random() % (frame.size() - 35));
}

// A seed, and whether the peers have a key.
class Garbage : public testing::TestWithParam<std::tuple<unsigned, bool>> {};

// Two nodes communicate. Each frame is followed by mutants of it with correct checksums or, from a
// hostile peer that has the key, codes. Many of them belong to the session and are newer than all
// earlier frames.
TEST_P(Garbage, LeavesAllOtherMemoryUntouched) {
  constexpr std::size_t kGuard = 64, kSize = 3000;
  const auto [seed, keyed] = GetParam();
  std::mt19937 random(seed);
  serial::CarrierFaults faults;
  serial::Hub hub({{1}, {0}}, faults);
  SerialConfig config{.session = 5};
  if (keyed) config.key = kPeersKey;
  serial::SerialNode left(hub, 0, {1}, config), right(hub, 1, {0}, config);
  SerialEndpoint* ends[2] = {&left.endpoint(), &right.endpoint()};
  bool injecting = false;
  hub.watch([&, keyed = keyed](std::uint32_t from, const Frame& frame) {
    if (injecting) return;
    injecting = true;
    for (std::uint32_t copies = random() % 3; copies > 0; --copies) {
      Frame other = frame;
      mutate(other, random);
      if (random() % 2 == 0) {
        using serial::header::kSequence;
        serial::set<kSequence>(other.data(), serial::get<kSequence>(frame.data()) + 1);
      };
      keyed ? put_code_right(other, from) : put_right(other);
      hub.inject(1 - from, other);
    }
    injecting = false;
  });
  std::vector<std::uint8_t> in[2], out[2];
  for (int v = 0; v < 2; ++v) {
    in[v].assign(kSize + 2 * kGuard, 0x5a);
    out[v].assign(kSize, 0x77);
  }
  for (int round = 0; round < 4000; ++round) {
    const auto v = random() % 2;
    const std::uint64_t size = random() % 3 == 0 ? random() % 40 : random() % (kSize + 1);
    // Refusals are correct if windows are full of posts that never complete.
    static_cast<void>(ends[v]->post_receive(0, {in[v].data() + kGuard, size, size, 1}));
    static_cast<void>(ends[1 - v]->post_send(0, {out[1 - v].data(), size, size, 0, 2}));
    static_cast<void>(ends[v]->post_control(0, {}));
    for (int polls = 0; polls < 20; ++polls) {
      for (SerialEndpoint* end : ends) {
        Completion completion;
        while (end->poll(completion)) ASSERT_LT(completion.link, 1u);
      }
      static_cast<void>(hub.advance(hub.now() + 10'000'000));
    }
    for (const auto& memory : in) {
      for (std::size_t i = 0; i < kGuard; ++i) {
        ASSERT_EQ(memory[i], 0x5a);
        ASSERT_EQ(memory[kGuard + kSize + i], 0x5a);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Garbage, testing::Combine(testing::Range(1u, 9u), testing::Bool()));

}  // namespace
}  // namespace espalier
