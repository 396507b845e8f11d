#pragma once
// The control channel over a byte stream, for a node of another host: its packets, and the contents
// of the memory that goes with them where both ends are on one host. Host only.
//
// A frame is a FrameHeader and its bytes. First, to the node: its command line, a word (kWord) or a
// schedule's contents (kFile) each, then kBegin. Then packets (kPacket) of either end; kBytes
// before a Run are the input, before a Report that is not kBusy the output and the log. Clocks
// differ: each frame says when it was sent, and times in its packet become those of the receiver's
// clock as if it had taken no time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "firmware/node/control.h"

namespace espalier::node {

enum class Frame : std::uint32_t { kWord = 1, kFile = 2, kBegin = 3, kPacket = 4, kBytes = 5 };

struct FrameHeader {
  Frame kind = Frame::kPacket;
  std::uint32_t size = 0;     // bytes that follow
  std::uint64_t offset = 0;   // kBytes: in the memory's file
  std::uint64_t sent_ns = 0;  // CLOCK_MONOTONIC of the sender
};
static_assert(sizeof(FrameHeader) == 24);

// One end of a stream.
class Stream {
 public:
  // `in` and `out` may be one descriptor; they become non-blocking and stay the caller's.
  Stream(int in, int out);
  [[nodiscard]] int in() const { return in_; }

  // False: the other end is gone, or took nothing for kPatience.
  static constexpr int kPatience = 30'000;  // ms
  [[nodiscard]] bool send(Frame kind, std::span<const std::uint8_t> bytes,
                          std::uint64_t offset = 0);
  [[nodiscard]] bool send_packet(const control::Any& packet);
  // Bytes `from` .. `end` of the memory's file, which begins at `memory`.
  [[nodiscard]] bool send_memory(const std::uint8_t* memory, std::uint64_t from, std::uint64_t end);

  // The next frame, whose bytes come within kPatience of its header: kPacket. kNothing: none came
  // within timeout_ms (-1: for ever). kEnd: the other end is gone. kBad: not this protocol.
  [[nodiscard]] control::Received receive(FrameHeader& header, std::vector<std::uint8_t>& bytes,
                                          int timeout_ms);

 private:
  [[nodiscard]] bool write(const void* bytes, std::size_t size);
  [[nodiscard]] bool read(void* bytes, std::size_t size, int timeout_ms);

  int in_;
  int out_;
};

// The memory of a collective, all of it.
struct Shared {
  std::uint8_t* bytes = nullptr;
  control::Memory about;

  [[nodiscard]] std::uint64_t size() const {
    return control::memory_bytes(about.input_bytes, about.output_bytes, about.events);
  }
  // Writes what a kBytes frame brought; false if it does not lie inside.
  [[nodiscard]] bool write(const FrameHeader& header, std::span<const std::uint8_t> from) const;
};

// The packet that a kPacket frame brought, times by this end's clock; false if it is none.
[[nodiscard]] bool take_packet(const FrameHeader& header, std::span<const std::uint8_t> bytes,
                               const Shared& memory, control::Any& packet);

}  // namespace espalier::node
