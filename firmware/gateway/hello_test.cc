// A gateway with a board and a launcher that the test plays. For a Hello with capacities that no
// gateway can serve, the launcher gets one line.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/results.h"
#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/gateway/gateway.h"
#include "hal/serial/host/carriers.h"

namespace espalier::gateway {
namespace {

// Plays the board of a gateway whose sockets are in `folder`.
class PlayedBoard {
 public:
  explicit PlayedBoard(const std::string& folder)
      : carrier_(or_throw(open_board_carrier("unix:" + folder + "/board," + folder + "/gateway"))),
        frames_(2 * carrier_->mtu() / 8 + 1),
        port_(*carrier_, clock_, reinterpret_cast<std::uint8_t*>(frames_.data()), {}),
        endpoint_(port_, links_, &agent::kGateway, 1, agent::kNoNode, config()) {
    clock_.add(*carrier_);
    EXPECT_EQ(endpoint_.post_receive(0, {&in_, sizeof in_, agent::kPacketTag}), Status::kOk);
  }
  void say_hello(const agent::Hello& hello) {
    out_.hello = hello;
    send();
  }
  // Answers Configure, if it has arrived.
  void poll() {
    Completion completion;
    while (endpoint_.poll(completion)) {
      if (completion.kind != Completion::Kind::kReceived) continue;
      EXPECT_EQ(in_.kind, agent::Kind::kConfigure);
      out_ = {};
      out_.answer = {};
      send();
    }
  }

 private:
  static SerialConfig config() {
    SerialConfig config;
    config.session = 77;
    config.first_channel = agent::kChannel;
    config.window = agent::kWindow;
    return config;
  }
  void send() {
    EXPECT_EQ(endpoint_.post_send(0, {&out_, sizeof out_, agent::kPacketTag}), Status::kOk);
  }

  std::unique_ptr<HostCarrier> carrier_;
  HostClock clock_;
  std::vector<std::uint64_t> frames_;
  SerialPort port_;
  SerialLink links_[1] = {};
  SerialEndpoint endpoint_;
  agent::Packet in_, out_;
};

class HelloTest : public testing::Test {
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
    return options;
  }

  // Runs a gateway whose board says `hello`. Returns what the gateway reports to the launcher.
  std::string failure(const agent::Hello& hello) {
    int exit_status = -1;
    std::thread gateway([&] { exit_status = Gateway(options()).run(); });
    std::string reported = reported_to_launcher(hello);
    close(launcher_end_);
    gateway.join();
    EXPECT_EQ(exit_status, 1);
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

  std::string reported_to_launcher(const agent::Hello& hello) {
    PlayedBoard board(folder_);
    board.say_hello(hello);
    control::Any report;
    if (next_packet(board, report) != control::Received::kPacket) return "no packet";
    return report.packet == control::Packet::kFailed ? report.failed.text : "no Failed packet";
  }

  std::string folder_;
  int launcher_end_ = -1, node_end_ = -1;
};

agent::Hello good_hello() {
  agent::Hello hello;
  hello.node = 6;
  hello.window = 2;
  hello.input_room = hello.output_room = hello.scratch_room = 262144;
  return hello;
}

TEST_F(HelloTest, RefusesMoreRoomThanItCanBuffer) {
  agent::Hello hello = good_hello();
  hello.links = 128;
  hello.window = 16;
  hello.scratch_room = UINT32_MAX;
  const std::string text = failure(hello);
  EXPECT_NE(text.find("reports room for 4294967295 bytes and 128 links with a window of 16; the "
                      "gateway would need 17592186044416 bytes of buffers, expected at most "
                      "1073741824"),
            std::string::npos)
      << text;
}

TEST_F(HelloTest, RefusesAWindowOfZero) {
  agent::Hello hello = good_hello();
  hello.window = 0;
  const std::string text = failure(hello);
  EXPECT_NE(text.find("reports a window of 0; expected at least 1"), std::string::npos) << text;
}

TEST_F(HelloTest, RefusesTooManyLinks) {
  agent::Hello hello = good_hello();
  hello.links = kMaxLinks + 1;
  const std::string text = failure(hello);
  EXPECT_NE(text.find("reports 129 links and 0 programs; expected at most 128 and 16"),
            std::string::npos)
      << text;
}

// The launcher asks, and takes no answer.
TEST_F(HelloTest, EndsIfTheLauncherTakesNoReport) {
  int exit_status = -1;
  std::thread gateway([&] { exit_status = Gateway(options()).run(); });
  PlayedBoard board(folder_);
  board.say_hello(good_hello());
  control::Any packet;
  const auto comes = [&](control::Packet kind) {
    return next_packet(board, packet) == control::Received::kPacket && packet.packet == kind;
  };
  const bool ready = comes(control::Packet::kHello) &&
                     control::send(launcher_end_, control::Peers{}) &&
                     comes(control::Packet::kReady);
  EXPECT_TRUE(ready);
  EXPECT_EQ(shutdown(launcher_end_, SHUT_RD), 0);
  EXPECT_TRUE(control::send(launcher_end_, control::Ask{}));
  close(launcher_end_);
  gateway.join();
  EXPECT_EQ(exit_status, 1);
}

}  // namespace
}  // namespace espalier::gateway
