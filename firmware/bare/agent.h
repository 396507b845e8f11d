#pragma once
// The protocol between a bare-metal node and its gateway (a process of a host). Freestanding; all
// numbers are little-endian, and every struct has a fixed layout without padding.
//
// The two exchange messages over one link, and each has a SerialEndpoint with that single link. The
// link is channel kChannel of the carrier that also carries the node's links, with window kWindow.
// On this link the board has the number kNoNode, and the gateway has kGateway. Both ends of a
// message must know its size beforehand, so there are only two kinds of message:
//
//  * packets of kPacketBytes, with tag kPacketTag: one of the structs below, then zeros;
//  * data, with tag kDataTag, announced by the previous packet in the same direction. They are sent
//    in pieces of kPieceBytes, of which the last may be shorter. 0 bytes need no message.
//
//   board                               gateway
//   Hello, data: the tables        ->
//                                   <-  Configure
//   Answer                         ->
//                                   <-  RunRequest
//   Answer: kOk, or it will not run ->
//                                   <-  data: the input (only after kOk), then Go
//   Report, data: the output,
//   data: the log's records        ->   (repeats from RunRequest)
//                                   <-  Ask: at any time when the gateway is not sending data
//   Report (status kBusy, or the latest one again), without data  ->
//                                   <-  Install, instead of a RunRequest
//   Answer: kOk, or it has no room ->
//                                   <-  data: the image
//   Answer                         ->   (restart the board: its loaded programs are gone)
//                                   <-  Update, instead of Configure
//   Answer: kOk, or it takes no part
//   Want: only the origin          ->
//                                   <-  Piece, data: that piece of all images
//   Report, without data           ->   (restart the board)
//                                   <-  Quit
//
// The first frame of the gateway's endpoint starts a session. A board that already has a session
// restarts from boot when another one starts, so every session begins with a boot and its Hello.
// The board answers an unexpected packet with kBadArgument and otherwise ignores it. The board's
// machine never waits for the gateway.
//
// A board with spares (docs/spares.md) goes on by itself after a failure: its run goes on with what
// is left, and the Report says without what. Meanwhile it answers only Ask.
//
// After Update the board has its session of an update of all nodes (docs/updates.md) over its
// links, and answers only Ask. The gateway has no part in it, except that it gives the origin the
// new images. The board restarts at the Quit that follows.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "espalier/base/status.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::agent {

inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::uint32_t kChannel = 255;
inline constexpr std::uint32_t kWindow = 2;
inline constexpr std::uint32_t kPacketBytes = 256;
inline constexpr std::uint32_t kPieceBytes = 16384;
inline constexpr std::uint64_t kPacketTag = 0x656c617073453401;  // contains kVersion
inline constexpr std::uint64_t kDataTag = 0x656c617073453402;
inline constexpr std::uint32_t kGateway = 0xfffffffeu;  // the gateway's node number on the channel
inline constexpr std::uint32_t kNoNode = 0xffffffffu;

enum class Kind : std::uint32_t {
  kHello = 1,
  kAnswer = 2,
  kReport = 3,
  kWant = 4,
  kConfigure = 16,
  kRun = 17,
  kGo = 18,
  kAsk = 19,
  kInstall = 20,
  kQuit = 21,
  kUpdate = 22,
  kPiece = 23,
};

// The state in which boot found a slot (SlotReport, firmware/boot/slots.h).
struct Slot {
  Status status = Status::kOk;  // why it was refused
  std::uint8_t looked_at = 0;   // 0: the other slot boots, and this one has an older image
  std::uint8_t tried = 0;
  std::uint8_t confirmed = 0;
  Little<std::uint32_t> release = 0;  // unchecked, from the header: 8 bits major, 8 minor, 16 patch
  Little<std::uint32_t> sequence = 0;  // installation number; 0: not committed
};
static_assert(sizeof(Slot) == 12);

// The booted image and the board's capacities. Followed by data: `links` LinkEntry, then `programs`
// ProgramEntry. If no image boots, `boot` is not kOk, and there are no links and no programs;
// board, slots, rooms and memory are valid all the same.
struct Hello {
  Little<Kind> kind = Kind::kHello;
  Little<std::uint32_t> version = kVersion;
  char board[32] = {};  // the board's name (boards/NAME), padded with zeros; at least one zero
  Status boot = Status::kOk;
  std::uint8_t trial = 0;              // the image is not confirmed: the first good run confirms it
  std::uint8_t last_resort = 0;        // tried before, never confirmed, the only one that boots
  std::uint8_t signature_checked = 0;  // 0: this board accepts any image
  Little<std::uint32_t> slot = 0;      // the slot that booted
  Slot slots[2];
  Little<std::uint32_t> node = kNoNode;  // the board's node number in the schedule
  Little<std::uint32_t> nodes = 0;       // nodes of the schedule: ranks, then routers
  Little<std::uint64_t> topology_digest = 0;
  Little<std::uint32_t> release = 0;
  Little<std::uint32_t> counter = 0;  // the image's security counter
  std::uint8_t digest[32] = {};       // the image's SHA-256, from its header
  Little<std::uint32_t> links = 0;
  Little<std::uint32_t> programs = 0;
  Little<std::uint32_t> window = 0;        // of the endpoint of its links; at least 1
  Little<std::uint32_t> input_room = 0;    // bytes; an image to install must fit too
  Little<std::uint32_t> output_room = 0;   // bytes
  Little<std::uint32_t> scratch_room = 0;  // bytes
  Little<std::uint32_t> events_room = 0;   // records of a log
  Little<std::uint32_t> ram_used = 0;  // bytes of static memory, with the rooms, without the stack
  Little<std::uint32_t> ram_given =
      0;  // bytes that the linker script reserves for it and the stack
  Little<std::uint32_t> code_used = 0;       // bytes of text and constants
  Little<std::uint32_t> stored_counter = 0;  // the stored security counter
  Little<std::uint32_t> slot_counters[2] =
      {};                        // unchecked, from the headers of the images in the slots
  std::uint8_t own_counter = 0;  // 1: the stored counter is the board's own; 0: it is in flash
  Status counter_status = Status::kOk;  // why it could not be read
  // Sets of links besides the first, which a board with spares needs: in set g, link l uses channel
  // g * links + l.
  std::uint8_t further_generations = 0;
  std::uint8_t updates = 0;  // 1: it takes Update
};

struct LinkEntry {
  Little<std::uint32_t> peer = 0;  // node at the other end
  Little<std::uint16_t> device = 0;
  Little<std::uint16_t> port = 0;
};

struct ProgramEntry {
  Little<std::uint64_t> schedule = 0;  // digest, the same on all nodes
  Little<std::uint32_t> collective = 0;
  Little<std::uint32_t> root = 0;
  char algorithm[24] = {};  // terminated
};

// The answer to Configure, Update, RunRequest, Install (twice: before and after its data) and
// unexpected packets.
struct Answer {
  Little<Kind> kind = Kind::kAnswer;
  Little<Kind> to = Kind::kConfigure;
  Little<std::uint32_t> number = 0;  // RunRequest::number
  Status status = Status::kOk;
  std::uint8_t zeros[3] = {};
};

// From the origin of an update: it needs the piece of all images from byte `offset` on.
struct Want {
  Little<Kind> kind = Kind::kWant;
  Little<std::uint32_t> offset = 0;
};

// How a run ended, or the answer to Ask. Only the former is followed by data: `output_bytes` of
// output, then, as separate data, `events` records of kEventBytes each (event_bytes()).
struct Report {
  Little<Kind> kind = Kind::kReport;
  Little<std::uint32_t> number = 0;  // RunRequest::number
  Status status = Status::kOk;
  Status confirmation = Status::kOk;  // the result of confirming an image on trial
  std::uint8_t zeros[2] = {};
  Little<std::uint32_t> blocks = 0;     // N of the most recently started collective
  Little<std::uint64_t> completed = 0;  // collectives of the run that are complete
  Little<std::uint64_t> spent_ns = 0;   // since Go, by the board's clock
  // The cause, if status is a failure (include/espalier/hal/endpoint.h).
  Status cause = Status::kOk;
  std::uint8_t more_zeros[3] = {};
  Little<std::uint32_t> cause_detector = 0;
  Little<std::uint32_t> cause_peer = 0;
  // The stall report (include/espalier/collectives/machine/machine.h).
  Little<std::uint32_t> stall_link = 0;
  Little<std::uint32_t> stall_peer = 0;
  Little<std::uint32_t> stall_action = 0;
  std::uint8_t stall_waiting = 0;
  std::uint8_t stall_sending = 0;
  std::uint8_t yet_more_zeros[6] = {};
  Little<std::int64_t> stall_step = 0;
  Little<std::uint64_t> stall_ns = 0;  // how long it has waited
  // The log's counts (include/espalier/internal/collectives/machine/event_log.h).
  Little<std::uint32_t> log_count = 0;
  Little<std::uint32_t> log_retired = 0;
  Little<std::uint64_t> log_lost = 0;
  // The data.
  Little<std::uint32_t> output_bytes = 0;
  Little<std::uint32_t> events = 0;
  // Without what the board goes on, or tried to (base/loss.h).
  Little<std::uint32_t> generation = 0;  // of its links; 0: those of the start
  Little<std::uint32_t> loss_kind = 0;   // Loss::Kind
  Little<std::uint32_t> loss_a = 0;
  Little<std::uint32_t> loss_b = 0;
};

// After Update the Report has in `blocks` how the session ended (firmware/update/update_end.h), and
// in `completed` the bytes of the board's image that it has written.

// Sent once, before the first RunRequest.
struct Configure {
  Little<Kind> kind = Kind::kConfigure;
  Little<std::uint32_t> window = 0;  // maximum number of steps in flight; 0: the board's maximum
  Little<std::uint64_t> deadline_ns = 0;  // how long a link may stay silent; 0: the board's default
  std::uint8_t check_blocks = 0;          // check a CRC-32 of every block
  std::uint8_t log = 0;                   // keep a log of the most recently started collective
  std::uint8_t spares = 0;                // go on after a failure: all generations lead somewhere
  // With spares: the others went on without the board. It asks to be taken in again, and answers
  // once it is, or cannot be (kTooLarge: the others have no sets of links left). If no one replies
  // it restarts, and must be configured again.
  std::uint8_t comes_back = 0;
  std::uint8_t zeros[4] = {};
};

// Requests `repetitions` collectives from the input to the output, without a pause between them.
// Answers:
//   kBadArgument   the board has no such schedule or selection, or the numbers of bytes are too
//                  small for it
//   kTooLarge      the board has no room
//   kUnsupported   the collective's root is lost
//   kBadOperator   unknown operator or type; an operator of the caller's, which boards do not have;
//                  make_layout()'s errors
//   the cause of an earlier failed run, if the cluster ended with it
struct RunRequest {
  Little<Kind> kind = Kind::kRun;
  Little<std::uint32_t> number = 0;
  // Digest of a program's schedule, or of a selection, by which the board chooses the program.
  Little<std::uint64_t> schedule = 0;
  Little<std::uint64_t> count = 0;  // elements, as Machine::start takes them
  Little<std::uint64_t> repetitions = 1;
  Little<std::uint32_t> input_bytes = 0;   // follow as data
  Little<std::uint32_t> output_bytes = 0;  // to report; zeros before the first collective
  Little<std::uint32_t> events = 0;        // maximum number of records to report, if a log is kept
  Op op = Op::kNone;                       // not kCustom
  Type type = Type::kBytes;
  std::uint8_t zeros[2] = {};
};

struct Go {
  Little<Kind> kind = Kind::kGo;
  Little<std::uint32_t> number = 0;  // RunRequest::number
};

struct Ask {
  Little<Kind> kind = Kind::kAsk;
};

// Installs an image into the slot that did not boot. The answer after the data has the status of
// install() (firmware/bare/boot.h).
struct Install {
  Little<Kind> kind = Kind::kInstall;
  Little<std::uint32_t> bytes = 0;
};

// Begins the board's session of an update. Answers:
//   kBadArgument  the board boots no image, has a session already, or its programs were replaced
//   errors of release_digest() (firmware/update/release.h)
struct Update {
  Little<Kind> kind = Kind::kUpdate;
  Little<std::uint32_t> number = 0;  // of the Report
  Little<std::uint32_t> window = 0;  // as in Configure
  std::uint8_t check_blocks = 0;     // as in Configure
  std::uint8_t settles = 0;          // 1: only end what an earlier update left
  std::uint8_t zeros[2] = {};
  Little<std::uint64_t> deadline_ns = 0;  // as in Configure
  Little<std::uint32_t> origin = 0;       // the node that has all images
  // On the origin: UpdateOrder (firmware/update/update.h).
  Little<std::uint32_t> order[10] = {};
  std::uint8_t more_zeros[4] = {};
};

// Announces the piece that the board wants: its bytes of all images, node by node.
struct Piece {
  Little<Kind> kind = Kind::kPiece;
  Little<std::uint32_t> bytes = 0;
};

struct Quit {
  Little<Kind> kind = Kind::kQuit;
};

// A packet of any kind, padded to kPacketBytes.
union Packet {
  Little<Kind> kind;
  Hello hello;
  Answer answer;
  Report report;
  Configure configure;
  RunRequest run_request;
  Go go;
  Ask ask;
  Install install;
  Quit quit;
  Want want;
  Update update;
  Piece piece;
  std::uint8_t bytes[kPacketBytes];
  Packet() : bytes{} {}
};
static_assert(sizeof(Packet) == kPacketBytes);
static_assert(sizeof(Hello) == 184 && offsetof(Hello, slots) == 48 &&
              offsetof(Hello, topology_digest) == 80 && offsetof(Hello, links) == 128);
static_assert(sizeof(LinkEntry) == 8 && sizeof(ProgramEntry) == 40);
static_assert(sizeof(Answer) == 16 && sizeof(Report) == 120 && sizeof(Configure) == 24 &&
              sizeof(RunRequest) == 48 && sizeof(Update) == 72);

}  // namespace espalier::agent
