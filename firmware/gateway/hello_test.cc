// A gateway with a board and a launcher that the test plays. For a Hello with capacities that no
// gateway can serve, the launcher gets one line.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>

#include "base/testing/contains.h"
#include "espalier/internal/base/little_endian.h"
#include "firmware/gateway/gateway.h"
#include "firmware/gateway/testing/board_end.h"

namespace espalier::gateway {
namespace {

// Plays the board of a gateway whose sockets are in `folder`.
class PlayedBoard {
 public:
  explicit PlayedBoard(const std::string& folder) : end_(folder) { expect_packet(); }
  // `links` must outlive the board.
  void say_hello(const agent::Hello& hello, const std::vector<agent::LinkEntry>& links = {}) {
    out_.hello = hello;
    send();
    if (links.empty()) return;
    const SendPost tables{links.data(), links.size() * sizeof links.front(), agent::kDataTag};
    EXPECT_EQ(end_.endpoint().post_send(0, tables), Status::kOk);
  }
  // Answers Configure, and a request to run, whose input then comes. At Go it reports the end of
  // the run, without its output and log.
  void poll() {
    Completion completion;
    while (end_.endpoint().poll(completion)) {
      if (completion.kind == Completion::Kind::kReceived) take(++received_);
      if (completion.kind == Completion::Kind::kSent) ++sent_;
    }
  }
  // Whether the gateway has the Hello, both answers and the report.
  [[nodiscard]] bool has_reported() const { return sent_ == 4; }
  void send_output_and_log() {
    for (const std::uint32_t size : {kBufferBytes, kEventBytes}) {
      EXPECT_EQ(end_.endpoint().post_send(0, SendPost{data_, size, agent::kDataTag}), Status::kOk);
    }
  }

  static constexpr std::uint32_t kBufferBytes = 8, kRun = 7;

 private:
  void take(int number) {
    out_ = {};
    if (number == 3) return;  // the input
    if (number == 4) {
      EXPECT_EQ(in_.kind, agent::Kind::kGo);
      out_.report = {};
      out_.report.number = kRun;
      out_.report.completed = 1;
      out_.report.log_count = out_.report.log_retired = 1;
      out_.report.output_bytes = kBufferBytes;
      out_.report.events = 1;
      return send();
    }
    EXPECT_EQ(in_.kind, number == 1 ? agent::Kind::kConfigure : agent::Kind::kRun);
    out_.answer = {};
    out_.answer.to = in_.kind;
    if (number == 2) {
      EXPECT_EQ(end_.endpoint().post_receive(0, {data_, kBufferBytes, agent::kDataTag}),
                Status::kOk);
    }
    expect_packet();
    send();
  }
  void expect_packet() {
    EXPECT_EQ(end_.endpoint().post_receive(0, {&in_, sizeof in_, agent::kPacketTag}), Status::kOk);
  }
  void send() {
    EXPECT_EQ(end_.endpoint().post_send(0, {&out_, sizeof out_, agent::kPacketTag}), Status::kOk);
  }

  BoardEnd end_;
  agent::Packet in_, out_;
  int received_ = 0, sent_ = 0;
  // A record of a send, if it is one.
  std::uint8_t data_[kEventBytes] = {};
};

class HelloTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "espalier-hello-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    ASSERT_TRUE(control::open_channel(launcher_end_, node_end_));
  }
  void TearDown() override {
    close(node_end_);
    std::filesystem::remove_all(folder_);
  }

  GatewayOptions options() const {
    GatewayOptions options;
    options.device = "unix:" + folder_ + "/gateway," + folder_ + "/board";
    options.node.nodes = {6};
    options.node.controls = {node_end_};
    options.node.settles = settles_;
    if (!new_images_.empty()) options.node.update_origin = 6;
    options.node.new_images = new_images_;
    return options;
  }

  // Runs a gateway whose board says `hello` and has `links`. Returns what the gateway reports to
  // the launcher.
  std::string failure(const agent::Hello& hello, const std::vector<agent::LinkEntry>& links = {}) {
    auto gateway = std::async(std::launch::async, [&] { return Gateway(options()).run(); });
    std::string reported = reported_to_launcher(hello, links);
    close(launcher_end_);
    EXPECT_EQ(gateway.get(), 1);
    EXPECT_EQ(reported.find('\n'), std::string::npos) << reported;
    return reported;
  }

  // Lets the board work until the gateway has sent the launcher a packet, or has ended.
  control::Received next_packet(PlayedBoard& board, control::Any& packet) {
    control::Received received = control::Received::kNothing;
    while (received == control::Received::kNothing) {
      board.poll();
      int descriptor = -1;
      received = control::receive(launcher_end_, packet, descriptor, 1);
    }
    return received;
  }

  bool comes(PlayedBoard& board, control::Any& packet, control::Packet kind) {
    return next_packet(board, packet) == control::Received::kPacket && packet.packet == kind;
  }

  std::string reported_to_launcher(const agent::Hello& hello,
                                   const std::vector<agent::LinkEntry>& links) {
    PlayedBoard board(folder_);
    board.say_hello(hello, links);
    control::Any report;
    if (next_packet(board, report) != control::Received::kPacket) return "no packet";
    return report.packet == control::Packet::kFailed ? report.failed.text : "no Failed packet";
  }

  bool settles_ = false;
  std::string new_images_;
  std::string folder_;
  int launcher_end_ = -1, node_end_ = -1;
};

agent::Hello good_hello() {
  agent::Hello hello;
  hello.node = 6;
  hello.nodes = 8;
  hello.window = 2;
  hello.input_room = hello.output_room = hello.scratch_room = 262144;
  return hello;
}

TEST_F(HelloTest, RefusesMoreRoomThanItCanBuffer) {
  agent::Hello hello = good_hello();
  hello.links = 128;
  hello.window = 16;
  hello.scratch_room = 1u << 28;
  EXPECT_PRED2(contains, failure(hello),
               "its Hello has room for 268435456 bytes and 128 links with a window of 16; the "
               "gateway would need 1099511627776 bytes of buffers, expected at most "
               "1073741824");
}

TEST_F(HelloTest, NamesBoardFieldValueAndLimit) {
  const struct {
    Little<std::uint32_t> agent::Hello::*field;
    std::uint32_t value;
    const char* text;
  } cases[] = {
      {&agent::Hello::slot, 2, "slot 2; expected 0 to 1"},
      {&agent::Hello::nodes, 0, "nodes 0; expected 1 to 1073741824"},
      {&agent::Hello::nodes, UINT32_MAX, "nodes 4294967295; expected 1 to 1073741824"},
      {&agent::Hello::links, kMaxLinks + 1, "links 129; expected 0 to 128"},
      {&agent::Hello::programs, UINT32_MAX, "programs 4294967295; expected 0 to 16"},
      {&agent::Hello::window, 0, "window 0; expected 1 to 65535"},
      {&agent::Hello::window, UINT32_MAX, "window 4294967295; expected 1 to 65535"},
      {&agent::Hello::input_room, UINT32_MAX, "input_room 4294967295; expected 0 to 268435456"},
      {&agent::Hello::output_room, UINT32_MAX, "output_room 4294967295; expected 0 to 268435456"},
      {&agent::Hello::scratch_room, UINT32_MAX, "scratch_room 4294967295; expected 0 to 268435456"},
      {&agent::Hello::events_room, UINT32_MAX, "events_room 4294967295; expected 0 to 16777216"},
      {&agent::Hello::node, 8, "node 8 of 8 nodes; expected a node of the schedule"},
  };
  for (const auto& each : cases) {
    agent::Hello hello = good_hello();
    std::strcpy(hello.board, "toy");
    hello.*each.field = each.value;
    EXPECT_EQ(failure(hello),
              "its board toy at " + options().device + ": its Hello has " + each.text);
    TearDown();
    SetUp();
  }
}

TEST_F(HelloTest, RefusesLinksWithoutAnImage) {
  agent::Hello hello = good_hello();
  hello.boot = Status::kNothingToBoot;
  hello.links = 1;
  EXPECT_PRED2(contains, failure(hello), "links 1; expected 0 to 0");
}

TEST_F(HelloTest, RefusesLinksToNowhere) {
  agent::Hello hello = good_hello();
  hello.links = 2;
  for (const std::uint32_t peer : {8u, 6u, 0u}) {
    const std::string text = failure(hello, {{0}, {peer}});
    EXPECT_PRED2(contains, text, "its link 1 leads to node " + std::to_string(peer));
    TearDown();
    SetUp();
  }
}

TEST_F(HelloTest, RefusesBoardsThatTakeNoPartInUpdates) {
  settles_ = true;
  EXPECT_PRED2(contains, failure(good_hello()),
               "its firmware takes no part in updates of all nodes");
}

TEST_F(HelloTest, RefusesToSendImagesWithoutRoom) {
  new_images_ = folder_ + "/none-%r.img";
  agent::Hello hello = good_hello();
  hello.updates = 1;
  hello.input_room = 8 * kImageHeaderBytes - 1;
  EXPECT_PRED2(contains, failure(hello), "bytes of input, too few to send images to 8 nodes");
  TearDown();
  SetUp();
  new_images_ = folder_ + "/none-%r.img";
  hello.input_room = 8 * kImageHeaderBytes;
  EXPECT_PRED2(contains, failure(hello), "none-0.img");
}

TEST_F(HelloTest, SurvivesAHostWithoutMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer reserves more address space than this test allows";
#endif
  agent::Hello hello = good_hello();
  hello.links = 2;
  hello.window = 16;
  hello.scratch_room = 1u << 24;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::uint64_t pages = 0;
  ASSERT_TRUE(std::ifstream("/proc/self/statm") >> pages);
  const rlimit less{pages * static_cast<std::uint64_t>(getpagesize()) + (768u << 20),
                    before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  void* const probe =
      mmap(nullptr, 1u << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe != MAP_FAILED) {
    munmap(probe, 1u << 30);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    GTEST_SKIP() << "RLIMIT_AS has no effect here, as under qemu-user";
  }
  const std::string text = failure(hello, {{0}, {1}});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_PRED2(contains, text, "no memory for 1073741824 bytes of buffers");
}

TEST_F(HelloTest, PrintsTheBoardsNameEscaped) {
  agent::Hello hello = good_hello();
  std::strcpy(hello.board, "a\x1b[2J\nb\x9b");
  hello.node = 5;
  ::testing::internal::CaptureStderr();
  const std::string text = failure(hello);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("its board a\\x1b[2J\\x0ab\\x9b at ")) << text;
  EXPECT_PRED2(contains, log, "board a\\x1b[2J\\x0ab\\x9b boots");
}

// The launcher asks while the output and the log of a run that has ended are still on the board.
TEST_F(HelloTest, ReportsARunAsBusyUntilItsDataHasArrived) {
  auto gateway = std::async(std::launch::async, [&] { return Gateway(options()).run(); });
  PlayedBoard board(folder_);
  agent::Hello hello = good_hello();
  hello.events_room = 1;
  board.say_hello(hello);
  control::Any packet;
  control::Memory memory;
  memory.input_bytes = memory.output_bytes = PlayedBoard::kBufferBytes;
  memory.events = 1;
  const int file = memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(file, static_cast<off_t>(control::memory_bytes(memory))), 0);
  control::RunRequest request{.number = PlayedBoard::kRun};
  EXPECT_TRUE(
      comes(board, packet, control::Packet::kHello) &&
      control::send(launcher_end_, control::Peers{}) &&
      comes(board, packet, control::Packet::kReady) && control::send(launcher_end_, memory, file) &&
      comes(board, packet, control::Packet::kMapped) && control::send(launcher_end_, request));
  close(file);
  while (!board.has_reported()) board.poll();
  // The gateway may take the first Ask before the report, and then sends no answer.
  int answers = 0;
  while (answers < 2) {
    EXPECT_TRUE(control::send(launcher_end_, control::Ask{}));
    int descriptor = -1;
    if (control::receive(launcher_end_, packet, descriptor, 100) != control::Received::kPacket)
      continue;
    ++answers;
    EXPECT_EQ(packet.report.status, Status::kBusy);
    EXPECT_EQ(packet.report.log.count, 0u);
  }
  board.send_output_and_log();
  EXPECT_TRUE(comes(board, packet, control::Packet::kReport));
  EXPECT_EQ(packet.report.status, Status::kOk);
  EXPECT_EQ(packet.report.log.count, 1u);
  close(launcher_end_);
  gateway.wait();
}

// What a board that stopped said last is in the line that names it.
TEST_F(HelloTest, QuotesTheConsoleOfABoardThatEnds) {
  for (const auto& [output, quoted] :
       {std::pair<std::string, std::string>{"boot: slot 0\\nfault: reason 0x00080000\\n\\n",
                                            "ends with 'fault: reason 0x00080000'"},
        {"\\033[2Jboot", "ends with '\\x1b[2Jboot'"},
        {"", "is empty"}}) {
    GatewayOptions with_console = options();
    with_console.console = folder_ + "/console";
    with_console.start = "sh -c \"printf '" + output + "'; exit 3\"";
    int launcher = -1, node = -1;
    ASSERT_TRUE(control::open_channel(launcher, node));
    with_console.node.controls = {node};
    auto gateway = std::async(std::launch::async, [&] { return Gateway(with_console).run(); });
    control::Any packet;
    int descriptor = -1;
    const control::Received received = control::receive(launcher, packet, descriptor, 60000);
    close(launcher);
    EXPECT_EQ(gateway.get(), 1);
    ASSERT_EQ(received, control::Received::kPacket);
    const std::string text = packet.failed.text;
    EXPECT_PRED2(contains, text, "ended with status 3; it was started as: sh -c");
    EXPECT_PRED2(contains, text, "; its console " + folder_ + "/console " + quoted);
    close(node);
  }
}

// The launcher asks, and takes no answer.
TEST_F(HelloTest, EndsIfTheLauncherTakesNoReport) {
  auto gateway = std::async(std::launch::async, [&] { return Gateway(options()).run(); });
  PlayedBoard board(folder_);
  board.say_hello(good_hello());
  control::Any packet;
  EXPECT_TRUE(comes(board, packet, control::Packet::kHello) &&
              control::send(launcher_end_, control::Peers{}) &&
              comes(board, packet, control::Packet::kReady));
  EXPECT_EQ(shutdown(launcher_end_, SHUT_RD), 0);
  EXPECT_TRUE(control::send(launcher_end_, control::Ask{}));
  close(launcher_end_);
  EXPECT_EQ(gateway.get(), 1);
}

}  // namespace
}  // namespace espalier::gateway
