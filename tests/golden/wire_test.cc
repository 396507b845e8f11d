// What leaves a process has these bytes on every target, whatever its byte order: the entries that
// endpoints write into each other's memory, packets, frames and records of logs.

#include "hal/fabric/ofi/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "espalier/internal/base/little_endian.h"
#include "espalier/internal/collectives/machine/event_log.h"
#include "firmware/bare/agent.h"
#include "firmware/node/stream.h"
#include "firmware/update/update.h"
#include "hal/fabric/address.h"
#include "hal/mem/host/segment.h"
#include "hal/mem/inbox.h"

namespace espalier {
namespace {

constexpr std::uint32_t kShort = 0x01020304;
constexpr std::uint64_t kLong = 0x0102030405060708;

// The bytes of a value.
template <typename T>
class Bytes {
 public:
  explicit Bytes(const T& value) { std::memcpy(bytes_.data(), &value, sizeof value); }
  // Returns the little-endian numbers at these offsets.
  [[nodiscard]] std::uint32_t u32(std::size_t offset) const { return load_u32(&bytes_[offset]); }
  [[nodiscard]] std::uint64_t u64(std::size_t offset) const { return load_u64(&bytes_[offset]); }

 private:
  std::array<std::uint8_t, sizeof(T)> bytes_ = {};
};

TEST(Wire, EntriesOfLibfabric) {
  const Bytes header(ofi::MessageHeader{kLong, 1, kShort, 3, 4});
  EXPECT_EQ(header.u64(0), kLong);
  EXPECT_EQ(header.u32(8), 1u);
  EXPECT_EQ(header.u32(12), kShort);
  EXPECT_EQ(header.u32(20), 4u);
  const Bytes clear(ofi::ClearToSendEntry{1, 2, kLong, 4, 5, kShort, 6, 7});
  EXPECT_EQ(clear.u64(16), kLong);
  EXPECT_EQ(clear.u32(36), kShort);
  EXPECT_EQ(clear.u64(48), 7u);
  EXPECT_EQ(Bytes(ofi::RequestToSendEntry{1, kLong}).u64(8), kLong);
  const Bytes control(ofi::ControlEntry{kLong, 1, 2, kShort, 4, 0, 7});
  EXPECT_EQ(control.u64(0), kLong);
  EXPECT_EQ(control.u32(16), kShort);
  EXPECT_EQ(control.u32(20), 4u);
  EXPECT_EQ(control.u64(24), 0u);
  EXPECT_EQ(control.u64(32), 7u);
  const Bytes greeting(ofi::GreetingEntry{1, kShort, 1, 5, kLong});
  EXPECT_EQ(greeting.u32(4), kShort);
  EXPECT_EQ(greeting.u32(12), 5u);
  EXPECT_EQ(greeting.u64(16), kLong);
}

TEST(Wire, Addresses) {
  ofi::AddressHead head{.lane = kShort, .key = kLong, .greetings_key = kLong - 1};
  head.nonce[0] = 0x99;
  const Bytes bytes(head);
  EXPECT_EQ(bytes.u32(0), 0x35495045u);
  EXPECT_EQ(bytes.u32(12), kShort);
  EXPECT_EQ(bytes.u64(40), kLong);
  EXPECT_EQ(bytes.u64(56), kLong - 1);
  EXPECT_EQ(bytes.u32(72), 0x99u);
}

TEST(Wire, SharedMemory) {
  mem::Entry entry = {};
  entry.number.store(kShort, std::memory_order_relaxed);
  entry.check = 2;
  entry.place = kLong;
  std::array<std::uint8_t, sizeof entry> bytes;
  std::memcpy(bytes.data(), static_cast<const void*>(&entry), sizeof entry);
  EXPECT_EQ(load_u32(bytes.data()), kShort);
  EXPECT_EQ(load_u32(&bytes[4]), 2u);
  EXPECT_EQ(load_u64(&bytes[24]), kLong);
  EXPECT_EQ(entry.number.load(std::memory_order_relaxed), kShort);
  mem::SegmentHead head = {};
  head.magic = mem::SegmentHead::kMagic;
  head.memory_file = -2;
  head.memory_bytes = kLong;
  head.users.store(kShort, std::memory_order_relaxed);
  head.kilobytes = 3;
  std::memcpy(bytes.data(), static_cast<const void*>(&head), sizeof head);
  EXPECT_EQ(load_u64(bytes.data()), 0x34304d454d505345u);
  EXPECT_EQ(load_u32(&bytes[36]), 0xfffffffeu);
  EXPECT_EQ(load_u64(&bytes[40]), kLong);
  EXPECT_EQ(load_u32(&bytes[48]), kShort);
  EXPECT_EQ(load_u32(&bytes[52]), 3u);
}

TEST(Wire, PacketsOfBoards) {
  agent::Hello hello;
  hello.topology_digest = kLong;
  hello.links = kShort;
  hello.slots[1].sequence = 5;
  const Bytes of_hello(hello);
  EXPECT_EQ(of_hello.u32(0), 1u);
  EXPECT_EQ(of_hello.u32(4), agent::kVersion);
  EXPECT_EQ(of_hello.u32(68), 5u);
  EXPECT_EQ(of_hello.u64(80), kLong);
  EXPECT_EQ(of_hello.u32(128), kShort);
  agent::RunRequest request{.schedule = kLong, .events = 7};
  const Bytes of_request(request);
  EXPECT_EQ(of_request.u32(0), 17u);
  EXPECT_EQ(of_request.u64(8), kLong);
  EXPECT_EQ(of_request.u64(24), 1u);
  EXPECT_EQ(of_request.u32(40), 7u);
  agent::Report report{.stall_step = -2};
  EXPECT_EQ(Bytes(report).u64(64), std::uint64_t(-2));
  EXPECT_EQ(Bytes(agent::Want{agent::Kind::kWant, kShort}).u32(4), kShort);
}

TEST(Wire, Updates) {
  UpdateOrder order{.release = kShort, .digest = kLong};
  const Bytes bytes(order);
  EXPECT_EQ(bytes.u32(0), UpdateOrder::kMagic);
  EXPECT_EQ(bytes.u32(12), kShort);
  EXPECT_EQ(bytes.u64(32), kLong);
}

TEST(Wire, FramesOfStreams) {
  const Bytes bytes(node::FrameHeader{node::Frame::kBytes, kShort, kLong, 4, -2});
  EXPECT_EQ(bytes.u32(0), 5u);
  EXPECT_EQ(bytes.u32(4), kShort);
  EXPECT_EQ(bytes.u64(8), kLong);
  EXPECT_EQ(bytes.u64(24), std::uint64_t(-2));
}

TEST(Wire, RecordsOfLogs) {
  Event event{.step = kShort, .block = 3, .action = 9};
  const Bytes bytes(event);
  EXPECT_EQ(bytes.u32(0), kShort);
  EXPECT_EQ(bytes.u32(8), 3u);
  EXPECT_EQ(bytes.u32(12) & 0xff, 9u);
  const Bytes times(EventTimes{1, 2, kLong, 4});
  EXPECT_EQ(times.u64(16), kLong);
}

}  // namespace
}  // namespace espalier
