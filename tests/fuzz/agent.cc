// Fuzz target: the board's end of the agent's protocol takes packets and data of any contents from
// its gateway. It writes only into its rooms, answers with packets that its rooms can back, sends
// the data that they announce, and ends the session or goes on. The input lists the gateway's
// packets and data, and what the board's links do meanwhile.

#include "firmware/bare/agent.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "firmware/bare/board.h"
#include "firmware/bare/boot.h"
#include "firmware/bare/server.h"
#include "firmware/image/testing/sample_image.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

constexpr std::uint32_t kRoom = 8192, kEvents = 16;  // bytes, records
constexpr std::uint8_t kFilling = 0x33;              // of data that are not an image

// An image with two programs and a selection of two more.
const std::vector<std::uint8_t>& image() {
  static const std::vector<std::uint8_t> bytes = [] {
    ImageContent content = sample_content(2, 0);
    content.board = board::name();
    for (LinkRow& link : content.links) link.device = 0;
    add_selection(content, 1000);
    return sample_image(content, nullptr);
  }();
  return bytes;
}

// Flash with that image in one slot.
class BoardFlash final : public Flash {
 public:
  BoardFlash() : cells_(erased()) {}
  const std::uint8_t* memory() const override { return cells_.data(); }
  std::uint32_t bytes() const override { return kBlocks * kBlock; }
  std::uint32_t block_bytes() const override { return kBlock; }
  std::uint32_t unit_bytes() const override { return kUnit; }
  Status erase(std::uint32_t offset) override {
    expect(offset % kBlock == 0 && offset < bytes(), "blocks are erased");
    std::fill_n(cells_.begin() + offset, kBlock, 0xff);
    return Status::kOk;
  }
  Status write(std::uint32_t offset, const std::uint8_t* from, std::uint32_t size) override {
    expect(offset % kUnit == 0 && size % kUnit == 0 && size <= bytes() - offset,
           "units are written");
    std::copy_n(from, size, cells_.begin() + offset);
    return Status::kOk;
  }
  // Installs the image.
  void fill() {
    Slots slots(*this, whole_flash(*this));
    static DecodedProgram programs[kMaxPrograms];
    bare::Booted booted(programs);
    expect(bare::install(slots, image().data(), static_cast<std::uint32_t>(image().size()),
                         booted) == Status::kOk,
           "the image is installed");
  }

 private:
  static constexpr std::uint32_t kBlock = 4096, kBlocks = 8, kUnit = 16;
  static std::vector<std::uint8_t> erased() {
    return std::vector<std::uint8_t>(std::size_t{kBlocks} * kBlock, 0xff);
  }
  std::vector<std::uint8_t> cells_;
};

// An endpoint of which each post completes at the next poll, or, while `stalls`, later.
class PromptEndpoint final : public Endpoint {
 public:
  PromptEndpoint(std::uint32_t node, std::vector<std::uint32_t> peers)
      : node_(node), peers_(std::move(peers)) {}
  std::uint32_t node() const override { return node_; }
  std::uint32_t links() const override { return static_cast<std::uint32_t>(peers_.size()); }
  std::uint32_t peer(std::uint32_t link) const override { return peers_[link]; }
  std::uint32_t window() const override { return kMaxWindow; }
  std::uint64_t eager_bytes() const override { return 64; }
  Status prepare(const Region*, std::uint32_t) override { return Status::kOk; }
  Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    expect(link < links(), "a post is of a link");
    if (post.size > 0) std::memset(post.bytes, kFilling, post.size);
    Completion completion;
    completion.kind = Completion::Kind::kReceived;
    return put(link, post.context, completion);
  }
  Status post_send(std::uint32_t link, const SendPost& post) override {
    expect(link < links(), "a post is of a link");
    sum(post.bytes, post.size);
    return put(link, post.context, {});
  }
  Status post_control(std::uint32_t, const Control&) override { return Status::kOk; }
  bool poll(Completion& completion) override {
    if (stalls || completions.empty()) return false;
    completion = completions.front();
    completions.pop_front();
    return true;
  }
  void release() override { completions.clear(); }
  std::uint64_t now() override { return time; }
  void wait(std::uint64_t) override {}

  // Reads all bytes, so that a sanitizer sees those that must not be sent.
  static void sum(const void* bytes, std::uint64_t size) {
    unsigned all = 0;
    for (std::uint64_t i = 0; i < size; ++i) all += static_cast<const std::uint8_t*>(bytes)[i];
    volatile unsigned sink = all;
    (void)sink;
  }

  std::deque<Completion> completions;
  std::uint64_t time = 1;
  bool stalls = false;

 private:
  Status put(std::uint32_t link, std::uint32_t context, Completion completion) {
    completion.link = link;
    completion.context = context;
    completions.push_back(completion);
    return Status::kOk;
  }
  std::uint32_t node_;
  std::vector<std::uint32_t> peers_;
};

// The board's end of the agent's channel. Receives complete when the input says so.
class AgentEndpoint final : public Endpoint {
 public:
  std::uint32_t node() const override { return agent::kNoNode; }
  std::uint32_t links() const override { return 1; }
  std::uint32_t peer(std::uint32_t) const override { return agent::kGateway; }
  std::uint32_t window() const override { return agent::kWindow; }
  std::uint64_t eager_bytes() const override { return agent::kPieceBytes; }
  Status prepare(const Region*, std::uint32_t) override { return Status::kOk; }
  Status post_receive(std::uint32_t, const ReceivePost& post) override {
    expect(receives.size() < agent::kWindow, "the window is kept");
    expect(post.tag == agent::kDataTag || post.size == agent::kPacketBytes,
           "a packet has its size");
    receives.push_back(post);
    return Status::kOk;
  }
  Status post_send(std::uint32_t, const SendPost& post) override {
    PromptEndpoint::sum(post.bytes, post.size);
    if (post.tag == agent::kDataTag) {
      expect(post.size <= agent::kPieceBytes && post.size <= announced, "data are announced");
      announced -= post.size;
    } else {
      expect(announced == 0, "all announced data are sent before the next packet");
      expect(post.tag == agent::kPacketTag && post.size == agent::kPacketBytes,
             "a packet has its size");
      take(*static_cast<const agent::Packet*>(post.bytes));
    }
    completions.push_back({});
    return Status::kOk;
  }
  Status post_control(std::uint32_t, const Control&) override { return Status::kOk; }
  bool poll(Completion& completion) override {
    if (completions.empty()) return false;
    completion = completions.front();
    completions.pop_front();
    return true;
  }
  void release() override {}
  std::uint64_t now() override { return 0; }
  void wait(std::uint64_t) override {}

  std::deque<Completion> completions;
  std::deque<ReceivePost> receives;  // posted, incomplete
  std::uint64_t announced = 0;       // bytes of data that the board must send

 private:
  void take(const agent::Packet& packet) {
    switch (packet.kind) {
      case agent::Kind::kHello:
        announced = packet.hello.links * sizeof(agent::LinkEntry) +
                    packet.hello.programs * sizeof(agent::ProgramEntry);
        return;
      case agent::Kind::kAnswer: return;
      case agent::Kind::kReport: {
        const agent::Report& report = packet.report;
        expect(report.output_bytes <= kRoom && report.events <= kEvents, "a report has its rooms");
        expect(report.log_retired <= report.log_count && report.log_count <= kEvents,
               "a log has its room");
        announced = report.output_bytes + std::uint64_t{report.events} * kEventBytes;
        return;
      }
      default: expect(false, "a board sends Hello, Answer and Report");
    }
  }
};

class Board {
 public:
  explicit Board(Input& input)
      : input_(input),
        flash_(filled()),
        slots_(flash_, whole_flash(flash_)),
        booted_(programs()),
        has_image_(input.below(8) != 0 && bare::boot(slots_, booted_) == Status::kOk),
        links_(booted_.image.node, peers()),
        input_room_(kRoom, 0),
        output_room_(kRoom, 0),
        scratch_room_(kRoom, 0),
        events_(kEvents),
        server_(agent_, has_image_ ? &links_ : nullptr, slots_, booted_, rooms()) {
    server_.begin();
  }

  void run() {
    bool works = step();
    while (works && input_.left() > 0) {
      act();
      works = step();
    }
  }

 private:
  static const BoardFlash& filled() {
    static const BoardFlash flash = [] {
      BoardFlash made;
      made.fill();
      return made;
    }();
    return flash;
  }
  static DecodedProgram* programs() {
    static DecodedProgram all[kMaxPrograms];
    return all;
  }
  std::vector<std::uint32_t> peers() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t link = 0; link < booted_.image.links; ++link) {
      all.push_back(booted_.image.link(link).peer);
    }
    return all;
  }
  bare::Rooms rooms() {
    bare::Rooms rooms{.input = input_room_.data(),
                      .output = output_room_.data(),
                      .scratch = scratch_room_.data(),
                      .events = events_.data()};
    rooms.input_bytes = rooms.output_bytes = rooms.scratch_bytes = kRoom;
    rooms.events_count = kEvents;
    return rooms;
  }

  // As many steps as a packet, its answer and the answer's data take.
  bool step() {
    bool works = true;
    for (int i = 0; i < 4 && works; ++i) works = server_.step();
    return works;
  }

  void act() {
    switch (input_.below(8)) {
      case 0: links_.stalls = !links_.stalls; break;
      case 1: links_.time += std::uint64_t{1} << input_.below(40); break;
      case 2: disturb(); break;
      default: deliver();
    }
  }

  // An event of a link, or of the agent's channel.
  void disturb() {
    Completion completion;
    completion.kind = static_cast<Completion::Kind>(input_.below(6));
    completion.status = input_.below(4) == 0 ? Status::kMismatch : Status::kOk;
    completion.tag = input_.word();
    completion.control.kind = static_cast<ControlKind>(input_.below(kControlKinds));
    const bool has_post = completion.kind == Completion::Kind::kSent ||
                          completion.kind == Completion::Kind::kReceived;
    if (has_post || !has_image_ || links_.links() == 0) {
      if (input_.below(64) == 0) agent_.completions.push_back(lost());
      return;
    }
    completion.link = input_.below(links_.links());
    links_.completions.push_back(completion);
  }
  static Completion lost() {
    Completion completion;
    completion.kind = Completion::Kind::kLinkDown;
    return completion;
  }

  // Completes the board's first receive.
  void deliver() {
    if (agent_.receives.empty()) return;
    const ReceivePost post = agent_.receives.front();
    agent_.receives.pop_front();
    Completion completion;
    completion.kind = Completion::Kind::kReceived;
    if (post.tag == agent::kPacketTag) {
      const agent::Packet packet = make_packet();
      std::memcpy(post.bytes, &packet, sizeof packet);
    } else {
      fill_data(static_cast<std::uint8_t*>(post.bytes), post.size);
    }
    if (input_.below(64) == 1) completion.status = Status::kMismatch;
    agent_.completions.push_back(completion);
  }

  // The next bytes of an image with changed bytes, or filling.
  void fill_data(std::uint8_t* bytes, std::uint64_t size) {
    const bool is_image = size == image().size();
    if (is_image) {
      std::copy_n(image().begin(), size, bytes);
    } else {
      std::memset(bytes, kFilling, size);
    }
    for (unsigned edits = input_.below(4); edits > 0; --edits) {
      const unsigned at = input_.below(65536);
      bytes[at % size] = static_cast<std::uint8_t>(input_.byte());
    }
  }

  agent::Packet make_packet() {
    agent::Packet packet;
    switch (input_.below(8)) {
      case 0: packet.configure = make_configure(); break;
      case 1:
      case 2: packet.run_request = make_run(); break;
      case 3: packet.go = {agent::Kind::kGo, number_ + (input_.below(8) == 7 ? 1 : 0)}; break;
      case 4: packet.ask = {}; break;
      case 5:
        packet.install = {};
        packet.install.bytes = input_.below(4) != 0 ? static_cast<std::uint32_t>(image().size())
                                                    : input_.word() % (2 * kRoom);
        break;
      case 6: packet.quit = {}; break;
      default:
        for (unsigned i = 0; i < 48; ++i) {
          packet.bytes[i] = static_cast<std::uint8_t>(input_.byte());
        }
    }
    return packet;
  }

  agent::Configure make_configure() {
    return agent::Configure{.window = input_.below(40),
                            .deadline_ns = input_.word(),
                            .check_blocks = static_cast<std::uint8_t>(input_.below(3)),
                            .log = static_cast<std::uint8_t>(input_.below(3))};
  }

  agent::RunRequest make_run() {
    agent::RunRequest run{.number = ++number_};
    const unsigned which = input_.below(8);
    run.schedule = which < booted_.image.programs ? booted_.programs[which].schedule_digest
                                                  : booted_.selections[0].digest;
    run.op = static_cast<Op>(input_.below(16));
    run.type = static_cast<Type>(input_.below(16));
    const bool is_small = input_.below(4) != 0;
    run.count = is_small ? input_.below(2048) : std::uint64_t{input_.word()} << input_.below(32);
    run.repetitions = input_.below(4);
    run.input_bytes = is_small ? kRoom : input_.word();
    run.output_bytes = is_small ? kRoom - input_.below(4) : input_.word() % (2 * kRoom);
    run.events = input_.below(2 * kEvents);
    return run;
  }

  Input& input_;
  BoardFlash flash_;
  Slots slots_;
  bare::Booted booted_;
  bool has_image_;
  AgentEndpoint agent_;
  PromptEndpoint links_;
  // Exactly the rooms, so that the sanitizers see any access outside of them.
  std::vector<std::uint8_t> input_room_, output_room_, scratch_room_;
  std::vector<Event> events_;
  bare::Server server_;
  std::uint32_t number_ = 0;  // of the latest request
};

}  // namespace

void run(Input& input) { std::make_unique<Board>(input)->run(); }

}  // namespace espalier::fuzz
