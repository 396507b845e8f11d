#pragma once
// The control channel between a Linux node and its launcher: fixed structs, one a packet, over a
// connected SOCK_SEQPACKET socket. Host only. Both ends are processes of one machine, but may be of
// two instruction sets (qemu-user): the layout is the same on all that are 64-bit and
// little-endian. kControlVersion stands in the first packet.
//
//   node                               launcher
//   Hello (its lanes' addresses) ->
//                                   <- Peers (the address at the other end of each of its lanes)
//   Ready (every link can carry)  ->
//                                   <- Memory, with a file descriptor: input, then output
//   Mapped                        ->
//                                   <- Run
//   Report                        ->   (again and again)
//                                   <- Ask, at any time after Ready
//   Report (status kBusy or the last one) ->
//                                   <- Quit
// Instead of any of its packets a node may send Failed and end. End of file ends the node.

#include <cstddef>
#include <cstdint>
#include <string>

#include "espalier/base/limits.h"
#include "espalier/collectives/machine/machine.h"

namespace espalier::control {

inline constexpr std::uint32_t kControlVersion = 4;
inline constexpr std::uint32_t kMaxAddressBytes = 256;
inline constexpr std::uint32_t kMaxTextBytes = 512;
inline constexpr std::uint32_t kMaxLanes = 128;  // of a node, whatever its own limits
static_assert(kMaxLinks <= kMaxLanes);

enum class Packet : std::uint32_t {
  kHello = 1,
  kReady = 2,
  kMapped = 3,
  kReport = 4,
  kFailed = 5,
  kPeers = 16,
  kMemory = 17,
  kRun = 18,
  kAsk = 19,
  kQuit = 20,
};

struct Address {
  std::uint32_t size = 0;
  char bytes[kMaxAddressBytes] = {};
};

struct Hello {
  Packet packet = Packet::kHello;
  std::uint32_t version = kControlVersion;
  std::uint32_t node = 0;
  std::int32_t pid = 0;
  char machine[16] = {};                // what its processor is, as uname -m says it; terminated
  std::uint32_t lanes = 0;              // of all its links; a direct link has one
  std::uint32_t peers[kMaxLanes] = {};  // node at the other end of each lane
  Address addresses[kMaxLanes];         // ... and what that needs to reach this one
};

struct Ready {
  Packet packet = Packet::kReady;
};

struct Mapped {
  Packet packet = Packet::kMapped;
};

struct Failed {
  Packet packet = Packet::kFailed;
  char text[kMaxTextBytes] = {};  // one line, terminated
};

// How a Run ended, or (an answer to Ask) where it stands: status kBusy.
struct Report {
  Packet packet = Packet::kReport;
  std::uint32_t number = 0;  // the Run's
  Status status = Status::kOk;
  std::uint32_t blocks = 0;     // N of the collective started last
  std::uint64_t completed = 0;  // collectives of the Run that are complete
  std::uint64_t begin_ns = 0;   // CLOCK_MONOTONIC when the first collective was started
  std::uint64_t end_ns = 0;     // when the last one ended, well or not
  Cause cause;
  EventLog::Counts log;  // of the collective started last
  StallReport stall;  // as it stood when the Run failed, or stands now; since_ns on endpoint.now()
};

struct Peers {
  Packet packet = Packet::kPeers;
  std::uint32_t lanes = 0;
  Address addresses[kMaxLanes];  // by lane, as in Hello
};

// The file descriptor that comes with it holds input_bytes of input, then, at the next multiple of
// kMemoryAlignment, output_bytes of output, then, at the next again, a log's records (EventTimes,
// then Event) if the node keeps one. It replaces the memory before.
inline constexpr std::uint64_t kMemoryAlignment = 4096;
struct Memory {
  Packet packet = Packet::kMemory;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::uint32_t events = 0;  // that the log has room for
};
[[nodiscard]] inline std::uint64_t output_offset(std::uint64_t input_bytes) {
  return (input_bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}
[[nodiscard]] inline std::uint64_t log_offset(std::uint64_t input_bytes,
                                              std::uint64_t output_bytes) {
  return output_offset(output_offset(input_bytes) + output_bytes);
}
[[nodiscard]] inline std::uint64_t log_bytes(std::uint32_t events) {
  return std::uint64_t{events} * (sizeof(EventTimes) + sizeof(Event));
}

// Bytes of the file.
[[nodiscard]] inline std::uint64_t memory_bytes(std::uint64_t input_bytes,
                                                std::uint64_t output_bytes, std::uint32_t events) {
  return events == 0 ? output_offset(input_bytes) + output_bytes
                     : log_offset(input_bytes, output_bytes) + log_bytes(events);
}

// Runs `repetitions` collectives, one directly after the other, from the input to the output.
struct Run {
  Packet packet = Packet::kRun;
  std::uint32_t number = 0;
  std::uint32_t program = 0;   // position among the node's programs, where `schedule` is 0
  std::uint64_t schedule = 0;  // else the digest of its schedule, wherever the node has it
  Op op = Op::kNone;
  Type type = Type::kBytes;
  std::uint64_t count = 0;  // elements of the whole message
  std::uint64_t repetitions = 1;
  std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC at which to begin; in the past: at once
};

struct Ask {
  Packet packet = Packet::kAsk;
};

struct Quit {
  Packet packet = Packet::kQuit;
};

static_assert(sizeof(Hello) == 36 + kMaxLanes * (4 + sizeof(Address)) && sizeof(Address) == 260);
static_assert(sizeof(Peers) == 8 + kMaxLanes * sizeof(Address));
static_assert(sizeof(Cause) == 16 && sizeof(StallReport) == 40 && sizeof(EventLog::Counts) == 16);
static_assert(sizeof(Report) == 112 && offsetof(Report, completed) == 16 &&
              offsetof(Report, cause) == 40 && offsetof(Report, stall) == 72);
static_assert(sizeof(Memory) == 32 && offsetof(Memory, input_bytes) == 8);
static_assert(sizeof(Run) == 56 && offsetof(Run, schedule) == 16 && offsetof(Run, count) == 32);
static_assert(sizeof(Event) == 20 && sizeof(EventTimes) == 32);

// Room for any packet.
union Any {
  Packet packet;
  Hello hello;
  Ready ready;
  Mapped mapped;
  Failed failed;
  Report report;
  Peers peers;
  Memory memory;
  Run run;
  Ask ask;
  Quit quit;
  Any() : packet{} {}
};

// The size of the packet of that kind; 0 if there is none.
[[nodiscard]] std::size_t packet_size(Packet packet);

// Both ends of a channel; false and errno on failure.
[[nodiscard]] bool open_channel(int& launcher_end, int& node_end);

enum class Received {
  kPacket,
  kNothing,  // none is waiting
  kEnd,      // the other end is gone
  kBad,      // not a packet of this protocol
};

// Sends one packet, with `descriptor` attached unless it is negative. Waits for room at most
// `timeout_ms`; false if the other end is gone or took nothing in that time.
[[nodiscard]] bool send_packet(int channel, const void* packet, std::size_t size, int descriptor,
                               int timeout_ms);
template <typename T>
[[nodiscard]] bool send(int channel, const T& packet, int descriptor = -1, int timeout_ms = 5000) {
  return send_packet(channel, &packet, sizeof packet, descriptor, timeout_ms);
}

// Takes a packet if one comes within `timeout_ms` (0: only if one is there; -1: waits for ever).
// `descriptor` is what came with it, or -1; the caller closes it.
[[nodiscard]] Received receive(int channel, Any& packet, int& descriptor, int timeout_ms);

// Tells the launcher that this node has failed, and waits until it hangs up: it would take the end
// of the other nodes' channels for failures of theirs. A launcher that is gone has said why
// already. Without one (channel < 0, or it takes nothing) one line goes to stderr, after
// `program`'s name.
void send_failure(int channel, const char* program, const std::string& what);

}  // namespace espalier::control
