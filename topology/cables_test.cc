// Cables in topology files: the links that they make, their refusals, and what the digest covers.

#include <gtest/gtest.h>

#include <string>

#include "base/testing/results.h"
#include "topology/custom_content.h"
#include "topology/testing/must_parse.h"

namespace espalier::topology {
namespace {

std::string cable(const std::string& a, const std::string& b, const std::string& more = "") {
  const auto end = [](const std::string& text) {
    const auto colon = text.find(':');
    return "end{host:'" + text.substr(0, colon) + "' interface:'" + text.substr(colon + 1) + "'}";
  };
  return " cable{" + end(a) + end(b) + more + "}";
}

const std::string kCableHosts =
    "name:'t' ranks:3 node{node:0 name:'a'} node{node:1 name:'one' host:'b'}"
    " node{node:2 host:'c'}";
const std::string kCablePath = kCableHosts + cable("a:eth0", "b:eth0") + cable("b:eth1", "c:eth0");

std::string cable_error(const std::string& text) {
  const auto content = read_custom(text);
  return content ? "" : content.error().what;
}

TEST(Cables, AreLinksAndLanes) {
  const std::string text = kCablePath + cable("a:eth1", "b:eth2", " rate_mbits:10000 mtu:9000") +
                           cable("a:eth2", "c:eth1");
  const auto read = read_custom(text);
  ASSERT_TRUE(read) << read.error().what;
  const CustomContent& content = *read;
  ASSERT_EQ(content.cables.size(), 4u);
  const Cable& third = content.cables[2];
  EXPECT_EQ(third.ends[0].node, 0u);
  EXPECT_EQ(third.ends[0].interface, "eth1");
  EXPECT_EQ(third.ends[1].node, 1u);
  EXPECT_EQ(third.ends[1].interface, "eth2");
  EXPECT_EQ(third.rate_mbits, 10000u);
  EXPECT_EQ(third.mtu, 9000u);
  EXPECT_EQ(content.nodes[0].host, "a");
  EXPECT_EQ(content.nodes[1].host, "b");
  const auto topology = must_parse("custom:" + text);
  expect_links(*topology);
  EXPECT_EQ(topology->link_count(), 6u);
  EXPECT_EQ(topology->capacity(0, 1), 2u) << "two cables";
  EXPECT_EQ(topology->capacity(1, 0), 2u);
  EXPECT_EQ(topology->capacity(2, 1), 1u);
}

// Interfaces, rates and hosts may change without another schedule; links may not.
TEST(Cables, AreOutsideTheDigest) {
  const auto digest = [](const std::string& text) {
    return must_parse("custom:" + text)->digest();
  };
  const std::string links =
      "name:'t' ranks:3 node{node:0 name:'a'} node{node:1 name:'one'}"
      " link{from:0 to:1} link{from:1 to:2}";
  EXPECT_EQ(digest(kCablePath), digest(links));
  EXPECT_EQ(digest(kCableHosts + cable("c:x", "b:y", " mtu:1500") + cable("b:z", "a:x")),
            digest(links));
  EXPECT_NE(digest(kCablePath + cable("a:eth1", "c:eth1")), digest(links));
  // An entry for the link says how many lanes it has.
  const auto wide = must_parse("custom:" + kCablePath + " link{from:0 to:1 capacity:5}");
  EXPECT_EQ(wide->capacity(1, 0), 5u);
  EXPECT_EQ(wide->capacity(1, 2), 1u);
  const auto one_way = must_parse("custom:" + kCablePath + cable("a:eth1", "c:eth1") +
                                  " link{from:2 to:0 one_way:true}");
  EXPECT_EQ(one_way->capacity(0, 2), 0u);
  EXPECT_EQ(must_parse(wide->spec())->spec(), wide->spec());
}

TEST(Cables, WrongOnesAreRefused) {
  const std::pair<std::string, const char*> kRows[] = {
      {kCableHosts + " cable{end{host:'a' interface:'x'}}",
       "cable: it has 1 end; expected two, each end { host: ... interface: ... }"},
      {kCableHosts + " cable{}", "cable: it has 0 ends; expected two"},
      {kCablePath + cable("a:x", "d:y"),
       "cable: host 'd' is not a node's host; expected one that a node { ... host: \"...\" } "
       "names"},
      {kCablePath + cable("a:x", ":y"), "cable: an end has no host; expected one that a node"},
      {kCablePath + cable("one:x", "a:y"), "cable: host 'one' is not a node's host; expected"},
      {kCablePath + cable("a:x", "a:y"),
       "cable: both ends are at host a; expected the interfaces of two hosts"},
      {kCablePath + cable("a:eth0", "c:eth1"),
       "cable: interface eth0 of host a is the end of two cables; expected one cable per "
       "interface"},
      {kCablePath + cable("a:", "c:eth1"), "cable: '' at host a is not the name of an interface"},
      {kCablePath + cable("a:sixteen-letters-", "c:eth1"),
       "is not the name of an interface; expected 1"},
      {kCablePath + cable("a:x,y", "c:eth1"),
       "cable: 'x,y' at host a is not the name of an interface"},
      {kCablePath + cable("a:x", "c:y", " rate_mbits:0"),
       "cable: rate_mbits is 0; expected its Mbit/s"},
      {kCablePath + cable("a:x", "c:y", " mtu:100"),
       "cable: mtu is 100; expected 1280 to 65536 bytes"},
      {"name:'t' ranks:2 node{node:0 host:'a'} node{node:1 name:'a'}" + cable("a:x", "a:y"),
       "nodes 0 and 1 have the host a; expected a host of its own for each node"},
      {"name:'t' ranks:2 node{node:0 host:'a b'}" + cable("a:x", "a:y"),
       "node 0's host is not the name of a host; expected host:"},
  };
  for (const auto& [text, words] : kRows) {
    EXPECT_NE(cable_error(text).find(words), std::string::npos) << cable_error(text) << '\n'
                                                                << words;
  }
  // Without a cable, names may repeat.
  EXPECT_EQ(cable_error("name:'t' ranks:2 node{node:0 name:'a b'} node{node:1 name:'a b'}"
                        " link{from:0 to:1}"),
            "");
}

}  // namespace
}  // namespace espalier::topology
