#include "firmware/node/generations.h"

#include <gtest/gtest.h>

#include "espalier/hal/sim/network.h"

namespace espalier::node {
namespace {

// Three nodes; node 2 was lost, and asks in a second network.
class GenerationLinksTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kAsks = 77, kReply = 78;

  void pass() {
    while (former_.advance(UINT64_MAX) || newer_.advance(UINT64_MAX)) {
    }
  }
  static Status send(Endpoint& from, std::uint32_t node, std::uint32_t number) {
    for (std::uint32_t link = 0; link < from.links(); ++link) {
      if (from.peer(link) != node) continue;
      return from.post_control(link, {ControlKind::kProbe, number, {}});
    }
    return Status::kNoSuchPeer;
  }
  // The node and the number of each control that arrives.
  static std::vector<std::pair<std::uint32_t, std::uint32_t>> arrived(Endpoint& endpoint) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    Completion completion;
    for (int i = 0; i < 10; ++i) {
      if (!endpoint.poll(completion)) continue;
      all.emplace_back(endpoint.peer(completion.link), completion.control.number);
    }
    return all;
  }

  sim::Network former_{sim::Model(), sim::complete_links(3)};
  sim::Network newer_{sim::Model(), sim::complete_links(3)};
  GenerationLinks links_{former_.endpoint(0)};
};

using Controls = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST_F(GenerationLinksTest, TakesControlsOfTheLostNodeFromTheNewerLinks) {
  EXPECT_EQ(send(newer_.endpoint(2), 0, kAsks), Status::kOk);
  pass();
  EXPECT_EQ(arrived(links_), Controls());
  links_.ask_over(newer_.endpoint(0), 2);
  EXPECT_EQ(send(former_.endpoint(1), 0, 5), Status::kOk);
  EXPECT_EQ(send(newer_.endpoint(1), 0, 6), Status::kOk);  // it is there, but nobody's request
  pass();
  EXPECT_EQ(arrived(links_), Controls({{1, 5}, {2, kAsks}}));
}

TEST_F(GenerationLinksTest, RepliesToTheLostNodeOverTheNewerLinks) {
  links_.ask_over(newer_.endpoint(0), 2);
  EXPECT_EQ(send(links_, 2, kReply), Status::kOk);
  EXPECT_EQ(send(links_, 1, 5), Status::kOk);
  pass();
  EXPECT_EQ(arrived(newer_.endpoint(2)), Controls({{0, kReply}}));
  EXPECT_EQ(arrived(former_.endpoint(2)), Controls());
  EXPECT_EQ(arrived(former_.endpoint(1)), Controls({{0, 5}}));
  EXPECT_EQ(arrived(newer_.endpoint(1)), Controls());
}

TEST_F(GenerationLinksTest, LeadsElsewhereOnceItIsReplaced) {
  links_.replace(newer_.endpoint(0));
  EXPECT_EQ(send(links_, 1, 5), Status::kOk);
  pass();
  EXPECT_EQ(arrived(former_.endpoint(1)), Controls());
  EXPECT_EQ(arrived(newer_.endpoint(1)), Controls({{0, 5}}));
}

}  // namespace
}  // namespace espalier::node
