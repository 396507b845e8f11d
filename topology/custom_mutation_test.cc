// A topology text with random small changes must be refused with a reason, or read as a topology
// whose routes follow its links and whose specification parses as itself.

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "espalier/topology/topology.h"

namespace espalier::topology {
namespace {

// Exchanges, drops or duplicates a few characters, or replaces some by characters of the format.
std::string changed(std::string text, std::mt19937& random) {
  constexpr std::string_view kKnown = "0123456789{}[]:, \"xyx-.e#<>";
  for (std::uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
    const std::size_t at = 7 + random() % (text.size() - 7);  // after "custom:"
    const char other = kKnown[random() % kKnown.size()];
    switch (random() % 4) {
      case 0: text[at] = other; break;
      case 1: text.erase(at, 1); break;
      case 2: text.insert(at, 1, other); break;
      default: text[at] = static_cast<char>(random() % 256);
    }
  }
  return text;
}

void expect_whole(const Topology& topology) {
  ASSERT_EQ(or_throw(parse(topology.spec()))->spec(), topology.spec());
  for (std::uint32_t from = 0; from < topology.nodes(); ++from) {
    for (std::uint32_t to = 0; to < topology.nodes(); ++to) {
      const auto route = topology.route(from, to);
      ASSERT_EQ(route.front(), from);
      ASSERT_EQ(route.back(), to);
      ASSERT_EQ(std::set(route.begin(), route.end()).size(), route.size()) << topology.spec();
      for (std::size_t i = 1; i < route.size(); ++i) {
        ASSERT_GT(topology.capacity(route[i - 1], route[i]), 0u) << topology.spec();
      }
    }
  }
}

TEST(CustomMutation, ReadWholeOrRefused) {
  std::mt19937 random(20);
  int good = 0, refused = 0;
  std::vector<std::string> wholes = {
      "custom:name:'c' ranks:2 node{node:0 host:'a'} node{node:1 host:'b'} cable{end{host:'a' "
      "interface:'x'} end{host:'b' interface:'y'} rate_mbits:100 mtu:9000} cable{end{host:'b' "
      "interface:'x'} end{host:'a' interface:'y'}}"};
  for (const char* name : {"broken-mesh", "uneven-tree"}) {
    wholes.push_back(
        or_throw(read("file:" ESPALIER_EXAMPLES "/" + std::string(name) + ".textproto"))->spec());
  }
  for (const std::string& whole : wholes) {
    for (int round = 0; round < 2000; ++round) {
      const auto topology = parse(changed(whole, random));
      if (!topology) {
        ++refused;
        const std::string& error = topology.error().message;
        ASSERT_NE(error.find("; expected "), std::string::npos) << error;
        continue;
      }
      ++good;
      expect_whole(**topology);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace espalier::topology
