// Fuzz target: packets and frames of any contents at the end of a control channel. A packet is
// refused, or has the size of its kind and values that exist; no file descriptor is left open; and
// a frame writes nothing outside its memory. The first byte of each packet or frame tells its kind,
// whether its size is right, and how many descriptors come with it.

#include "firmware/node/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <vector>

#include "firmware/node/stream.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

using control::Packet;

constexpr Packet kKinds[] = {Packet::kHello,  Packet::kReady, Packet::kMapped, Packet::kReport,
                             Packet::kFailed, Packet::kPeers, Packet::kMemory, Packet::kRun,
                             Packet::kAsk,    Packet::kQuit};

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// A packet of a kind that the input names, with numbers of the input in some of its bytes.
std::vector<std::uint8_t> make_packet(Input& input) {
  const Packet kind = kKinds[input.below(std::size(kKinds))];
  std::vector<std::uint8_t> bytes(control::packet_size(kind));
  std::memcpy(bytes.data(), &kind, sizeof kind);
  const unsigned fields = input.below(8);
  for (unsigned i = 0; i < fields; ++i) {
    const std::size_t at = input.below(65536) % bytes.size();
    const unsigned width = std::min<std::size_t>(input.below(9), bytes.size() - at);
    for (unsigned k = 0; k < width; ++k) bytes[at + k] = static_cast<std::uint8_t>(input.byte());
  }
  if (input.below(8) == 0) bytes.resize(input.below(65536) % 2048);
  return bytes;
}

void send(int channel, const std::vector<std::uint8_t>& bytes, unsigned descriptors) {
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    const int sent[] = {channel, channel, channel};
    std::memcpy(CMSG_DATA(header), sent, descriptors * sizeof(int));
  }
  (void)sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Reads every value whose type has fewer values than its bytes.
void use(const control::Any& packet) {
  if (packet.packet == Packet::kReport) {
    const control::Report& report = packet.report;
    volatile bool flag = report.stall.waiting;
    flag = report.stall.sending;
    (void)flag;
  }
  if (packet.packet == Packet::kMemory) {
    const control::Memory& memory = packet.memory;
    const std::uint64_t end = control::memory_bytes(memory);
    expect(control::log_offset(memory.input_bytes, memory.output_bytes) <= end ||
               (memory.events == 0 && memory.counts == 0),
           "the parts of the memory are inside it");
  }
}

void exchange_packets(Input& input) {
  const std::ptrdiff_t before = open_descriptors();
  int launcher_end = -1, node_end = -1;
  expect(control::open_channel(launcher_end, node_end), "a channel opens");
  while (input.left() > 0) {
    const unsigned descriptors = input.below(4);
    send(node_end, make_packet(input), descriptors);
    control::Any packet;
    int descriptor = -1;
    const auto received = control::receive(launcher_end, packet, descriptor, 0);
    if (received == control::Received::kPacket) use(packet);
    if (descriptor >= 0) close(descriptor);
  }
  close(launcher_end);
  close(node_end);
  expect(open_descriptors() == before, "no descriptor is left open");
}

// A small memory behind a layout that a Memory packet gave, as a node on another host keeps it.
struct Memory {
  node::SharedMemory shared;
  std::vector<std::uint64_t> words;  // exactly the layout's size

  void take(const control::Memory& layout) {
    constexpr std::uint64_t kMaxBytes = 1 << 16;
    const std::uint64_t bytes = control::memory_bytes(layout);
    if (bytes > kMaxBytes) return;
    words.assign((bytes + 7) / 8, 0);
    shared.layout = layout;
    shared.bytes = reinterpret_cast<std::uint8_t*>(words.data());
  }
};

// A time or a difference of times, in ns: of 32 bits with a sign, or any.
std::uint64_t make_time(Input& input) {
  const auto low = static_cast<std::int32_t>(input.word());
  return input.below(4) != 0 ? static_cast<std::uint64_t>(std::int64_t{low})
                             : std::uint64_t{input.word()} << 32 | static_cast<std::uint32_t>(low);
}

// Sends a frame of the input. Returns whether it has the size that its header says.
bool send_frame(Input& input, int stream) {
  node::FrameHeader sent{.kind = static_cast<node::Frame>(input.below(8))};
  std::vector<std::uint8_t> body = make_packet(input);
  sent.size = static_cast<std::uint32_t>(body.size());
  if (input.below(16) == 0) sent.size = input.word();
  sent.offset = input.below(65536);
  sent.sent_ns = make_time(input);
  if (input.below(2) == 0) sent.bound_ns = static_cast<std::int64_t>(make_time(input));
  // One write: the stream has room for a whole frame.
  std::vector<std::uint8_t> frame(sizeof sent);
  std::memcpy(frame.data(), &sent, sizeof sent);
  frame.insert(frame.end(), body.begin(), body.end());
  const ssize_t written = write(stream, frame.data(), frame.size());
  return written == static_cast<ssize_t>(frame.size()) && sent.size == body.size();
}

void exchange_frames(Input& input) {
  int ends[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a stream opens");
  node::ControlStream stream(ends[0], ends[0]);
  Memory memory;
  std::vector<std::uint8_t> bytes;
  node::FrameHeader header;
  // After a frame with a wrong size the stream ends: what follows would be waited for.
  bool is_open = true;
  for (control::Received received = control::Received::kPacket;
       received == control::Received::kPacket && (!is_open || input.left() > 0);) {
    if (is_open) is_open = send_frame(input, ends[1]);
    if (!is_open) shutdown(ends[1], SHUT_WR);
    received = stream.receive(header, bytes, 0);
    if (received != control::Received::kPacket) break;
    expect(bytes.size() == header.size, "a frame has its bytes");
    if (header.kind == node::Frame::kBytes && memory.shared.bytes != nullptr) {
      (void)memory.shared.write(header, bytes);
    }
    control::Any packet;
    if (header.kind != node::Frame::kPacket || !stream.take_packet(bytes, memory.shared, packet)) {
      continue;
    }
    use(packet);
    if (packet.packet == Packet::kMemory) memory.take(packet.memory);
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

void run(Input& input) {
  if (input.below(2) == 0) {
    exchange_packets(input);
  } else {
    exchange_frames(input);
  }
}

}  // namespace espalier::fuzz
