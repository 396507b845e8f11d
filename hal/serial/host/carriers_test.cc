#include "hal/serial/host/carriers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/testing/free_port.h"
#include "base/testing/results.h"
#include "espalier/hal/serial/carrier.h"
#include "hal/serial/ethernet.h"
#include "hal/serial/host/sockets.h"

namespace espalier {
namespace {

using Frame = std::vector<std::uint8_t>;

class HostCarriers : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/espalier-serial-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { EXPECT_EQ(rmdir(folder_.c_str()), 0) << "something was left behind"; }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

Frame frame_of(std::uint32_t size, std::uint32_t seed) {
  Frame frame(size);
  // With zeros, and with runs without zeros.
  for (std::uint32_t i = 0; i < size; ++i) {
    frame[i] = static_cast<std::uint8_t>(i % 300 < 260 ? (i + seed) % 255 + 1 : 0);
  }
  return frame;
}

// Sends frames of many sizes from one carrier to the other, one at a time.
void exchange(Carrier& from, Carrier& to, const std::function<void()>& relay = nullptr) {
  Frame room(to.mtu());
  for (std::uint32_t size = 1; size <= from.mtu(); size += size < 70 ? 1 : 97) {
    const Frame frame = frame_of(size, size);
    Status sent = Status::kTryAgain;
    std::uint32_t got = 0;
    while (got == 0) {
      if (sent == Status::kTryAgain) sent = from.send(frame.data(), size);
      if (relay) relay();
      got = to.receive(room.data());
    }
    ASSERT_EQ(got, size);
    ASSERT_TRUE(std::equal(frame.begin(), frame.end(), room.begin())) << size << " bytes";
  }
}

TEST_F(HostCarriers, UnixDatagrams) {
  const auto gateway = or_throw(open_carrier("unix:" + at("host") + "," + at("board")));
  const Frame lost = frame_of(100, 1);
  EXPECT_EQ(gateway->send(lost.data(), 100), Status::kOk) << "no receiver exists yet: lost";
  const auto board = or_throw(open_board_carrier("unix:" + at("board") + "," + at("host")));
  exchange(*gateway, *board);
  exchange(*board, *gateway);
  EXPECT_FALSE(gateway->down());
}

// The view of an emulator's Ethernet device: the frames that it receives, and the frames that it
// may send.
TEST_F(HostCarriers, UnixDatagramsAreEthernetFrames) {
  const auto gateway = or_throw(open_carrier("unix:" + at("host") + "," + at("board")));
  const Descriptor device(socket(AF_UNIX, SOCK_DGRAM, 0));
  or_throw(bind_unix(device.get(), at("board")));
  const std::uint8_t frame[5] = {1, 2, 3, 4, 5};
  ASSERT_EQ(gateway->send(frame, 5), Status::kOk);
  std::uint8_t seen[2000];
  ASSERT_EQ(recv(device.get(), seen, sizeof seen, 0), 60) << "the shortest Ethernet frame";
  const std::uint8_t expected[] = {0x02, 'E',  's',  'p', 'l', 1, 0x02, 'E', 's', 'p', 'l',
                                   0,    0x88, 0xb5, 5,   0,   1, 2,    3,   4,   5,   0};
  EXPECT_EQ(std::memcmp(seen, expected, sizeof expected), 0);
  // In the other direction: for another address, of another protocol, longer than its bytes; then a
  // correct one.
  const sockaddr_un host = or_throw(address_of(at("host")));
  const auto send = [&](std::size_t size) {
    return sendto(device.get(), seen, size, 0, reinterpret_cast<const sockaddr*>(&host),
                  sizeof host);
  };
  ASSERT_EQ(send(60), 60);
  write_ethernet_header(seen, kGatewayAddress, kBoardAddress, 5);
  seen[12] = 8;
  ASSERT_EQ(send(60), 60);
  write_ethernet_header(seen, kGatewayAddress, kBoardAddress, 45);
  ASSERT_EQ(send(60), 60);
  ASSERT_EQ(send(7), 7);
  write_ethernet_header(seen, kGatewayAddress, kBoardAddress, 44);
  ASSERT_EQ(send(60), 60);
  std::uint8_t got[kEthernetMtu];
  EXPECT_EQ(gateway->receive(got), 44u);
  EXPECT_EQ(gateway->receive(got), 0u);
  unlink(at("board").c_str());
}

TEST_F(HostCarriers, ReplacesASocketThatWasLeftButNoFile) {
  {
    const Descriptor left(socket(AF_UNIX, SOCK_DGRAM, 0));
    or_throw(bind_unix(left.get(), at("host")));
  }
  EXPECT_EQ(message_of(open_carrier("unix:" + at("host") + "," + at("board"))), "");
  const Descriptor file(open(at("host").c_str(), O_CREAT | O_WRONLY, 0600));
  const auto refused = open_carrier("stream:" + at("host"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "device 'stream:" + at("host") +
                                         "': cannot bind the socket '" + at("host") +
                                         "': Address already in use");
  unlink(at("host").c_str());
}

// Two carriers with the local ports `a` and `b`.
void exchange_over_udp(const std::string& a, const std::string& b, const std::string& host) {
  const auto left = or_throw(open_carrier("udp:" + a + "," + host + ":" + b));
  const Frame lost = frame_of(100, 1);
  EXPECT_EQ(left->send(lost.data(), 100), Status::kOk);
  EXPECT_EQ(left->send(lost.data(), 100), Status::kOk) << "the error belongs to an earlier frame";
  const auto right = or_throw(open_carrier("udp:" + b + "," + host + ":" + a));
  exchange(*left, *right);
  exchange(*right, *left);
}

TEST_F(HostCarriers, Udp) {
  const std::string a = std::to_string(free_port(SOCK_DGRAM));
  std::string b = a;
  while (b == a) b = std::to_string(free_port(SOCK_DGRAM));
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    SCOPED_TRACE(host);
    exchange_over_udp(a, b, host);
  }
}

// The device's end of a stream.
class Device final : public ByteStream {
 public:
  explicit Device(int fd) : fd_(fd) {}
  [[nodiscard]] bool put(std::uint8_t byte) override { return write(fd_, &byte, 1) == 1; }
  [[nodiscard]] bool get(std::uint8_t& byte) override { return read(fd_, &byte, 1) == 1; }

 private:
  int fd_;
};

TEST_F(HostCarriers, StreamThatDevicesJoinAndLeave) {
  const auto host = or_throw(open_carrier("stream:" + at("uart")));
  Frame room(host->mtu());
  EXPECT_EQ(host->receive(room.data()), 0u);
  EXPECT_EQ(host->send(room.data(), 40), Status::kOk) << "no device is connected: lost";
  for (int life = 0; life < 3; ++life) {
    const Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const sockaddr_un address = or_throw(address_of(at("uart")));
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    Device device(fd.get());
    ByteCarrier board(device, kByteMtu);
    exchange(board, *host);
    exchange(*host, board);
    // The device leaves in the middle of a frame.
    ASSERT_TRUE(device.put(9));
    ASSERT_TRUE(device.put(1));
    EXPECT_EQ(host->receive(room.data()), 0u);
    EXPECT_FALSE(host->down());
  }
}

// Opens a pseudo terminal. Returns the path of its other end; empty: there is none.
std::string open_terminal(Descriptor& master) {
  master = Descriptor(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK));
  char slave[64];
  if (!master || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0 ||
      ptsname_r(master.get(), slave, sizeof slave) != 0) {
    return "";
  }
  return slave;
}

TEST_F(HostCarriers, TtyAndItsHangUp) {
  Descriptor master;
  const std::string slave = open_terminal(master);
  ASSERT_NE(slave, "");
  const auto tty = or_throw(open_carrier("tty:" + slave + ",115200"));
  Device device(master.get());
  ByteCarrier board(device, kByteMtu);
  exchange(*tty, board);
  exchange(board, *tty);
  EXPECT_FALSE(tty->down());
  master = Descriptor();
  Frame room(tty->mtu());
  EXPECT_EQ(tty->receive(room.data()), 0u);
  EXPECT_TRUE(tty->down());
}

// A port must not send again while the longest frame and a reply as long are on the line.
TEST_F(HostCarriers, TtyWaitsForTheReplyAtItsRate) {
  Descriptor master;
  const std::string slave = open_terminal(master);
  ASSERT_NE(slave, "");
  for (const std::uint64_t baud : {9600, 19200, 115200, 4000000}) {
    const auto tty = or_throw(open_carrier("tty:" + slave + "," + std::to_string(baud)));
    const std::uint64_t stuffing = 2 + kByteMtu / 254;
    EXPECT_GT(tty->resend_ns(), 2 * (kByteMtu + stuffing) * 10 * 1'000'000'000 / baud) << baud;
    EXPECT_GE(tty->resend_ns(), 200'000'000u) << "time to poll the board";
  }
}

TEST_F(HostCarriers, ReportsErrorsInOneLine) {
  const std::string forms =
      "expected unix:LOCAL,REMOTE or udp:LOCALPORT,HOST:PORT or tty:PATH,BAUD or stream:PATH";
  const std::string longest(200, 'x');
  const std::pair<std::string, std::string> wrong[] = {
      {"", forms},
      {"uart:/dev/ttyS0", forms},
      {"unix:/tmp/a", forms},
      {"unix:,/tmp/a", forms},
      {"stream:", forms},
      {"udp:70000,localhost:1", "the local port is '70000'; expected a number up to 65535"},
      {"udp:1x,localhost:1", "the local port is '1x'; expected a number up to 65535"},
      {"udp:0,localhost",
       "the other end is 'localhost'; expected HOST:PORT with a port from 1 to 65535, as in "
       "[::1]:4000"},
      {"udp:0,localhost:0",
       "the other end is 'localhost:0'; expected HOST:PORT with a port from 1 to 65535, as in "
       "[::1]:4000"},
      {"tty:/dev/null,fast", "the baud rate is 'fast'; expected a number"},
      {"tty:/dev/null,9600",
       "cannot use '/dev/null' as a serial device: Inappropriate ioctl for device"},
      {"tty:" + at("none") + ",9600",
       "cannot use '" + at("none") + "' as a serial device: No such file or directory"},
      {"unix:" + at("a") + "," + longest,
       "the socket's path '" + longest + "' has 200 bytes; it must have 1 to 107"},
      {"unix:" + at("none/a") + ",b",
       "cannot bind the socket '" + at("none/a") + "': No such file or directory"},
  };
  for (const auto& [spec, reason] : wrong) {
    const auto refused = open_carrier(spec);
    ASSERT_FALSE(refused) << spec;
    EXPECT_EQ(refused.error().message, "device '" + spec + "': " + reason);
  }
  const auto refused = open_carrier("tty:/dev/null,1234");
  ASSERT_FALSE(refused);
  const std::string& error = refused.error().message;
  EXPECT_EQ(
      error.find("device 'tty:/dev/null,1234': unknown baud rate 1234; expected one of 9600, "), 0u)
      << error;
}

TEST_F(HostCarriers, TheClockWakesForAFrame) {
  const auto gateway = or_throw(open_carrier("unix:" + at("host") + "," + at("board")));
  const auto board = or_throw(open_board_carrier("unix:" + at("board") + "," + at("host")));
  HostClock clock;
  clock.add(*board);
  const std::uint64_t start = clock.now();
  clock.wait(start + 2'000'000);
  EXPECT_GE(clock.now(), start + 2'000'000) << "no frame arrived";
  const Frame frame = frame_of(50, 0);
  ASSERT_EQ(gateway->send(frame.data(), 50), Status::kOk);
  constexpr std::uint64_t kHour = 3600ull * 1'000'000'000;
  const std::uint64_t late = clock.now() + kHour;
  clock.wait(late);
  EXPECT_LT(clock.now(), late);
}

}  // namespace
}  // namespace espalier
