// Strangers' connections to an endpoint over tcp, in a program with the connection gate.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/testing/results.h"
#include "hal/fabric/address.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

constexpr int kStrangers = 200;

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files))) - 1;  // itself
}

class ConnectionGate : public testing::Test {
 protected:
  void SetUp() override {
    AddedConfig config;
    config.provider = "tcp";
    config.max_links = 2;
    config.has_secret = true;
    config.secret.fill(3);
    for (std::uint32_t node = 0; node < 3; ++node) {
      nodes_.push_back(or_throw(AddedLinks::open(for_node(config, node))));
    }
    std::vector<std::string> addresses;
    for (const auto& node : nodes_) addresses.push_back(node->address());
    for (const auto& node : nodes_) ASSERT_TRUE(node->set_addresses(addresses));
    const std::string text = address_text(addresses[0]);
    const std::size_t colon = text.rfind(':');
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1))));
    ASSERT_EQ(inet_pton(AF_INET, text.substr(0, colon).c_str(), &address_.sin_addr), 1) << text;
  }
  void TearDown() override {
    for (const int stranger : strangers_) close(stranger);
  }

  // Connects a stranger to node 0, which says these bytes.
  void connect_stranger(const std::string& bytes) {
    const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(stranger, 0);
    strangers_.push_back(stranger);
    ASSERT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)), 0);
    ASSERT_EQ(send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void close_strangers() {
    for (const int stranger : strangers_) close(stranger);
    strangers_.clear();
  }
  void make_progress(std::uint64_t ns) {
    const std::uint64_t end = monotonic_ns() + ns;
    Completion completion;
    do {
      EXPECT_FALSE(nodes_[0]->endpoint().poll(completion));
    } while (monotonic_ns() < end);
  }
  // Connects node 0 to `peer`, which asks for it.
  void connect_to(std::uint32_t peer) {
    const std::uint32_t link = or_throw(nodes_[peer]->add_link(0));
    while (!or_throw(nodes_[peer]->connect_links({&link, 1}))) make_progress(0);
  }

  std::vector<std::unique_ptr<AddedLinks>> nodes_;
  sockaddr_in address_ = {};
  std::vector<int> strangers_;
};

// Not one connection without a request stays open, whether the stranger goes, or waits.
TEST_F(ConnectionGate, ConnectionsWithoutARequestAreClosed) {
  connect_to(1);
  const std::size_t before = open_files();
  for (const std::string& bytes : {std::string(), std::string(8, 'x')}) {
    for (int i = 0; i < kStrangers; ++i) {
      connect_stranger(bytes);
      if (i % 20 == 19) make_progress(1'000'000);
    }
    make_progress(200'000'000);
    EXPECT_EQ(open_files(), before + kStrangers) << "held, " << bytes.size() << " bytes";
    close_strangers();
    make_progress(200'000'000);
    EXPECT_EQ(open_files(), before) << "closed, " << bytes.size() << " bytes";
  }
  connect_to(2);
}

// At the limit of open files a stranger is refused, the processor is not used up, and the links
// that are there go on.
TEST_F(ConnectionGate, TheLimitOfOpenFilesDoesNotWakeForever) {
  connect_to(1);
  make_progress(50'000'000);
  std::vector<int> fillers;
  for (int i = 0; i < 2; ++i) connect_stranger({});
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = open_files() + 8;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int file = 0; (file = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
    fillers.push_back(file);
  for (const int stranger : strangers_) EXPECT_EQ(send(stranger, "sixteen bytes or", 16, 0), 16);
  make_progress(20'000'000);
  timespec begin = {};
  timespec end = {};
  const std::uint64_t start = monotonic_ns();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  nodes_[0]->endpoint().wait(start + 1'000'000'000);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const std::uint64_t waited = monotonic_ns() - start;
  const auto used = static_cast<std::uint64_t>((end.tv_sec - begin.tv_sec) * 1'000'000'000 +
                                               (end.tv_nsec - begin.tv_nsec));
  EXPECT_GE(waited, 1'000'000'000u);
  EXPECT_LT(used, waited / 4);  // An emulated processor takes ten times as long for its looks.
  for (const int filler : fillers) close(filler);
  limit.rlim_cur = soft;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  connect_to(2);
}

}  // namespace
}  // namespace espalier::ofi
