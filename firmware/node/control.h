#pragma once
// The control channel between a Linux node and its launcher: fixed structs, one per packet, over a
// connected SOCK_SEQPACKET socket. Host only. Both ends are processes of one machine, but may have
// different instruction sets (qemu-user): the layout is the same on all targets, and numbers are
// little-endian outside a process. The first packet carries kControlVersion.
//
//   node                               launcher
//   Hello (its lanes' addresses) ->
//                                   <- Peers (the address at the other end of each of its lanes,
//                                      and the job secret)
//   Ready (every link can carry)  ->
//                                   <- Memory, with a file descriptor: input, output, log, counts
//   Mapped                        ->
//                                   <- RunRequest
//   Report                        ->   (these two repeat)
//                                   <- Ask, at any time after Ready
//   Report (status kBusy, or the latest one again) ->
//                                   <- Quit
// When a lost node comes back (docs/spares.md), between two runs:
//                                   <- Return, to all others
//   Hello, then as at the start up to Ready: new links of later generations
//                                   <- Return, to the node itself, which is started like the others
//   Ready (it was taken in)       ->
// A node may send Failed instead of any of its packets, and then ends. End of file ends the node.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/loss.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/internal/base/limits.h"
#include "firmware/update/update_end.h"

namespace espalier::control {

inline constexpr std::uint32_t kControlVersion = 12;
inline constexpr std::uint32_t kMaxAddressBytes = 256;
inline constexpr std::uint32_t kMaxTextBytes = 512;
inline constexpr std::uint32_t kMaxLanes = 128;  // per node, regardless of its own limits
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
  kReturn = 21,
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
  std::uint32_t lanes = 0;  // total of all links; a link routed by the fabric has one
  // The release of the image that the node booted (firmware/update/release.h). Digest 0: it booted
  // no image.
  std::uint32_t release = 0;
  std::uint64_t release_digest = 0;
  std::uint32_t peers[kMaxLanes] = {};  // node at the other end of each lane
  Address addresses[kMaxLanes] = {};    // the address by which that node reaches this lane
  char host[64] = {};                   // the name of its host, terminated
};

struct Ready {
  Packet packet = Packet::kReady;
};

struct Mapped {
  Packet packet = Packet::kMapped;
};

struct Failed {
  Packet packet = Packet::kFailed;
  std::uint32_t is_bad_input = 0;  // 1: of the launcher, found before the node had an endpoint
  char text[kMaxTextBytes] = {};   // one line, terminated
};

// Without what a node goes on (docs/spares.md).
struct LossReport {
  std::uint32_t generation = 0;  // of its links; 0: those of the start
  std::uint32_t kind = 0;        // Loss::Kind
  std::uint32_t a = 0;
  std::uint32_t b = 0;

  LossReport() = default;
  LossReport(std::uint32_t the_generation, const Loss& loss)
      : generation(the_generation),
        kind(static_cast<std::uint32_t>(loss.kind)),
        a(loss.a),
        b(loss.b) {}
  [[nodiscard]] Loss loss() const { return {static_cast<Loss::Kind>(kind), a, b}; }
};

// How a run ended or, as the answer to Ask during a run, its current state (status kBusy).
struct Report {
  Packet packet = Packet::kReport;
  std::uint32_t number = 0;  // RunRequest::number
  Status status = Status::kOk;
  std::uint32_t blocks = 0;     // N of the most recently started collective
  std::uint64_t completed = 0;  // collectives of the run that are complete
  std::uint64_t begin_ns = 0;   // CLOCK_MONOTONIC when the first collective was started
  std::uint64_t end_ns = 0;     // CLOCK_MONOTONIC when the last one completed or failed
  // By how much both times and those of the log can be wrong together, in ns, because they were
  // converted from another host's clock. 0: the launcher's own clock.
  std::uint64_t clock_error_ns = 0;
  Cause cause;
  EventLog::Counts log;  // of the most recently started collective
  StallReport stall;  // at the time of the failure, or now; since_ns is on endpoint.now()'s clock
  LossReport loss;
};

// A node in an update of all nodes reads only the number of a RunRequest, and answers with a
// Report. Its `blocks` is one of these, and `completed` the bytes of its image that it has written.
// If `blocks` is kRefused, cause.detector is the node that refused, and `status` says why.
using espalier::UpdateEnd;

struct Peers {
  Packet packet = Packet::kPeers;
  std::uint32_t lanes = 0;
  Address addresses[kMaxLanes];  // by lane, as in Hello
  std::uint8_t secret[32] = {};  // the job secret, the same for all nodes
};

// Travels with a file descriptor. The file contains four parts, each at a multiple of
// kMemoryAlignment:
//  * input_bytes of input;
//  * output_bytes of output;
//  * if the node keeps a log, its records: all EventTimes, then all Event;
//  * if collectives have a count for each rank, these counts (RunRequest::counts).
// It replaces the previous memory.
inline constexpr std::uint64_t kMemoryAlignment = 4096;
struct Memory {
  Packet packet = Packet::kMemory;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::uint32_t events = 0;  // maximum number of records of the log
  std::uint64_t counts = 0;  // maximum number of counts
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

[[nodiscard]] inline std::uint64_t counts_offset(std::uint64_t input_bytes,
                                                 std::uint64_t output_bytes, std::uint32_t events) {
  return output_offset(log_offset(input_bytes, output_bytes) + log_bytes(events));
}

// The size of the file, in bytes.
[[nodiscard]] inline std::uint64_t memory_bytes(const Memory& memory) {
  const std::uint64_t input = memory.input_bytes, output = memory.output_bytes;
  if (memory.counts != 0) {
    return counts_offset(input, output, memory.events) + memory.counts * sizeof(std::uint64_t);
  }
  return memory.events == 0 ? output_offset(input) + output
                            : log_offset(input, output) + log_bytes(memory.events);
}

// Requests `repetitions` collectives from the input to the output, without a pause between them.
struct RunRequest {
  Packet packet = Packet::kRun;
  std::uint32_t number = 0;
  std::uint32_t program = 0;  // index among the node's programs; used if `schedule` is 0
  // Otherwise: the digest of the program's schedule, or of a selection, by which the node chooses.
  std::uint64_t schedule = 0;
  Op op = Op::kNone;
  Type type = Type::kBytes;
  std::uint64_t count = 0;  // elements, as Machine::start() takes them; used if `counts` is 0
  std::uint64_t repetitions = 1;
  std::uint64_t start_ns = 0;  // CLOCK_MONOTONIC at which to start; in the past: at once
  std::uint64_t counts = 0;    // otherwise: number of counts, which are in the memory's file
};

struct Ask {
  Packet packet = Packet::kAsk;
};

// The lost node comes back. To the others: each has gone on without it. To the node: it asks them
// to take it in.
struct Return {
  Packet packet = Packet::kReturn;
  std::uint32_t node = 0;
};

struct Quit {
  Packet packet = Packet::kQuit;
};

static_assert(sizeof(Hello) == 32 + kMaxLanes * (4 + sizeof(Address)) + 64 &&
              sizeof(Address) == 260);
static_assert(sizeof(Peers) == 40 + kMaxLanes * sizeof(Address));
static_assert(sizeof(Cause) == 12 && sizeof(StallReport) == 40 && sizeof(EventLog::Counts) == 16);
static_assert(sizeof(Report) == 136 && offsetof(Report, completed) == 16 &&
              offsetof(Report, cause) == 48 && offsetof(Report, stall) == 80);
static_assert(sizeof(Memory) == 40 && offsetof(Memory, input_bytes) == 8);
static_assert(sizeof(RunRequest) == 64 && offsetof(RunRequest, schedule) == 16 &&
              offsetof(RunRequest, count) == 32);
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
  RunRequest run_request;
  Ask ask;
  Quit quit;
  Return comes_back;
  Any() : packet{} {}
};

// Returns the size of a packet of this kind, in bytes; 0 for an unknown kind.
[[nodiscard]] std::size_t packet_size(Packet packet);

// Converts the numbers of a packet of this kind to little-endian order or back. Sending and
// receiving does: between them, numbers have the order of the process.
void convert_order(Any& packet, Packet kind);
// Converts a received packet, whose kind is still little-endian, to the order of the process.
void from_wire(Any& packet);

// Whether `flag`, which another process wrote, is 0 or 1. Any other bool must not be read.
[[nodiscard]] bool is_flag(const bool& flag);
// Whether a received packet of `size` bytes has the size of its kind, and values that can be used:
// a Memory's sizes and offsets are far from the largest number, a Report's flags are 0 or 1.
[[nodiscard]] bool is_valid(const Any& packet, std::size_t size);

// Makes a channel. False and errno on failure.
[[nodiscard]] bool open_channel(int& launcher_end, int& node_end);
// Whether the descriptor is of a socket, as a channel's is.
[[nodiscard]] bool is_channel(int descriptor);
// Whether the process at the other end closed the channel or ended. Packets may still wait here.
[[nodiscard]] bool is_closed(int channel);

enum class Received {
  kPacket,
  kNothing,  // no packet arrived in time
  kEnd,      // the other end is gone
  kBad,      // not a packet of this protocol
};

// Sends one packet and, unless it is negative, `descriptor` with it. Waits at most `timeout_ms` for
// room. False if the other end is gone or made no room in that time.
[[nodiscard]] bool send_packet(int channel, const void* packet, std::size_t size, int descriptor,
                               int timeout_ms);
template <typename T>
[[nodiscard]] bool send(int channel, const T& packet, int descriptor = -1, int timeout_ms = 5000) {
  return send_packet(channel, &packet, sizeof packet, descriptor, timeout_ms);
}

// Takes a packet that arrives within `timeout_ms` (0: that has arrived; -1: no limit). Sets
// `descriptor` to the descriptor that came with it, which the caller closes, or to -1. Closes the
// descriptors of anything else.
[[nodiscard]] Received receive(int channel, Any& packet, int& descriptor, int timeout_ms);

// Reports this node's failure to the launcher and waits until it hangs up. Waiting is necessary
// because one process may drive several nodes: if it ended now, the launcher would take the end of
// their channels for failures of those nodes. A launcher that is gone has reported its reason.
// Without a launcher (channel < 0, or it takes no packet) prints one line to stderr, after
// `program`'s name.
void send_failure(int channel, const char* program, const std::string& what,
                  bool is_bad_input = false);

}  // namespace espalier::control
