#include "hal/fabric/ofi/lanes/shared_fabric.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/fabric/ofi/lanes/lane_connector.h"
#include "hal/fabric/ofi/light_mutex.h"

namespace espalier::ofi {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Two processes, as far as libfabric can tell, and endpoints of both.
class Pair {
 public:
  explicit Pair(std::uint32_t eager_bytes = 0,
                std::shared_ptr<SharedFabric> of_first = make_shared_fabric())
      : eager_bytes_(eager_bytes), fabrics_{std::move(of_first), make_shared_fabric()} {}

  // One more endpoint of each, connected. Returns its index.
  std::size_t add() {
    std::vector<std::string> addresses;
    for (std::uint32_t node = 0; node < 2; ++node) {
      AddedConfig config;
      config.provider = "tcp";
      config.node = node;
      config.max_links = 1;
      config.eager_bytes = eager_bytes_;
      config.fabric = fabrics_[node];
      of_[node].push_back(or_throw(AddedLinks::open(config)));
      addresses.push_back(of_[node].back()->address());
    }
    for (const auto& all : of_) EXPECT_TRUE(all.back()->set_addresses(addresses));
    const std::uint32_t link = 0;
    for (std::uint32_t node = 0; node < 2; ++node) {
      EXPECT_EQ(or_throw(of_[node].back()->add_link(1 - node)), link);
    }
    for (bool all = false; !all;) {
      all = true;
      for (const auto& each : of_) all = or_throw(each.back()->connect_links({&link, 1})) && all;
    }
    return of_[0].size() - 1;
  }
  // The process of the other end of this endpoint has ended.
  void note_end(std::uint32_t node, std::size_t index) { of_[node][index]->note_end_of(1 - node); }
  void end(std::uint32_t node, std::size_t index) { of_[node][index].reset(); }
  Endpoint& at(std::uint32_t node, std::size_t index) { return of_[node][index]->endpoint(); }
  std::string lacked(std::uint32_t node, std::size_t index) const {
    return of_[node][index]->lacked();
  }
  // Polls both ends until each has a completion of its kind.
  void await(std::size_t index, Completion::Kind first, Completion::Kind second) {
    bool has[2] = {};
    while (!has[0] || !has[1]) {
      for (std::uint32_t node = 0; node < 2; ++node) {
        Completion completion;
        if (!at(node, index).poll(completion)) continue;
        EXPECT_EQ(completion.kind, node == 0 ? first : second);
        has[node] = true;
      }
    }
  }
  std::size_t departed(std::uint32_t node) {
    const LightLock lock(&fabrics_[node]->mutex);
    return fabrics_[node]->departed();
  }

 private:
  std::uint32_t eager_bytes_;
  std::shared_ptr<SharedFabric> fabrics_[2];
  std::vector<std::unique_ptr<AddedLinks>> of_[2];
};

// Where it ends, an endpoint says goodbye at once: its process may call nothing for long, and the
// peer keeps memory until then.
TEST(SharedFabric, GoodbyesNeedNoLaterCall) {
  Pair pair;
  const std::size_t kept = pair.add(), ended = pair.add();
  pair.end(0, ended);
  pair.end(1, ended);
  EXPECT_EQ(pair.departed(1), 1u);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  Completion completion;
  while (pair.departed(1) != 0 && std::chrono::steady_clock::now() < until) {
    EXPECT_FALSE(pair.at(1, kept).poll(completion));
  }
  EXPECT_EQ(pair.departed(1), 0u);
}

// A process that was killed says no goodbye: an endpoint that has ended before waits for it no
// longer once the others have agreed on that.
TEST(SharedFabric, AProcessThatHasEndedSaysNoGoodbye) {
  Pair pair;
  const std::size_t kept = pair.add(), ended = pair.add();
  pair.end(1, ended);
  EXPECT_EQ(pair.departed(1), 1u);
  Completion completion;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pair.at(1, kept).poll(completion));
  EXPECT_EQ(pair.departed(1), 1u);
  pair.note_end(1, kept);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (pair.departed(1) != 0 && std::chrono::steady_clock::now() < until) {
    EXPECT_FALSE(pair.at(1, kept).poll(completion));
  }
  EXPECT_EQ(pair.departed(1), 0u);
}

// Newcomers come and go: libfabric knows those only that have an endpoint in common with this
// process.
TEST(SharedFabric, ForgetsProcessesThatHaveEnded) {
  const auto fabric = make_shared_fabric();
  const auto peers = [&] {
    const LightLock lock(&fabric->mutex);
    return fabric->peers();
  };
  Pair stays(0, fabric);
  const std::size_t kept = stays.add();
  for (int i = 0; i < 3; ++i) {
    Pair newcomer(0, fabric);
    const std::size_t first = newcomer.add(), second = newcomer.add();
    EXPECT_EQ(peers(), 2u);
    newcomer.note_end(0, first);
    Completion completion;
    for (const std::size_t ended : {first, second}) {
      newcomer.end(0, ended);
      while (newcomer.departed(0) != 0) EXPECT_FALSE(stays.at(0, kept).poll(completion));
      EXPECT_EQ(peers(), ended == first ? 2u : 1u);
    }
  }
}

// How many connections the process has accepted at this port of its own.
int accepted(std::uint32_t port) {
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, ":%04X", port);
  int count = 0;
  for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(path);
    std::string line, number, local, remote, state;
    while (std::getline(file, line)) {
      std::istringstream(line) >> number >> local >> remote >> state;
      if (state == "01" && local.ends_with(wanted)) ++count;
    }
  }
  return count;
}

TEST(SharedFabric, TheOlderProcessOpensTheConnection) {
  EXPECT_TRUE(opens_first({10, "b"}, {11, "a"}));
  EXPECT_FALSE(opens_first({11, "a"}, {10, "b"}));
  EXPECT_TRUE(opens_first({UINT32_MAX, "b"}, {3, "a"}));
  EXPECT_FALSE(opens_first({3, "a"}, {UINT32_MAX, "b"}));
  EXPECT_TRUE(opens_first({10, "a"}, {10, "b"}));
  EXPECT_FALSE(opens_first({10, "b"}, {10, "a"}));
  const auto fabric = make_shared_fabric();
  Pair stays(0, fabric);
  stays.add();
  const std::uint32_t port = fabric->domain().socket_port(0);
  const int before = accepted(port);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::vector<std::unique_ptr<Pair>> newcomers;
  for (int i = 0; i < 16; ++i) {
    newcomers.push_back(std::make_unique<Pair>(0, fabric));
    newcomers.back()->add();
  }
  // If this thread has no core for 1 s, the newcomer opens one, too.
  EXPECT_LE(accepted(port) - before, 2);
}

// Without a descriptor for a port, and another one for its connection, messages end at once.
TEST(SharedFabric, LongMessagesWithoutFilesFail) {
  Pair pair(8);
  const std::size_t index = pair.add();
  Bytes sent(24), got(24);
  const Region regions[] = {{sent.data(), sent.size()}, {got.data(), got.size()}};
  ASSERT_EQ(pair.at(0, index).prepare(&regions[0], 1), Status::kOk);
  ASSERT_EQ(pair.at(1, index).prepare(&regions[1], 1), Status::kOk);
  ASSERT_EQ(pair.at(1, index).post_receive(0, {got.data(), got.size(), 1, 0}), Status::kOk);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lowered = before;
  lowered.rlim_cur = 0;
  while (fcntl(static_cast<int>(lowered.rlim_cur), F_GETFD) >= 0) ++lowered.rlim_cur;
  ++lowered.rlim_cur;  // one is free
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  EXPECT_EQ(pair.at(0, index).post_receive(0, {sent.data(), sent.size(), 1, 0}), Status::kBackEnd);
  ASSERT_EQ(pair.at(0, index).post_send(0, {sent.data(), sent.size(), 1, 0, 0}), Status::kOk);
  Completion completion;
  while (!pair.at(0, index).poll(completion)) {
  }
  EXPECT_EQ(completion.kind, Completion::Kind::kSent);
  EXPECT_EQ(completion.status, Status::kBackEnd);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(pair.lacked(0, index), "node 0 needs 2 more open files; the limit of " +
                                       std::to_string(lowered.rlim_cur) + " leaves 1 (ulimit -n)");
  EXPECT_EQ(pair.lacked(1, index), "");
}

// Also a message that libfabric would copy keeps its port open until it is on its way, while others
// take ports.
TEST(SharedFabric, ShortMessagesThatAreLongHereArrive) {
  constexpr std::size_t kEndpoints = 20;
  Pair pair(8);
  Bytes sent(24), got(24);
  std::vector<std::size_t> indices;
  const Region region = {got.data(), got.size()};
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    indices.push_back(pair.add());
    ASSERT_EQ(pair.at(1, indices.back()).prepare(&region, 1), Status::kOk);
  }
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t index : indices) {
      for (std::uint8_t& byte : sent) byte = static_cast<std::uint8_t>(index + 7);
      ASSERT_EQ(pair.at(1, index).post_receive(0, {got.data(), got.size(), 1, 0}), Status::kOk);
      ASSERT_EQ(pair.at(0, index).post_send(0, {sent.data(), sent.size(), 1, 0, 0}), Status::kOk);
      pair.await(index, Completion::Kind::kSent, Completion::Kind::kReceived);
      EXPECT_EQ(got, sent) << index;
    }
  }
}

}  // namespace
}  // namespace espalier::ofi
