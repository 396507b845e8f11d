// Links with a key: the codes of their frames, peers without it, and someone on the line who
// records, replays, reorders and forges frames.

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"
#include "hal/serial/siphash.h"
#include "hal/serial/testing/hub.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;
using serial::Hub;
using Reason = SerialRejections::Reason;

constexpr std::uint8_t kKey[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
constexpr std::uint8_t kOtherKey[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 4};

// The vectors of the reference implementation (key 0 to 15, input 0, 1, 2, ...), some as published
// and all as libsodium computes them.
TEST(SipHash, HasTheReferencesVectors) {
  constexpr std::uint64_t kPublished[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd,
                                          0x0d6c8009d9a94f5a};
  std::uint8_t key[16], input[64];
  for (std::uint8_t k = 0; k < 16; ++k) key[k] = k;
  for (std::uint8_t k = 0; k < 64; ++k) input[k] = k;
  for (std::uint32_t size = 0; size < 64; ++size) {
    std::uint8_t expected[8];
    ASSERT_EQ(crypto_shorthash(expected, input, size, key), 0);
    const std::uint64_t code = serial::SipHash(key).finish(input, size);
    EXPECT_EQ(code, load_u64(expected)) << size;
    if (size < 3) {
      EXPECT_EQ(code, kPublished[size]);
    }
    if (size == 15) {
      EXPECT_EQ(code, 0xa129ca6149be45e5u) << "the paper's example";
    }
    if (size < 8) continue;
    serial::SipHash parts(key);
    parts.add(load_u64(input));
    EXPECT_EQ(parts.finish(input + 8, size - 8), code);
  }
}

// Two nodes with two links between them. The hub does not know the key.
class Codes : public testing::Test {
 protected:
  explicit Codes(const serial::CarrierFaults& faults = {}) : hub_({{1, 1}, {0, 0}}, faults) {}

  void start(std::uint32_t v, const std::uint8_t* key, std::uint32_t session) {
    SerialConfig config{.session = session, .key = key, .nonce = 7 * session};
    nodes_[v] = std::make_unique<serial::SerialNode>(
        hub_, v, std::vector<std::uint32_t>{1 - v, 1 - v}, config);
  }
  SerialEndpoint& end(std::uint32_t v) { return nodes_[v]->endpoint(); }
  // Runs until `ns` later, or until both ends completed `completions`.
  void run(std::uint64_t ns, std::uint32_t completions = UINT32_MAX) {
    const std::uint64_t until = hub_.now() + ns;
    while (hub_.now() < until && std::min(done_[0].size(), done_[1].size()) < completions) {
      bool any = false;
      for (std::uint32_t v = 0; v < 2; ++v) {
        Completion completion;
        while (end(v).poll(completion)) {
          any = true;
          done_[v].push_back(completion);
        }
      }
      if (!any) static_cast<void>(hub_.advance(until));
    }
  }
  // Posts a message on each link in each direction, and checks what arrives.
  void exchange(std::uint32_t round) {
    Bytes out[2][2], in[2][2];
    for (std::uint32_t v = 0; v < 2; ++v) {
      done_[v].clear();
      for (std::uint32_t link = 0; link < 2; ++link) {
        const std::size_t size = 1 + (round * 37 + link * 11 + v) % 300;
        out[v][link].assign(size, static_cast<std::uint8_t>(round * 4 + link * 2 + v));
        in[1 - v][link].resize(size);
      }
    }
    for (std::uint32_t v = 0; v < 2; ++v) {
      for (std::uint32_t link = 0; link < 2; ++link) {
        // The tag is the same in all rounds, so that a frame of another round would fit.
        ASSERT_EQ(end(v).post_send(link, {out[v][link].data(), out[v][link].size(), 1, round, 5}),
                  Status::kOk);
        ASSERT_EQ(end(v).post_receive(link, {in[v][link].data(), in[v][link].size(), 1, 6}),
                  Status::kOk);
      }
    }
    run(60'000'000'000, 4);
    for (std::uint32_t v = 0; v < 2; ++v) {
      ASSERT_EQ(done_[v].size(), 4u) << "node " << v << " in round " << round;
      for (const Completion& completion : done_[v]) {
        ASSERT_TRUE(completion.kind == Completion::Kind::kSent ||
                    completion.kind == Completion::Kind::kReceived);
        ASSERT_EQ(completion.status, Status::kOk);
        if (completion.kind != Completion::Kind::kReceived) continue;
        ASSERT_EQ(completion.check, round);
      }
      for (std::uint32_t link = 0; link < 2; ++link) ASSERT_EQ(in[v][link], out[1 - v][link]);
    }
  }

  Hub hub_;
  std::unique_ptr<serial::SerialNode> nodes_[2];
  std::vector<Completion> done_[2];
};

TEST_F(Codes, ConnectEndsWithTheSameKey) {
  start(0, kKey, 100);
  start(1, kKey, 200);
  exchange(1);
  EXPECT_EQ(end(0).rejections().frames, 0u);
  EXPECT_EQ(end(1).rejections().frames, 0u);
}

// The first frame of node 0 on link 1, byte by byte. Its code is computed by libsodium.
TEST_F(Codes, HaveTheDocumentedFormat) {
  Hub::Frame first;
  hub_.watch([&](std::uint32_t from, const Hub::Frame& frame) {
    if (from == 0 && first.empty()) first = frame;
  });
  start(0, kKey, 0x01020304);
  start(1, kKey, 200);
  ASSERT_EQ(end(0).post_control(1, {}), Status::kOk);
  run(1'000);
  Bytes expected(32);
  expected[0] = 0xe2;
  expected[1] = 1;  // channel
  store_le(&expected[4], 0x01020304, 4);
  store_le(&expected[12], 1, 4);
  expected.resize(52);
  store_le(&expected[32], 7 * 0x01020304, 4);  // the challenge: the nonce, and no session admitted
  Bytes covered(8);
  store_le(&covered[4], 1, 4);  // sender 0, receiver 1
  covered.insert(covered.end(), expected.begin(), expected.begin() + 44);
  covered[8 + 1] = 1;  // the second link between the two
  ASSERT_EQ(crypto_shorthash(&expected[44], covered.data(), covered.size(), kKey), 0);
  EXPECT_EQ(first, expected);
}

TEST_F(Codes, DoNotConnectEndsWithDifferentKeys) {
  const struct {
    const std::uint8_t* keys[2];
    Reason reasons[2];
  } cases[] = {{{kKey, kOtherKey}, {Reason::kWrongCode, Reason::kWrongCode}},
               {{kKey, nullptr}, {Reason::kNoKeyThere, Reason::kNoKeyHere}},
               {{nullptr, kKey}, {Reason::kNoKeyHere, Reason::kNoKeyThere}}};
  for (const auto& each : cases) {
    for (std::uint32_t v = 0; v < 2; ++v) start(v, each.keys[v], 100 + v);
    std::uint8_t byte = 0;
    for (std::uint32_t v = 0; v < 2; ++v) {
      ASSERT_EQ(end(v).post_send(1, {&byte, 1, 1, 0, 0}), Status::kOk);
      ASSERT_EQ(end(v).post_receive(1, {&byte, 1, 1, 0}), Status::kOk);
      done_[v].clear();
    }
    run(1'000'000'000);
    for (std::uint32_t v = 0; v < 2; ++v) {
      EXPECT_TRUE(done_[v].empty());
      EXPECT_GT(end(v).rejections().frames, 3u);
      EXPECT_EQ(end(v).rejections().link, 1u);
      EXPECT_EQ(end(v).rejections().reason, each.reasons[v]);
    }
  }
}

// Frames with a correct CRC cannot take part in a link with a key.
TEST_F(Codes, AreNotReplacedByACrc) {
  start(0, kKey, 100);
  start(1, kKey, 200);
  hub_.watch([this](std::uint32_t from, const Hub::Frame& frame) {
    Hub::Frame forged = frame;
    forged.resize(frame.size() - serial::kTrailerBytes + serial::kCrcBytes);
    serial::set<serial::header::kFormat>(forged.data(), serial::kFormat);
    serial::set<serial::header::kSequence>(
        forged.data(), serial::get<serial::header::kSequence>(frame.data()) + 1000);
    const std::size_t covered = forged.size() - serial::kCrcBytes;
    store_le(forged.data() + covered, crc32(0, forged.data(), covered), 4);
    hub_.inject(1 - from, forged);
  });
  for (std::uint32_t round = 0; round < 20; ++round) exchange(round);
}

// Each frame is delivered once more on the other link, to its own sender, or both: it is counted as
// not authentic, so it belongs to one link and one direction only.
TEST_F(Codes, AreOfOneLinkAndOneDirection) {
  std::uint64_t injected[2] = {};
  hub_.watch([&](std::uint32_t from, const Hub::Frame& frame) {
    for (const bool reflected : {false, true}) {
      for (const bool other_link : {false, true}) {
        if (!reflected && !other_link) continue;
        Hub::Frame copy = frame;
        const std::uint32_t link = serial::get<serial::header::kChannel>(frame.data());
        serial::set<serial::header::kChannel>(copy.data(), other_link ? 1 - link : link);
        const std::uint32_t to = reflected ? from : 1 - from;
        hub_.inject(to, copy);
        ++injected[to];
      }
    }
  });
  start(0, kKey, 100);
  start(1, kKey, 100);  // the same session at both ends, which is allowed
  for (std::uint32_t round = 0; round < 5; ++round) exchange(round);
  run(1'000'000);
  for (std::uint32_t v = 0; v < 2; ++v) {
    EXPECT_GT(injected[v], 30u);
    EXPECT_EQ(end(v).rejections().frames, injected[v]);
    EXPECT_EQ(end(v).rejections().reason, Reason::kWrongCode);
  }
}

// Someone is on the line.
class OnTheLine : public Codes {
 protected:
  OnTheLine() : Codes({.lose = 0.05, .repeat = 0.05, .delay = 0.05, .seed = 3}) {}

  // Node v says hello on both links.
  void greet(std::uint32_t v) {
    done_[0].clear(), done_[1].clear();
    for (std::uint32_t link = 0; link < 2; ++link) {
      EXPECT_EQ(end(v).post_control(link, {}), Status::kOk);
    }
    run(1'000'000'000);
  }

  // Nodes with `key` exchange messages and restart, while frames are followed by earlier ones, on
  // either link and in either direction, or by forgeries. Returns the number of restarts that
  // the nodes saw.
  std::uint32_t attack(const std::uint8_t* key, std::uint32_t restarts, std::uint32_t rounds) {
    std::vector<std::pair<std::uint32_t, Hub::Frame>> kept;  // sender, frame
    std::uint64_t injected = 0;
    std::mt19937 random(11);
    hub_.watch([&](std::uint32_t from, const Hub::Frame& frame) {
      kept.emplace_back(from, frame);
      for (std::uint32_t copies = random() % 4; copies > 0; --copies) {
        const std::size_t newest = kept.size() - 1;
        const bool late = random() % 2 == 0;
        auto [sender, other] =
            kept[newest - random() % std::min<std::size_t>(newest + 1, late ? newest + 1 : 8)];
        if (random() % 3 == 0) forge(other, random);
        const std::uint32_t to = random() % 4 == 0 ? sender : 1 - sender;
        if (random() % 4 == 0) serial::set<serial::header::kChannel>(other.data(), random() % 2);
        hub_.inject(to, other);
        ++injected;
      }
    });
    std::uint32_t seen = 0, session = 500;
    start(0, key, ++session);
    start(1, key, ++session);
    for (std::uint32_t life = 0; life <= restarts; ++life) {
      for (std::uint32_t round = 0; round < rounds; ++round) {
        exchange(life * rounds + round);
        if (testing::Test::HasFailure()) return seen;
      }
      if (life == restarts) break;
      const std::uint32_t v = random() % 2;
      start(v, key, ++session);
      // The other node sees the restart on both links.
      greet(v);
      for (const Completion& completion : done_[1 - v]) {
        seen += completion.kind == Completion::Kind::kLinkDown;
      }
      for (const Completion& completion : done_[v]) {
        EXPECT_NE(completion.kind, Completion::Kind::kLinkDown);
      }
    }
    std::printf("  %llu frames sent, %llu injected\n",
                static_cast<unsigned long long>(hub_.frames()),
                static_cast<unsigned long long>(injected));
    EXPECT_GT(injected, hub_.frames());
    return seen;
  }

 private:
  // Changes the frame, and its checksum if it has one. If a frame has a code, only random changes
  // are possible.
  static void forge(Hub::Frame& frame, std::mt19937& random) {
    const bool coded = serial::get<serial::header::kFormat>(frame.data()) == serial::kCodedFormat;
    const std::uint32_t ahead = random() % 3;
    const std::uint32_t sequence = serial::get<serial::header::kSequence>(frame.data());
    serial::set<serial::header::kSequence>(frame.data(), sequence + ahead);
    frame[4 + random() % (frame.size() - 4)] ^= static_cast<std::uint8_t>(1u << random() % 8);
    if (coded && random() % 2 == 0) {
      frame[0] = serial::kFormat;
      frame.resize(frame.size() - serial::kTrailerBytes + serial::kCrcBytes);
    } else if (coded) {
      return;
    }
    const std::size_t covered = frame.size() - serial::kCrcBytes;
    store_le(frame.data() + covered, crc32(0, frame.data(), covered), 4);
  }
};

TEST_F(OnTheLine, ChangesNothingOfLinksWithAKey) {
  constexpr std::uint32_t kRestarts = 40;
  EXPECT_EQ(attack(kKey, kRestarts, 20), 2 * kRestarts);
  EXPECT_GT(end(0).rejections().frames, 100u);
}

// A session that is gone stays gone, however many came after it, though its frames are authentic.
TEST_F(OnTheLine, CannotBringBackAnEarlierSession) {
  std::vector<std::pair<std::uint32_t, Hub::Frame>> kept;
  hub_.watch([&](std::uint32_t from, const Hub::Frame& frame) { kept.emplace_back(from, frame); });
  start(0, kKey, 100);
  std::uint32_t session = 200;
  for (int life = 0; life < 5; ++life) {
    start(1, kKey, ++session);
    greet(1);
    exchange(static_cast<std::uint32_t>(life));
  }
  done_[0].clear(), done_[1].clear();
  const auto old = kept;
  for (const auto& [from, frame] : old) {
    hub_.inject(1 - from, frame);
    run(100'000);
  }
  EXPECT_TRUE(done_[0].empty()) << "session 201 was believed again";
  EXPECT_TRUE(done_[1].empty());
  exchange(9);
}

}  // namespace
}  // namespace espalier
