#include "espalier/internal/base/link_set.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

namespace espalier {
namespace {

std::vector<std::uint32_t> list(const LinkSet& set) {
  std::vector<std::uint32_t> links;
  set.for_each([&](std::uint32_t link) { links.push_back(link); });
  return links;
}

TEST(LinkSet, IsASet) {
  EXPECT_TRUE(rc::check("as std::set", [] {
    LinkSet links;
    std::set<std::uint32_t> expected;
    for (int edit = 0; edit < 200; ++edit) {
      const auto link = *rc::gen::inRange(0u, kMaxLinks);
      if (*rc::gen::arbitrary<bool>()) {
        links.insert(link);
        expected.insert(link);
      } else {
        links.erase(link);
        expected.erase(link);
      }
      RC_ASSERT(links.contains(link) == (expected.count(link) == 1));
      RC_ASSERT(links.empty() == expected.empty());
      const auto next = expected.lower_bound(link);
      RC_ASSERT(links.next(link) == (next == expected.end() ? LinkSet::kNone : *next));
    }
    RC_ASSERT(list(links) == std::vector<std::uint32_t>(expected.begin(), expected.end()));
  }));
}

TEST(LinkSet, OfAllLinks) {
  EXPECT_TRUE(LinkSet::first(0).empty());
  EXPECT_EQ(list(LinkSet::first(kMaxLinks)).size(), kMaxLinks);
  EXPECT_EQ(list(LinkSet::first(2)), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(LinkSet::first(kMaxLinks).next(kMaxLinks - 1), kMaxLinks - 1);
  LinkSet last;
  last.insert(kMaxLinks - 1);
  EXPECT_EQ(list(LinkSet::first(1) | last), (std::vector<std::uint32_t>{0, kMaxLinks - 1}));
  last.clear();
  EXPECT_TRUE(last.empty());
  EXPECT_EQ(last.next(0), LinkSet::kNone);
}

// Erasing during the iteration does not affect the iteration.
TEST(LinkSet, MayChangeWhileItIsWalked) {
  LinkSet links = LinkSet::first(5);
  std::uint32_t walked = 0;
  links.for_each([&](std::uint32_t link) {
    links.erase(4 - link);
    ++walked;
  });
  EXPECT_EQ(walked, 5u);
  EXPECT_TRUE(links.empty());
}

}  // namespace
}  // namespace espalier
