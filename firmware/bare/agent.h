#pragma once
// What a bare-metal node and its gateway (a process of a host) say to each other. Freestanding; all
// numbers little-endian, every struct of fixed layout without padding.
//
// They are messages of one link, of which each end has a SerialEndpoint with that link alone:
// channel kChannel of the carrier that also carries the node's links, window kWindow. The node's
// number on it is the image's (kNoNode without an image), the gateway's is kGateway. As both ends
// of a message must know its size beforehand there are but two kinds:
//
//  * packets, of kPacketBytes each, with tag kPacketTag: one of the structs below, then zeros;
//  * data, with tag kDataTag, that the packet before it in the same direction announces: its bytes
//    in pieces of kPieceBytes, the last one shorter, none where there are no bytes.
//
//   board                               gateway
//   Hello, data: the tables        ->
//                                   <-  Configure
//   Answer                         ->
//                                   <-  Run
//   Answer: kOk, or it will not run ->
//                                   <-  data: the input (only after a kOk), then Go
//   Report, data: the output,
//   data: the log's records        ->   (and so on, with another Run)
//                                   <-  Ask: whenever the gateway would send no data
//   Report (status kBusy, or the last one again), without data  ->
//                                   <-  Install, instead of a Run
//   Answer: kOk, or it has no room ->
//                                   <-  data: the image
//   Answer                         ->   (start it again: what it had loaded is gone)
//                                   <-  Quit
//
// The gateway begins a session with its endpoint's first frame. A board that has one already starts
// again from boot when a new one begins, so that every session starts with a boot and its Hello.
// A packet that the board does not expect as it stands is answered with kBadArgument and nothing
// else happens. The board never waits for the gateway in a way that holds up its machine.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "espalier/base/status.h"
#include "espalier/collectives/machine/operators.h"

namespace espalier::agent {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kChannel = 255;
inline constexpr std::uint32_t kWindow = 2;
inline constexpr std::uint32_t kPacketBytes = 256;
inline constexpr std::uint32_t kPieceBytes = 16384;
inline constexpr std::uint64_t kPacketTag = 0x656c617073453101;  // of this version
inline constexpr std::uint64_t kDataTag = 0x656c617073453102;
inline constexpr std::uint32_t kGateway = 0xfffffffeu;  // the gateway's node number on the channel
inline constexpr std::uint32_t kNoNode = 0xffffffffu;

static_assert(std::endian::native == std::endian::little);

enum class Kind : std::uint32_t {
  kHello = 1,
  kAnswer = 2,
  kReport = 3,
  kConfigure = 16,
  kRun = 17,
  kGo = 18,
  kAsk = 19,
  kInstall = 20,
  kQuit = 21,
};

// What boot found in a slot (SlotReport, firmware/boot/slots.h).
struct Slot {
  Status status = Status::kOk;  // why it was refused
  std::uint8_t looked_at = 0;   // 0: the other one boots, and this one claims to be older
  std::uint8_t tried = 0;
  std::uint8_t confirmed = 0;
  std::uint32_t release = 0;   // as it claims: 8 bits major, 8 minor, 16 patch
  std::uint32_t sequence = 0;  // of its installation; 0: not committed
};
static_assert(sizeof(Slot) == 12);

// Which image runs, and what there is room for. Then comes data: `links` LinkEntry, then `programs`
// ProgramEntry. Where nothing boots, `boot` is not kOk, board, slots, rooms and memory are told all
// the same, and there are no links and no programs.
struct Hello {
  Kind kind = Kind::kHello;
  std::uint32_t version = kVersion;
  char board[32] = {};  // its kind (boards/NAME), padded with zeros, at least one
  Status boot = Status::kOk;
  std::uint8_t trial = 0;              // the image's first run: the first good Run confirms it
  std::uint8_t last_resort = 0;        // tried before, never confirmed, and the only one that boots
  std::uint8_t signature_checked = 0;  // 0: this board takes any image
  std::uint32_t slot = 0;              // that boots
  Slot slots[2];
  std::uint32_t node = kNoNode;  // its number in the schedule
  std::uint32_t nodes = 0;       // of the schedule: ranks, then routers
  std::uint64_t topology_digest = 0;
  std::uint32_t release = 0;
  std::uint32_t counter = 0;     // the image's security counter
  std::uint8_t digest[32] = {};  // the image's SHA-256, as its header has it
  std::uint32_t links = 0;       // and channels: link l is channel l
  std::uint32_t programs = 0;
  std::uint32_t window = 0;        // of its links' endpoint
  std::uint32_t input_room = 0;    // bytes, also of an image to install
  std::uint32_t output_room = 0;   // bytes
  std::uint32_t scratch_room = 0;  // bytes
  std::uint32_t events_room = 0;   // records of a log
  std::uint32_t ram_used = 0;      // bytes of static memory, rooms included, stack not
  std::uint32_t ram_given = 0;     // bytes that the linker script has for it and the stack
  std::uint32_t code_used = 0;     // bytes of text and constants
};

struct LinkEntry {
  std::uint32_t peer = 0;  // node at the other end
  std::uint16_t device = 0;
  std::uint16_t port = 0;
};

struct ProgramEntry {
  std::uint64_t schedule = 0;  // digest, the same on all nodes
  std::uint32_t collective = 0;
  std::uint32_t root = 0;
  char algorithm[24] = {};  // terminated
};

// To Configure, Run and Install (twice: before and after its data), and to what was not expected.
struct Answer {
  Kind kind = Kind::kAnswer;
  Kind to = Kind::kConfigure;
  std::uint32_t number = 0;  // the Run's
  Status status = Status::kOk;
  std::uint8_t zeros[3] = {};
};

// How a Run ended, or (to Ask) where it stands. Only the first has data: `output_bytes` of output,
// then, as data of its own, `events` records of kEventBytes each as event_bytes() gives them.
struct Report {
  Kind kind = Kind::kReport;
  std::uint32_t number = 0;  // the Run's
  Status status = Status::kOk;
  Status confirmation = Status::kOk;  // of a trial image that ran well: whether it is confirmed now
  std::uint8_t zeros[2] = {};
  std::uint32_t blocks = 0;     // N of the collective started last
  std::uint64_t completed = 0;  // collectives of the Run that are complete
  std::uint64_t spent_ns = 0;   // by the board's clock, from Go
  // The cause, if status is a failure's (include/espalier/hal/endpoint.h).
  Status cause = Status::kOk;
  std::uint8_t cause_deaf = 0;
  std::uint8_t more_zeros[2] = {};
  std::uint32_t cause_detector = 0;
  std::uint32_t cause_peer = 0;
  // The stall report (include/espalier/collectives/machine/machine.h).
  std::uint32_t stall_link = 0;
  std::uint32_t stall_peer = 0;
  std::uint32_t stall_action = 0;
  std::uint8_t stall_waiting = 0;
  std::uint8_t stall_sending = 0;
  std::uint8_t yet_more_zeros[6] = {};
  std::int64_t stall_step = 0;
  std::uint64_t stall_ns = 0;  // for how long it has waited
  // The log's counts (include/espalier/collectives/machine/event_log.h).
  std::uint32_t log_count = 0;
  std::uint32_t log_retired = 0;
  std::uint64_t log_lost = 0;
  // The data.
  std::uint32_t output_bytes = 0;
  std::uint32_t events = 0;
};

// Once, before the first Run.
struct Configure {
  Kind kind = Kind::kConfigure;
  std::uint32_t window = 0;       // steps in flight, at most; 0: as many as the board can
  std::uint64_t deadline_ns = 0;  // silence after which a link is dead; 0: the board's default
  std::uint8_t check_blocks = 0;  // CRC-32 of every block
  std::uint8_t log = 0;           // keep a log of the collective started last
  std::uint8_t zeros[6] = {};
};

// `repetitions` collectives, one directly after the other, from the input to the output. The answer
// is kBadArgument where there is no such schedule or the bytes are not what it needs, kTooLarge
// where the board has no room, else Machine::start's own.
struct Run {
  Kind kind = Kind::kRun;
  std::uint32_t number = 0;
  std::uint64_t schedule = 0;  // digest
  std::uint64_t count = 0;     // elements, as Machine::start takes them
  std::uint64_t repetitions = 1;
  std::uint32_t input_bytes = 0;  // that follow
  std::uint32_t output_bytes =
      0;                     // to be reported; the output is zeros before the first collective
  std::uint32_t events = 0;  // records to be reported, at most, where a log is kept
  Op op = Op::kNone;         // no custom ones
  Type type = Type::kBytes;
  std::uint8_t zeros[2] = {};
};

struct Go {
  Kind kind = Kind::kGo;
  std::uint32_t number = 0;  // the Run's
};

struct Ask {
  Kind kind = Kind::kAsk;
};

// An image for the slot that does not run. After its data the answer is as of Slots::finish().
struct Install {
  Kind kind = Kind::kInstall;
  std::uint32_t bytes = 0;
};

struct Quit {
  Kind kind = Kind::kQuit;
};

// A packet as it travels.
union Packet {
  Kind kind;
  Hello hello;
  Answer answer;
  Report report;
  Configure configure;
  Run run;
  Go go;
  Ask ask;
  Install install;
  Quit quit;
  std::uint8_t bytes[kPacketBytes];
  Packet() : bytes{} {}
};
static_assert(sizeof(Packet) == kPacketBytes);
static_assert(sizeof(Hello) == 168 && offsetof(Hello, slots) == 48 &&
              offsetof(Hello, topology_digest) == 80 && offsetof(Hello, links) == 128);
static_assert(sizeof(LinkEntry) == 8 && sizeof(ProgramEntry) == 40);
static_assert(sizeof(Answer) == 16 && sizeof(Report) == 104 && sizeof(Configure) == 24 &&
              sizeof(Run) == 48);

}  // namespace espalier::agent
