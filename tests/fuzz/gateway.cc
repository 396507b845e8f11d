// Fuzz target: a gateway whose board and whose launcher send packets of any contents. It reports to
// its launcher with packets of a node and one line for a failure, and ends when the launcher is
// gone. The input lists the board's Hello, and what the two then send. Where both wait for the
// gateway, they answer it, mostly as they should.

#include "firmware/gateway/gateway.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>

#include "base/clock.h"
#include "base/testing/results.h"
#include "firmware/gateway/testing/board_end.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/folder.h"

namespace espalier::fuzz {
namespace {

constexpr std::uint32_t kNode = 1, kNodes = 4;
constexpr std::uint32_t kRoom = 8192, kEvents = 16;  // bytes, records
// Time without a packet after which all are taken to wait, in ns: if the launcher awaits an answer,
// and otherwise.
constexpr std::uint64_t kPatience = 10'000'000, kQuiet = 200'000;
constexpr std::uint64_t kMaxTables = 4096;                // bytes that a board sends
constexpr std::uint64_t kFirstSchedule = 0x1234567890ab;  // digest of the first program's schedule

// A folder for the sockets.
const std::string& folder() {
  static const Folder made;
  return made.path();
}

// Changes up to 7 places of the packet, up to 8 bytes each.
template <typename Packet>
void change(Input& input, Packet& packet, unsigned places) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&packet);
  for (; places > 0; --places) {
    const std::size_t at = input.below(65536) % sizeof packet;
    const std::size_t width = std::min<std::size_t>(input.below(9), sizeof packet - at);
    for (std::size_t k = 0; k < width; ++k) bytes[at + k] = static_cast<std::uint8_t>(input.byte());
  }
}

// Mostly none.
unsigned changes(Input& input) {
  const unsigned all = input.below(16);
  return all < 12 ? 0 : all - 11;
}

// The board: an endpoint with the agent's channel.
class Board {
 public:
  explicit Board(Input& input) : input_(input), end_(folder()) { await_packet(); }

  void say_hello() {
    agent::Packet packet;
    agent::Hello& hello = packet.hello;
    hello = {};
    std::strcpy(hello.board, "board");
    hello.node = kNode;
    hello.nodes = kNodes;
    hello.window = 2;
    hello.input_room = hello.output_room = hello.scratch_room = kRoom;
    hello.events_room = kEvents;
    hello.programs = input_.below(4);
    hello.links = input_.below(8) == 7 ? 1 + input_.below(3) : 0;
    change(input_, hello, changes(input_));
    const std::uint64_t links = hello.links, programs = hello.programs;
    send(packet);
    const std::uint64_t bytes =
        links * sizeof(agent::LinkEntry) + programs * sizeof(agent::ProgramEntry);
    if (bytes == 0 || bytes > kMaxTables) return;
    std::vector<std::uint8_t> data(bytes);
    for (std::uint64_t link = 0; link < links; ++link) {
      agent::LinkEntry entry{.peer = static_cast<std::uint32_t>(link < kNode ? link : link + 1)};
      change(input_, entry, changes(input_));
      std::memcpy(&data[link * sizeof entry], &entry, sizeof entry);
    }
    for (std::uint64_t program = 0; program < programs; ++program) {
      agent::ProgramEntry entry{.schedule = kFirstSchedule + program};
      std::memcpy(&data[links * sizeof(agent::LinkEntry) + program * sizeof entry], &entry,
                  sizeof entry);
    }
    send(std::move(data), agent::kDataTag);
  }

  // Takes what has arrived. Returns whether anything did.
  bool poll() {
    (void)end_.port().poll();
    Completion completion;
    bool any = false;
    while (end_.endpoint().poll(completion)) {
      any = true;
      if (completion.kind != Completion::Kind::kReceived) continue;
      if (awaited_data_ > 0) {
        awaited_data_ = 0;
        await_packet();
      } else {
        answer();
      }
    }
    return any;
  }

  // Sends a packet or data that the gateway does not expect.
  void intrude() {
    agent::Packet packet;
    switch (input_.below(4)) {
      case 0: return report();
      case 1: return answer_to(agent::Kind::kRun);
      case 2: change(input_, packet, 1 + input_.below(4)); return send(packet);
      default: send(std::vector<std::uint8_t>(1 + input_.below(2 * kRoom), 0x44), agent::kDataTag);
    }
  }

 private:
  void send(const agent::Packet& packet) {
    send({packet.bytes, packet.bytes + sizeof packet.bytes}, agent::kPacketTag);
  }
  // Sends one message; none is longer than a piece of data.
  void send(std::vector<std::uint8_t> bytes, std::uint64_t tag) {
    sent_.push_back(std::move(bytes));
    (void)end_.endpoint().post_send(0, {sent_.back().data(), sent_.back().size(), tag});
  }
  void await_packet() {
    (void)end_.endpoint().post_receive(0, {&in_, sizeof in_, agent::kPacketTag});
  }

  // Answers the packet that arrived.
  void answer() {
    switch (in_.kind) {
      case agent::Kind::kConfigure: answer_to(agent::Kind::kConfigure); break;
      case agent::Kind::kRun: {
        const agent::RunRequest run = in_.run_request;
        expect(run.input_bytes <= kRoom && run.output_bytes <= kRoom && run.events <= kEvents,
               "a request keeps the board's rooms");
        run_ = run;
        answer_to(agent::Kind::kRun);
        if (run.input_bytes == 0) break;
        awaited_data_ = run.input_bytes;
        room_.assign(awaited_data_, 0);
        (void)end_.endpoint().post_receive(0, {room_.data(), room_.size(), agent::kDataTag});
        return;
      }
      case agent::Kind::kGo:
      case agent::Kind::kAsk:
        if (input_.below(8) != 7) report();
        break;
      case agent::Kind::kQuit: break;
      default: expect(false, "a gateway sends only its packets");
    }
    await_packet();
  }
  void answer_to(agent::Kind kind) {
    agent::Packet packet;
    packet.answer = {};
    packet.answer.to = kind;
    packet.answer.number = run_.number;
    if (input_.below(8) == 7) packet.answer.status = static_cast<Status>(input_.byte());
    change(input_, packet.answer, changes(input_));
    send(packet);
  }
  void report() {
    agent::Packet packet;
    agent::Report& report = packet.report;
    report = {};
    report.number = run_.number;
    report.status = static_cast<Status>(input_.below(3) == 2 ? input_.byte() : input_.below(2));
    report.output_bytes = run_.output_bytes;
    report.events = report.log_count = report.log_retired = std::min(run_.events, input_.below(20));
    change(input_, report, changes(input_));
    const std::uint64_t output = report.output_bytes;
    const std::uint64_t records = std::uint64_t{report.events} * kEventBytes;
    const bool has_data = report.status != Status::kBusy && output + records <= 2 * kRoom;
    send(packet);
    if (!has_data) return;
    const auto content = static_cast<std::uint8_t>(input_.byte());
    for (const std::uint64_t bytes : {output, records}) {
      if (bytes > 0) send(std::vector<std::uint8_t>(bytes, content), agent::kDataTag);
    }
  }

  Input& input_;
  std::deque<std::vector<std::uint8_t>> sent_;  // all messages: the endpoint reads them later
  gateway::BoardEnd end_;
  agent::Packet in_;
  agent::RunRequest run_;
  std::vector<std::uint8_t> room_;  // of awaited data
  std::uint64_t awaited_data_ = 0;
};

// The launcher's end of the control channel.
class Launcher {
 public:
  explicit Launcher(Input& input) : input_(input) {
    expect(control::open_channel(end_, node_end_), "a channel opens");
  }
  ~Launcher() {
    hang_up();
    close(node_end_);
  }
  void hang_up() {
    if (end_ >= 0) close(end_);
    end_ = -1;
  }
  [[nodiscard]] int node_end() const { return node_end_; }
  [[nodiscard]] bool is_ready() const { return is_ready_; }
  [[nodiscard]] bool awaits_answer() const { return awaits_answer_; }
  [[nodiscard]] bool is_over() const { return is_over_; }

  // Takes what has arrived. Returns whether anything did.
  bool poll() {
    control::Any packet;
    int descriptor = -1;
    switch (control::receive(end_, packet, descriptor, 0)) {
      case control::Received::kNothing: return false;
      case control::Received::kPacket: break;
      default: is_over_ = true; return false;
    }
    expect(descriptor < 0, "a gateway sends no descriptor");
    switch (packet.packet) {
      case control::Packet::kHello: {
        control::Peers peers;
        peers.lanes = packet.hello.lanes;
        // No node is there.
        is_over_ = peers.lanes != 0;
        change(input_, peers.lanes, changes(input_));
        send(peers);
        break;
      }
      case control::Packet::kReady: is_ready_ = true; break;
      case control::Packet::kMapped: awaits_answer_ = false; break;
      case control::Packet::kReport: {
        const control::Report& report = packet.report;
        awaits_answer_ = false;
        expect(report.status == Status::kBusy ||
                   (report.log.retired <= report.log.count && report.log.count <= kEvents),
               "a log has its room");
        break;
      }
      case control::Packet::kFailed: {
        const char* const text = packet.failed.text;
        expect(std::memchr(text, '\0', control::kMaxTextBytes) != nullptr, "a reason ends");
        for (const char* at = text; *at != '\0'; ++at) {
          expect(*at >= ' ' && *at < 0x7f, "a reason is one line for a terminal");
        }
        is_over_ = true;
        break;
      }
      default: expect(false, "a gateway sends the packets of a node");
    }
    return true;
  }

  void order() {
    switch (input_.below(8)) {
      case 0:
      case 1: return give_memory();
      case 2: awaits_answer_ = true; return send(control::Ask{});
      case 3:
        if (input_.below(4) == 3) return send(control::Quit{});
        return send_raw();
      default: return run();
    }
  }

 private:
  template <typename Packet>
  void send(const Packet& packet, int descriptor = -1) {
    (void)control::send(end_, packet, descriptor, 0);
  }
  void send_raw() {
    control::Peers packet;
    packet.packet = static_cast<control::Packet>(input_.below(32));
    const std::size_t right = control::packet_size(packet.packet);
    const std::size_t size = right != 0 && right <= sizeof packet ? right : 1 + input_.below(300);
    change(input_, packet, input_.below(4));
    (void)control::send_packet(end_, &packet, size, -1, 0);
  }
  void give_memory() {
    control::Memory memory{.input_bytes = input_.below(kRoom),
                           .output_bytes = input_.below(kRoom),
                           .events = input_.below(2 * kEvents)};
    const std::uint64_t bytes = control::memory_bytes(memory);
    change(input_, memory, changes(input_));
    const int file = memfd_create("memory", MFD_CLOEXEC);
    const bool is_short = input_.below(8) == 7;
    expect(file >= 0 && ftruncate(file, static_cast<off_t>(is_short ? bytes / 2 : bytes)) == 0,
           "the host has memory");
    awaits_answer_ = true;
    send(memory, input_.below(8) == 7 ? -1 : file);
    close(file);
  }
  void run() {
    control::RunRequest run{.number = ++number_, .program = input_.below(4)};
    if (input_.below(2) == 1) run.schedule = kFirstSchedule + run.program;
    run.op = static_cast<Op>(input_.below(16));
    run.type = static_cast<Type>(input_.below(16));
    run.count = input_.below(2048);
    change(input_, run, changes(input_));
    // A start in the future would only be waited for.
    run.start_ns = 0;
    awaits_answer_ = true;
    send(run);
  }

  Input& input_;
  int end_ = -1, node_end_ = -1;
  std::uint32_t number_ = 0;
  bool is_ready_ = false, is_over_ = false, awaits_answer_ = false;
};

// Lets board and launcher work until nothing more arrives.
void settle(Board& board, Launcher& launcher) {
  std::uint64_t last = monotonic_ns();
  while (!launcher.is_over() &&
         monotonic_ns() - last < (launcher.awaits_answer() ? kPatience : kQuiet)) {
    const bool any = board.poll();
    if (launcher.poll() || any) last = monotonic_ns();
  }
}

}  // namespace

void run(Input& input) {
  // The gateway prints a line when its board has booted.
  static const bool is_silent = (stderr = std::fopen("/dev/null", "w")) != nullptr;
  expect(is_silent, "/dev/null opens");
  gateway::GatewayOptions options;
  options.device = "unix:" + folder() + "/gateway," + folder() + "/board";
  options.node.nodes = {kNode};
  Launcher launcher(input);
  options.node.controls = {launcher.node_end()};
  options.node.deadline_ns = 1'000'000;
  options.node.log = input.below(2) == 1;
  {
    Board board(input);
    int status = -1;
    std::thread thread([&] { status = gateway::Gateway(options).run(); });
    board.say_hello();
    // The gateway opens its device and its fabric meanwhile.
    while (!launcher.is_ready() && !launcher.is_over()) settle(board, launcher);
    while (input.left() > 0 && !launcher.is_over()) {
      if (input.below(3) == 0) {
        board.intrude();
      } else {
        launcher.order();
      }
      settle(board, launcher);
    }
    launcher.hang_up();
    thread.join();
    expect(status == 0 || status == 1, "a gateway ends well, or after a failure");
  }
}

}  // namespace espalier::fuzz

// libfabric 1.17 loses a copy of its description with each endpoint that is closed.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
