#pragma once
// The control channel over a byte stream, for a node on another host. It carries the packets and
// the contents of the memory that both ends would share on one host. Host only.
//
// A frame is a FrameHeader and its bytes. First the node receives its command line: one kWord
// per word, or one kFile with a schedule's contents, then kBegin. Then both ends send packets
// (kPacket). kBytes before a RunRequest are the input and the counts; before a Report other than
// kBusy they are the output and the log. The two hosts' clocks differ. Each frame states when it
// was sent, from which each end estimates the difference (clock_difference.h) and converts the
// times of the packets that it receives to its own clock.

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/internal/base/little_endian.h"
#include "firmware/node/clock_difference.h"
#include "firmware/node/control.h"

namespace espalier::node {

enum class Frame : std::uint32_t { kWord = 1, kFile = 2, kBegin = 3, kPacket = 4, kBytes = 5 };

struct FrameHeader {
  Little<Frame> kind = Frame::kPacket;
  Little<std::uint32_t> size = 0;     // number of bytes that follow
  Little<std::uint64_t> offset = 0;   // kBytes: their offset in the memory's file
  Little<std::uint64_t> sent_ns = 0;  // CLOCK_MONOTONIC of the sender
  // ClockDifference::bound() of the sender, in ns; kNoBound: it has received no frame yet
  Little<std::int64_t> bound_ns = kNoBound;
  static constexpr std::int64_t kNoBound = INT64_MIN;
};
static_assert(sizeof(FrameHeader) == 32);

// The whole memory of a collective: input, output, log and counts.
struct SharedMemory {
  std::uint8_t* bytes = nullptr;
  control::Memory layout;

  [[nodiscard]] std::uint64_t size() const { return control::memory_bytes(layout); }
  // Writes the bytes of a kBytes frame; false if they are not inside the memory.
  [[nodiscard]] bool write(const FrameHeader& header, std::span<const std::uint8_t> from) const;
};

// One end of a control stream.
class ControlStream {
 public:
  // `in` and `out` may be the same descriptor. Both become non-blocking; the caller closes them.
  ControlStream(int in, int out);
  [[nodiscard]] int in() const { return in_; }

  // The functions that send return false if the other end is gone or took no byte for kPatience.
  static constexpr int kPatience = 30'000;  // ms
  [[nodiscard]] bool send(Frame kind, std::span<const std::uint8_t> bytes,
                          std::uint64_t offset = 0);
  [[nodiscard]] bool send_packet(const control::Any& packet);
  // Sends bytes `from` .. `end` - 1 of the memory's file, which starts at `memory`.
  [[nodiscard]] bool send_memory(const std::uint8_t* memory, std::uint64_t from, std::uint64_t end);

  // Receives the next frame.
  // kPacket: its header and bytes; the bytes must arrive within kPatience of the header.
  // kNothing: no frame arrived within timeout_ms (-1: no limit).
  // kEnd: the other end is gone, or a frame was cut short.
  // kBad: not a frame of this protocol, or one with times beyond 2^60 ns.
  [[nodiscard]] control::Received receive(FrameHeader& header, std::vector<std::uint8_t>& bytes,
                                          int timeout_ms);

  // Reads the packet of a received kPacket frame and converts its times, and those of the log in
  // `memory`, to this end's clock. False if the bytes are not a packet, or if it has times and came
  // before frames had gone in both directions.
  [[nodiscard]] bool take_packet(std::span<const std::uint8_t> bytes, const SharedMemory& memory,
                                 control::Any& packet) const;

 private:
  [[nodiscard]] bool write(const void* bytes, std::size_t size);
  [[nodiscard]] bool read(void* bytes, std::size_t size, int timeout_ms);

  int in_;
  int out_;
  ClockDifference difference_;  // this end's clock minus the other's
};

}  // namespace espalier::node
