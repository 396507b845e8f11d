// What the conformance suite cannot know about this back end; see also conformance_test.cc.

#include "hal/ofi/ofi_endpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "hal/ofi/cluster.h"

namespace espalier::ofi {
namespace {

using Bytes = std::vector<std::uint8_t>;

class OfiTest : public testing::TestWithParam<const char*> {
 protected:
  Config config() const {
    Config config;
    config.provider = GetParam();
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, OfiTest, testing::Values("tcp", "shm"),
                         [](const auto& info) { return std::string(info.param); });

Bytes pattern(std::size_t size, std::uint32_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 31 + seed * 7 + (i >> 8));
  return bytes;
}

// Polls the endpoints of a cluster and keeps what comes, by endpoint.
class Inbox {
 public:
  explicit Inbox(Cluster& cluster) : cluster_(cluster), come_(cluster.nodes.size()) {}
  void poll_all() {
    for (std::size_t v = 0; v < come_.size(); ++v) {
      Completion completion;
      while (cluster_[v].poll(completion)) come_[v].push_back(completion);
    }
  }
  // Polls until `v` has one of `kind`; takes it out.
  Completion await(std::size_t v, Completion::Kind kind) {
    while (true) {
      for (auto it = come_[v].begin(); it != come_[v].end(); ++it) {
        if (it->kind != kind) continue;
        const Completion found = *it;
        come_[v].erase(it);
        return found;
      }
      poll_all();
    }
  }
  [[nodiscard]] std::size_t size(std::size_t v) const { return come_[v].size(); }

 private:
  Cluster& cluster_;
  std::vector<std::vector<Completion>> come_;
};

TEST_P(OfiTest, CarriesMessagesOfEverySizeBothWays) {
  Cluster cluster(config(), {{1}, {0}});
  ASSERT_EQ(cluster.error, "");
  Inbox inbox(cluster);
  for (const std::size_t size :
       {0u, 1u, 8u, 48u, 49u, 112u, 113u, 4080u, 4081u, 4096u, 4097u, 65536u, 5000000u}) {
    const Bytes sent = pattern(size, 3);
    Bytes got(size, 0xee);
    const Region region = {got.data(), got.size()};
    ASSERT_EQ(cluster[1].prepare(&region, 1), Status::kOk);
    ASSERT_EQ(cluster[1].post_receive(0, {got.data(), size, 77, 5}), Status::kOk);
    ASSERT_EQ(cluster[0].post_send(0, {sent.data(), size, 77, 99, 6}), Status::kOk);
    const Completion in = inbox.await(1, Completion::Kind::kReceived);
    EXPECT_EQ(in.status, Status::kOk);
    EXPECT_EQ(in.cookie, 5u);
    EXPECT_EQ(in.check, 99u);
    const Completion out = inbox.await(0, Completion::Kind::kSent);
    EXPECT_EQ(out.status, Status::kOk);
    EXPECT_EQ(out.cookie, 6u);
    EXPECT_EQ(sent, got) << size;
  }
}

}  // namespace
}  // namespace espalier::ofi
