#include "firmware/node/control.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include "base/testing/results.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/node/mapping.h"
#include "firmware/node/wire_up.h"

namespace espalier::control {
namespace {

class Channel : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(open_channel(launcher_, node_)); }
  void TearDown() override {
    if (launcher_ >= 0) close(launcher_);
    if (node_ >= 0) close(node_);
  }
  // What arrives at an end, in `packet` and `descriptor`.
  Received take(int end, int timeout_ms = 0) {
    return receive(end, packet, descriptor, timeout_ms);
  }
  int launcher_ = -1, node_ = -1;
  Any packet;
  int descriptor = -1;
};

TEST_F(Channel, CarriesPacketsInOrder) {
  ASSERT_TRUE(send(launcher_, RunRequest{.number = 9, .count = 1ull << 40}));
  ASSERT_TRUE(send(launcher_, Ask{}));
  ASSERT_EQ(take(node_), Received::kPacket);
  EXPECT_EQ(packet.packet, Packet::kRun);
  EXPECT_EQ(packet.run_request.count, 1ull << 40);
  EXPECT_EQ(descriptor, -1);
  ASSERT_EQ(take(node_), Received::kPacket);
  EXPECT_EQ(packet.packet, Packet::kAsk);
  EXPECT_EQ(take(node_), Received::kNothing);
  EXPECT_EQ(take(node_, 5), Received::kNothing);
}

// On every target, so that processes of one machine may have different byte orders.
TEST_F(Channel, NumbersAreLittleEndian) {
  RunRequest request{.number = 0x01020304, .schedule = 0x0102030405060708};
  ASSERT_TRUE(send(launcher_, request));
  std::uint8_t bytes[sizeof(Any)];
  ASSERT_EQ(recv(node_, bytes, sizeof bytes, 0), static_cast<ssize_t>(sizeof request));
  EXPECT_EQ(load_u32(bytes), 18u);
  EXPECT_EQ(load_u32(bytes + 4), 0x01020304u);
  EXPECT_EQ(load_u64(bytes + 16), 0x0102030405060708u);
  EXPECT_EQ(load_u64(bytes + offsetof(RunRequest, repetitions)), 1u);
  ASSERT_EQ(::send(launcher_, bytes, sizeof request, 0), static_cast<ssize_t>(sizeof request));
  ASSERT_EQ(take(node_), Received::kPacket);
  EXPECT_EQ(packet.run_request.schedule, request.schedule);
}

TEST_F(Channel, CarriesMemory) {
  const int memory = memfd_create("test", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  ASSERT_EQ(write(memory, "block", 5), 5);
  ASSERT_TRUE(send(launcher_, Memory{}, memory));
  close(memory);
  ASSERT_EQ(take(node_), Received::kPacket);
  ASSERT_GE(descriptor, 0);
  char bytes[5];
  ASSERT_EQ(pread(descriptor, bytes, 5, 0), 5);
  EXPECT_EQ(std::memcmp(bytes, "block", 5), 0);
  close(descriptor);
}

TEST(Mapping, RefusesAFileThatIsShorter) {
  const int memory = memfd_create("test", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  ASSERT_EQ(ftruncate(memory, 8192), 0);
  node::Mapping mapping;
  EXPECT_TRUE(mapping.map(4096, memory, 4096, true));
  for (const auto& [size, offset] :
       {std::pair{8193ull, 0ull}, {4097ull, 4096ull}, {1ull, 12288ull}, {~0ull, 4096ull}}) {
    EXPECT_FALSE(mapping.map(size, memory, offset, true)) << size << " at " << offset;
    EXPECT_EQ(errno, EINVAL);
  }
  close(memory);
}

TEST(Mapping, RefusesMoreThanTheAddressSpace) {
  node::Mapping mapping;
  // On targets of 32 bits the lower half of the first size is one page.
  for (const std::uint64_t size : {(std::uint64_t{1} << 32) + 4096, std::uint64_t{1} << 63}) {
    if (size >> 32 == 1 && sizeof(std::size_t) == 8) continue;
    EXPECT_FALSE(mapping.map(size, -1, 0, true)) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    EXPECT_EQ(mapping.size(), 0u);
  }
}

TEST_F(Channel, ReportsTheEndOfTheOtherSide) {
  close(launcher_);
  launcher_ = -1;
  EXPECT_EQ(take(node_, -1), Received::kEnd);
  EXPECT_FALSE(send(node_, Ready{}));
}

TEST_F(Channel, RefusesOtherBytes) {
  const std::uint32_t unknown = 77;
  ASSERT_TRUE(send_packet(launcher_, &unknown, sizeof unknown, -1, 0));
  EXPECT_EQ(take(node_), Received::kBad);
  const RunRequest request;
  ASSERT_TRUE(send_packet(launcher_, &request, sizeof request - 8, -1, 0));
  EXPECT_EQ(take(node_), Received::kBad) << "a short packet";
  ASSERT_TRUE(send_packet(launcher_, "x", 1, -1, 0));
  EXPECT_EQ(take(node_), Received::kBad);
}

TEST_F(Channel, RefusesFlagsThatAreNeither0Nor1) {
  for (const std::size_t flag : {offsetof(Report, stall) + offsetof(StallReport, waiting),
                                 offsetof(Report, stall) + offsetof(StallReport, sending)}) {
    std::uint8_t bytes[sizeof(Report)];
    const Report report;
    std::memcpy(bytes, &report, sizeof bytes);
    for (const auto& [value, expected] :
         {std::pair{1, Received::kPacket}, std::pair{2, Received::kBad}}) {
      bytes[flag] = static_cast<std::uint8_t>(value);
      ASSERT_TRUE(send_packet(node_, bytes, sizeof bytes, -1, 0));
      EXPECT_EQ(take(launcher_), expected) << flag << ": " << value;
    }
  }
}

TEST_F(Channel, RefusesALossOfNoKind) {
  Report report;
  report.loss = {3, Loss::node(4)};
  ASSERT_TRUE(send(node_, report));
  ASSERT_EQ(take(launcher_), Received::kPacket);
  EXPECT_EQ(packet.report.loss.loss(), Loss::node(4));
  EXPECT_EQ(packet.report.loss.generation, 3u);
  report.loss.kind = 3;
  ASSERT_TRUE(send(node_, report));
  EXPECT_EQ(take(launcher_), Received::kBad);
}

int open_descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// The room for one descriptor holds two where addresses have 64 bits. Elsewhere the kernel closes
// the second one.
TEST_F(Channel, KeepsOneDescriptorOfSeveral) {
  if (std::getenv("ESPALIER_EMULATED") != nullptr &&
      CMSG_SPACE(sizeof(int)) < CMSG_LEN(2 * sizeof(int))) {
    GTEST_SKIP() << "qemu-user asks its kernel for twice the room and leaves the second descriptor "
                    "open, which the program never sees";
  }
  Any wire;
  wire.memory = {};
  convert_order(wire, Packet::kMemory);
  iovec part{&wire, sizeof(Memory)};
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int sent[] = {launcher_, node_};
  std::memcpy(CMSG_DATA(header), sent, sizeof sent);
  const int before = open_descriptors();
  ASSERT_EQ(sendmsg(launcher_, &message, 0), static_cast<ssize_t>(sizeof(Memory)));
  EXPECT_EQ(take(node_), Received::kPacket);
  ASSERT_GE(descriptor, 0);
  close(descriptor);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Channel, KeepsNoDescriptorOfWhatIsRefused) {
  const int before = open_descriptors();
  for (const auto& [size, expected] : {std::pair{std::size_t{0}, Received::kEnd},
                                       {std::size_t{1}, Received::kBad},
                                       {sizeof(Memory) - 8, Received::kBad}}) {
    const Memory memory;
    ASSERT_TRUE(send_packet(launcher_, &memory, size, node_, 0));
    EXPECT_EQ(take(node_), expected);
    EXPECT_EQ(descriptor, -1);
    EXPECT_EQ(open_descriptors(), before) << size;
  }
}

TEST_F(Channel, RefusesSizesThatWrap) {
  for (const Memory& memory :
       {Memory{.input_bytes = ~0ull - 4095, .output_bytes = 4096, .events = 4},
        Memory{.input_bytes = 1, .counts = 1ull << 61}}) {
    ASSERT_TRUE(send(launcher_, memory));
    EXPECT_EQ(take(node_), Received::kBad);
  }
}

TEST_F(Channel, SendingToAnEndThatDoesNotReadHasALimit) {
  bool full = false;
  for (int i = 0; i < 100000 && !full; ++i) full = !send(launcher_, Peers{}, -1, 0);
  EXPECT_TRUE(full);
}

TEST_F(Channel, WireUpSendsItsAddressAndReceivesTheNeighbours) {
  std::thread launcher([this] {
    ASSERT_EQ(take(launcher_, -1), Received::kPacket);
    ASSERT_EQ(packet.packet, Packet::kHello);
    EXPECT_EQ(packet.hello.version, kControlVersion);
    EXPECT_EQ(packet.hello.node, 4u);
    EXPECT_EQ(packet.hello.pid, getpid());
    ASSERT_EQ(packet.hello.lanes, 2u);
    EXPECT_EQ(packet.hello.peers[1], 6u);
    EXPECT_EQ(std::string(packet.hello.addresses[1].bytes, packet.hello.addresses[1].size),
              std::string("a\0z", 3));
    Peers peers;
    peers.lanes = 2;
    peers.addresses[1].size = 2;
    std::memcpy(peers.addresses[1].bytes, "\0y", 2);
    EXPECT_TRUE(send(launcher_, peers));
  });
  node::ControlWireUp wire_up(node_);
  EXPECT_EQ(message_of(wire_up.publish(4, {"b", std::string("a\0z", 3)}, {3, 6})), "");
  const auto addresses = wire_up.collect();
  launcher.join();
  ASSERT_EQ(message_of(addresses), "");
  EXPECT_EQ(*addresses, (std::vector<std::string>{"", std::string("\0y", 2)}));
}

TEST(SendFailure, PrintsWithEscapes) {
  testing::internal::CaptureStderr();
  send_failure(-1, "a-node", "one\x1b[2J\ntwo");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a-node: one\\x1b[2J\\x0atwo\n");
}

TEST_F(Channel, WireUpEndsWithTheLauncher) {
  close(launcher_);
  launcher_ = -1;
  node::ControlWireUp wire_up(node_);
  const auto published = wire_up.publish(0, {"a"}, {1});
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().message, "cannot send this node's addresses: the launcher is gone");
  EXPECT_FALSE(wire_up.publish(0, {std::string(kMaxAddressBytes + 1, 'a')}, {1}));
}

}  // namespace
}  // namespace espalier::control
