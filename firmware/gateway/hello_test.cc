// Boards whose Hello reports capacities that no gateway can serve: the launcher gets one line.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/gateway/gateway.h"
#include "hal/serial/host/carriers.h"

namespace espalier::gateway {
namespace {

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

  // Runs a gateway whose board says `hello`. Returns what the gateway reports to the launcher.
  std::string failure(const agent::Hello& hello) {
    GatewayOptions options;
    options.device = "unix:" + folder_ + "/gateway," + folder_ + "/board";
    options.node.nodes = {6};
    options.node.controls = {node_end_};
    int exit_status = -1;
    std::thread gateway([&] { exit_status = Gateway(options).run(); });
    const std::string reported = reported_to_launcher(hello);
    close(launcher_end_);
    gateway.join();
    EXPECT_EQ(exit_status, 1);
    EXPECT_EQ(reported.find('\n'), std::string::npos) << reported;
    return reported;
  }

 private:
  std::string reported_to_launcher(const agent::Hello& hello) {
    const auto carrier =
        open_board_carrier("unix:" + folder_ + "/board," + folder_ + "/gateway").value();
    HostClock clock;
    clock.add(*carrier);
    std::vector<std::uint64_t> frames(2 * carrier->mtu() / 8 + 1);
    SerialPort port(*carrier, clock, reinterpret_cast<std::uint8_t*>(frames.data()), {});
    SerialLink links[1] = {};
    SerialConfig config;
    config.session = 77;
    config.first_channel = agent::kChannel;
    config.window = agent::kWindow;
    SerialEndpoint endpoint(port, links, &agent::kGateway, 1, agent::kNoNode, config);
    agent::Packet packet;
    packet.hello = hello;
    EXPECT_EQ(endpoint.post_send(0, {&packet, sizeof packet, agent::kPacketTag}), Status::kOk);
    while (true) {
      Completion completion;
      (void)endpoint.poll(completion);
      control::Any report;
      int descriptor = -1;
      const control::Received received = control::receive(launcher_end_, report, descriptor, 1);
      if (received == control::Received::kNothing) continue;
      if (received != control::Received::kPacket) return "no packet";
      return report.packet == control::Packet::kFailed ? report.failed.text : "no Failed packet";
    }
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

}  // namespace
}  // namespace espalier::gateway
