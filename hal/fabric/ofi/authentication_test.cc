#include "hal/fabric/ofi/authentication.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/random.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

Authentication::Secret secret_of(std::uint8_t value) {
  Authentication::Secret secret;
  secret.fill(value);
  return secret;
}

LaneEnd end(std::uint32_t node, std::uint32_t lane, std::uint8_t nonce) {
  LaneEnd end = {node, lane, {}};
  end.nonce.fill(nonce);
  return end;
}

// Both ends derive the same key for a direction, and every difference gives another key.
TEST(Authentication, KeysDependOnSecretEndsAndDirection) {
  Authentication one;
  Authentication two;
  one.set_secret(secret_of(1));
  two.set_secret(secret_of(2));
  EXPECT_NE(one.nonce(), two.nonce());
  const LaneEnd a = end(0, 3, 1);
  const LaneEnd b = end(1, 4, 2);
  std::set<std::array<std::uint8_t, 16>> keys;
  const std::vector<DirectionKey> derived = {one.derive(a, b),
                                             one.derive(b, a),
                                             two.derive(a, b),
                                             one.derive(end(2, 3, 1), b),
                                             one.derive(end(0, 5, 1), b),
                                             one.derive(end(0, 3, 9), b),
                                             one.derive(a, end(1, 4, 9))};
  for (const DirectionKey& key : derived) {
    keys.insert(key.words);
    keys.insert(key.data);
  }
  EXPECT_EQ(keys.size(), 2 * derived.size());
  EXPECT_EQ(one.derive(a, b).words, derived[0].words);
}

TEST(Authentication, CodesCoverKindNumberAndContents) {
  Authentication closed;
  closed.set_secret(secret_of(1));
  const DirectionKey key = closed.derive(end(0, 0, 1), end(1, 0, 2));
  MessageHeader header;
  std::set<std::uint64_t> codes;
  codes.insert(closed.word_code(key, Opcode::kEager, 5, &header, sizeof(header)));
  codes.insert(closed.word_code(key, Opcode::kEager, 5 + 256, &header, sizeof(header)));
  codes.insert(closed.word_code(key, Opcode::kPlacedWithHeader, 5, &header, sizeof(header)));
  codes.insert(closed.word_code(key, Opcode::kEager, 5));
  header.check = 1;
  codes.insert(closed.word_code(key, Opcode::kEager, 5, &header, sizeof(header)));
  EXPECT_EQ(codes.size(), 5u);
  for (const std::uint64_t code : codes) EXPECT_LE(code, kImmediateCodeMask);
  EXPECT_EQ(Authentication().word_code(key, Opcode::kEager, 5), 0u);
}

TEST(Authentication, ImmediateDataKeepsItsFields) {
  const Immediate immediate = {Opcode::kGreeting, 127, 200, kImmediateCodeMask};
  const Immediate read = unpack(pack(immediate));
  EXPECT_EQ(read.opcode, immediate.opcode);
  EXPECT_EQ(read.lane, immediate.lane);
  EXPECT_EQ(read.number, immediate.number);
  EXPECT_EQ(read.code, immediate.code);
  // Above 127 lanes the code is shorter.
  for (const std::uint32_t lane : {128u, 5000u, kMaxLaneIds - 1}) {
    const Immediate longer = unpack(pack({Opcode::kGoodbye, lane, 200, kImmediateCodeMask}));
    EXPECT_EQ(longer.opcode, Opcode::kGoodbye);
    EXPECT_EQ(longer.lane, lane);
    EXPECT_EQ(longer.number, 200);
    EXPECT_TRUE(has_code(longer, kImmediateCodeMask));
    EXPECT_FALSE(has_code(longer, kImmediateCodeMask - 1));
  }
  EXPECT_EQ(widen(3, 254), 259u);
  EXPECT_EQ(widen(254, 259), 254u);
}

AddedConfig with_secret(std::uint8_t value) {
  AddedConfig config;
  config.max_links = 1;
  config.has_secret = true;
  config.secret = secret_of(value);
  config.connect_deadline_ns = 300'000'000;
  return config;
}

TEST(Authentication, NodesWithOtherSecretsDoNotConnect) {
  const auto zero = or_throw(AddedLinks::open(for_node(with_secret(1), 0)));
  const auto one = or_throw(AddedLinks::open(for_node(with_secret(2), 1)));
  ASSERT_TRUE(zero->set_addresses({zero->address(), one->address()}));
  ASSERT_TRUE(one->set_addresses({zero->address(), one->address()}));
  EXPECT_FALSE(zero->set_secret(secret_of(2)));
  const std::uint32_t link = or_throw(zero->add_link(1));
  Result<bool> result = false;
  while (result && !*result) {
    result = zero->connect_links({&link, 1});
    Completion completion;
    EXPECT_FALSE(one->endpoint().poll(completion));
  }
  EXPECT_EQ(message_of(result), "node 1 did not connect within 300 ms");
  EXPECT_GT(one->rejected_words(), 0u);
  EXPECT_EQ(one->endpoint().links(), 0u);
}

TEST(Authentication, PayloadsNeedASecret) {
  AddedConfig config;
  config.max_links = 1;
  config.authenticate_data = true;
  const auto zero = or_throw(AddedLinks::open(config));
  EXPECT_EQ(message_of(zero->set_addresses({"", ""})),
            "node 0: authenticate_data needs a job secret");
}

TEST(Authentication, PayloadsAreAuthenticatedByAllNodesOrNone) {
  AddedConfig config = with_secret(1);
  const auto zero = or_throw(AddedLinks::open(for_node(config, 0)));
  config.authenticate_data = true;
  const auto one = or_throw(AddedLinks::open(for_node(config, 1)));
  ASSERT_TRUE(one->set_addresses({zero->address(), one->address()}));
  EXPECT_EQ(message_of(one->add_link(0)),
            "address of node 0: authenticate_data is off there and on here; expected the same on "
            "all nodes");
}

// Says which bytes can be read: write() fails for others. /proc/self/maps does not say: since glibc
// 2.42, a stack's guard is in the mapping of the stack (MADV_GUARD_INSTALL), which is rw-p.
class Prober {
 public:
  Prober() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Prober() {
    for (const int end : ends_) close(end);
  }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  [[nodiscard]] bool is_readable(std::uintptr_t address) const {
    std::uint8_t byte = 0;
    return write(ends_[1], reinterpret_cast<const void*>(address), 1) == 1 &&
           read(ends_[0], &byte, 1) == 1;
  }

 private:
  std::array<int, 2> ends_{};
};

// Inverts the bytes `text` wherever they are from `begin` to `end`, except in `text`. Returns how
// many copies there were.
int change_copies(std::uintptr_t begin, std::uintptr_t end, const std::vector<std::uint8_t>& text) {
  int copies = 0;
  auto* at = reinterpret_cast<std::uint8_t*>(begin);
  auto* const limit = reinterpret_cast<std::uint8_t*>(end);
  const auto left = [&] { return static_cast<std::size_t>(limit - at); };
  while ((at = static_cast<std::uint8_t*>(memmem(at, left(), text.data(), text.size())))) {
    if (at != text.data()) {
      ++copies;
      for (std::size_t i = 0; i < text.size(); ++i) at[i] = static_cast<std::uint8_t>(~at[i]);
    }
    at += text.size();
  }
  return copies;
}

// The same in all that this process can read and write.
int change_copies(const std::vector<std::uint8_t>& text) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const Prober prober;
  int copies = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (line.find(" rw-p ") == std::string::npos && line.find(" rw-s ") == std::string::npos)
      continue;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    while (begin < end) {
      std::uintptr_t limit = begin;
      while (limit < end && prober.is_readable(limit)) limit += page;
      if (limit > begin) copies += change_copies(begin, limit, text);
      begin = limit + page;
    }
  }
  return copies;
}

// With a secret, a message whose payload is changed in its slot completes with kCorrupt: a peer's
// key of the slots is in the traffic, so whoever reads that can write there.
TEST(Authentication, AChangedSlotIsFound) {
  FixedConfig config;
  config.has_secret = true;
  config.secret = secret_of(3);
  LocalEndpoints endpoints(config, {{1}, {0}});
  ASSERT_EQ(endpoints.error, "");
  std::vector<std::uint8_t> sent(64);
  std::vector<std::uint8_t> got(sent.size());
  for (const bool changed : {false, true}) {
    fill_randomly(sent.data(), sent.size());
    ASSERT_EQ(endpoints[0].post_send(0, {sent.data(), sent.size(), 1, 0, 0}), Status::kOk);
    Completion completion;
    bool is_sent = false;
    bool arrived = false;
    while (!arrived || !is_sent) {
      is_sent = endpoints[0].poll(completion) || is_sent;
      arrived = endpoints[1].poll(completion) || arrived;
    }
    EXPECT_EQ(completion.kind, Completion::Kind::kUnexpected);
    EXPECT_GE(changed ? change_copies(sent) : 1, 1);
    ASSERT_EQ(endpoints[1].post_receive(0, {got.data(), got.size(), 1, 0}), Status::kOk);
    while (!endpoints[1].poll(completion)) {
    }
    EXPECT_EQ(completion.kind, Completion::Kind::kReceived);
    EXPECT_EQ(completion.status, changed ? Status::kCorrupt : Status::kOk);
  }
}

// A long message whose payload is changed on its way completes with kCorrupt.
TEST(Authentication, AChangedPayloadIsFound) {
  FixedConfig config;
  config.has_secret = true;
  config.secret = secret_of(3);
  config.authenticate_data = true;
  LocalEndpoints endpoints(config, {{1}, {0}});
  ASSERT_EQ(endpoints.error, "");
  for (const bool changed : {false, true}) {
    // The provider reads the sender's memory after the code was made: here the sender changes the
    // last byte between any two calls. The message is longer than what the sockets take in one.
    std::vector<std::uint8_t> sent(16 << 20, 1);
    std::vector<std::uint8_t> got(sent.size());
    const Region region = {got.data(), got.size()};
    ASSERT_EQ(endpoints[1].prepare(&region, 1), Status::kOk);
    ASSERT_EQ(endpoints[1].post_receive(0, {got.data(), got.size(), 1, 0}), Status::kOk);
    ASSERT_EQ(endpoints[0].post_send(0, {sent.data(), sent.size(), 1, 0, 0}), Status::kOk);
    Completion completion;
    Completion ignored;
    bool is_sent = false;
    bool received = false;
    while (!received || !is_sent) {
      is_sent = endpoints[0].poll(ignored) || is_sent;
      if (changed) ++sent.back();
      if (!received) received = endpoints[1].poll(completion);
      if (received) (void)endpoints[1].poll(ignored);
    }
    EXPECT_EQ(completion.kind, Completion::Kind::kReceived);
    EXPECT_EQ(completion.status, changed ? Status::kCorrupt : Status::kOk);
  }
  EXPECT_EQ(endpoints.nodes[1]->rejected_words(), 0u);
}

}  // namespace
}  // namespace espalier::ofi
