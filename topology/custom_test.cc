// Topologies from text: accepted input, refused input with its position, and the routes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/directory_test.h"
#include "topology/testing/must_parse.h"

namespace espalier::topology {
namespace {

std::unique_ptr<Topology> example(const std::string& name) {
  return or_throw(read("file:" ESPALIER_EXAMPLES "/" + name + ".textproto"));
}

std::string error_of(const std::string& text) {
  const auto result = parse("custom:" + text);
  EXPECT_FALSE(result) << text;
  return message_of(result);
}

const std::string kHead = "name:\"t\" ranks:3 ";
const std::string kRing = kHead + "link{from:0 to:1} link{from:1 to:2} link{from:2 to:0} ";

// The mesh's own XY route, except where it would cross the link between 5 and 6.
TEST(Custom, ABrokenMeshGoesAroundItsFault) {
  const auto broken = example("broken-mesh");
  const auto mesh = must_parse("mesh:4x4");
  EXPECT_EQ(broken->ranks(), 16u);
  EXPECT_EQ(broken->link_count(), mesh->link_count() - 2);
  EXPECT_EQ(broken->capacity(5, 6) + broken->capacity(6, 5), 0u);
  expect_links(*broken);
  expect_routes(*broken);
  int around = 0;
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 0; to < 16; ++to) {
      const Nodes straight = mesh->route(from, to);
      bool crosses = false;
      for (std::size_t i = 1; i < straight.size(); ++i) {
        crosses = crosses || straight[i - 1] + straight[i] == 11;
      }
      around += crosses;
      if (!crosses) {
        EXPECT_EQ(broken->route(from, to), straight) << from << " -> " << to;
      }
    }
  }
  EXPECT_EQ(around, 32);
  expect_paths(
      *broken,
      {{4, 5, 9, 10, 11, 7}, {7, 6, 2, 1, 0, 4}, {5, 1, 2, 6}, {6, 10, 9, 5}, {4, 5, 9, 10, 6}});
}

TEST(Custom, AnUnevenTreeRoutesThroughTheLowestCommonSwitch) {
  const auto tree = example("uneven-tree");
  EXPECT_EQ(tree->ranks(), 10u);
  EXPECT_EQ(tree->nodes(), 14u);
  EXPECT_EQ(tree->link_count(), 26u);
  expect_links(*tree);
  expect_routes(*tree);
  expect_paths(*tree, {{0, 10, 4}, {9, 12, 13, 11, 5}});
  EXPECT_EQ(tree->capacity(13, 10), 3u);
  EXPECT_EQ(tree->capacity(12, 13), 1u);
  EXPECT_EQ(tree->capacity(14, 0), 0u) << "there is no node 14";
  EXPECT_EQ(tree->node_name(9), "rank 9");
  EXPECT_EQ(tree->node_name(12), "router 12 (switch of board C)");
  EXPECT_EQ(tree->position(8).x, 9);
  EXPECT_EQ(tree->title(), "uneven-tree");
}

TEST(Custom, ShortestRoutesTakeTheLowestNode) {
  // Rows 0 1 2 and 3 4 5: three shortest routes from end to end.
  const auto grid = must_parse(
      "custom:name:\"grid\" ranks:6 link{from:0 to:1} link{from:1 to:2} link{from:3 to:4} "
      "link{from:4 to:5} link{from:0 to:3} link{from:1 to:4} link{from:2 to:5}");
  expect_routes(*grid);
  expect_paths(*grid, {{0, 1, 2, 5}, {5, 2, 1, 0}, {3, 0, 1, 2}, {3}});
}

TEST(Custom, LinksOfOneWay) {
  const auto ring =
      must_parse("custom:" + kHead +
                 "link{from:0 to:1 one_way:true capacity:2} link{from:1 to:2 one_way:true} "
                 "link{from:2 to:0 one_way:true}");
  expect_links(*ring);
  expect_routes(*ring);
  EXPECT_EQ(ring->link_count(), 3u);
  expect_paths(*ring, {{1, 2, 0}});
  const std::string picture = draw_svg(*ring);
  EXPECT_EQ(count_of(picture, "<line"), 3u);
  EXPECT_EQ(count_of(picture, "class=\"way\""), 3u);
  EXPECT_EQ(draw_svg(*must_parse("custom:" + kRing)).find("class=\"way\""), std::string::npos);
}

// next_hop applies to all messages that pass; route only to its two ends.
TEST(Custom, PrecedenceOfOverrides) {
  const std::string square =
      "custom:name:\"s\" ranks:5 link{from:0 to:1} link{from:1 to:2} link{from:2 to:3} "
      "link{from:3 to:0} link{from:4 to:0} ";
  const auto plain = must_parse(square);
  expect_paths(*plain, {{0, 1, 2}});
  const auto hop = must_parse(square + "next_hop{at:0 to:[2] next:3}");
  expect_paths(*hop, {{0, 3, 2}, {4, 0, 3, 2}, {0, 1}});
  const auto route = must_parse(square + "next_hop{at:0 to:2 next:3} route{node:[0,1,2]}");
  expect_paths(*route, {{0, 1, 2}, {4, 0, 3, 2}, {2, 1, 0}});
  EXPECT_NE(plain->digest(), hop->digest());
  EXPECT_NE(route->digest(), hop->digest());
}

TEST(Custom, TheDigestCoversTheContent) {
  const std::string canonical =
      "custom:name:\"c\" ranks:2 routers:1 node{node:0 x:0 y:0} node{node:1 x:1.5 y:0} "
      "node{node:2 name:\"hub\" x:0.1 y:1} link{from:0 to:1 one_way:true} "
      "link{from:0 to:2 capacity:2} link{from:1 to:2 one_way:true} "
      "link{from:2 to:1 capacity:4 one_way:true} next_hop{at:0 to:[1] next:2} "
      "route{node:[0,2,1]} route{node:[1,2,0]}";
  const auto one = must_parse(canonical);
  EXPECT_EQ(one->spec(), canonical);
  const auto other = must_parse(
      "custom:  routers: 1, ranks: 2; name: 'c' routing: SHORTEST route { node: 1 node: 2 node: 0 }"
      "route { node: [0, 2, 1] } link { from: 2 to: 0 capacity: 2 one_way: true }"
      "link { from: 0 to: 2 capacity: 2 one_way: true } link { to: 1 from: 0 capacity: 1 one_way: "
      "true } link { from: 2 to: 1 capacity: 4 one_way: true } next_hop { at: 0 next: 2 to: 1 }"
      "link < from: 1 to: 2 one_way: true > node { node: 2 y: 1.0 x: 1e-1 name: \"hub\" }"
      "node { node: 1 x: 15e-1 y: -0.0 } node { node: 0 x: 0 y: 0 }");
  EXPECT_EQ(other->spec(), canonical);
  EXPECT_EQ(other->digest(), one->digest());
  // FNV-1a of the specification: descriptors of old files must remain valid.
  EXPECT_EQ(must_parse("custom:" + kRing)->digest(), 0x2f886b162c4b7942ull);
  for (const char* change : {"link{from:1 to:0 one_way:true}", "next_hop{at:1 to:[0] next:2}"}) {
    EXPECT_NE(must_parse(canonical + " " + change)->digest(), one->digest()) << change;
  }
  for (const char* name : {"broken-mesh", "uneven-tree"}) {
    const auto topology = example(name);
    EXPECT_EQ(must_parse(topology->spec())->spec(), topology->spec());
    EXPECT_EQ(topology->spec().find('\n'), std::string::npos);
  }
}

struct Row {
  std::string text, parse_error;
};

void expect_errors(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_NE(error_of(row.text).find(row.parse_error), std::string::npos) << error_of(row.text);
  }
}

TEST(Custom, ErrorsOfHeadAndNodes) {
  const std::string three = "expected 0 to 2 (3 ranks, 0 routers)";
  const std::string two = "node{node:0 x:0 y:0} node{node:1 x:1 y:0} ";
  expect_errors({
      {"ranks:3",
       "the name is missing; expected name: \"...\" of 1 to 64 letters, digits, "
       "'.', '_' and '-'"},
      {"name:\"a b\" ranks:3", "the name is not valid; expected name: \"...\" of 1 to 64"},
      {"name:\"t\"", "the number of ranks is missing or 0; expected ranks: 1 to 1024"},
      {"name:\"t\" ranks:1000 routers:25",
       "1025 nodes are too many; expected at most 1024 ranks and routers"},
      {"name:\"t\" ranks:4294967295 routers:4294967295", "8589934590 nodes are too many"},
      {kRing + "node{name:\"x\"}", "node: 'node' is missing; " + three},
      {kRing + "node{node:3}", "node: 'node' is 3, which is not a node; " + three},
      {kRing + "node{node:1} node{node:1}", "node 1 is listed twice; expected one entry per node"},
      {kRing + "node{node:1 name:\"\\n\"}", "node 1's name is not valid; expected at most 64"},
      {kRing + "node{node:1 x:1}", "node 1 has only one of x and y; expected both or"},
      {kRing + "node{node:1 x:-1 y:0}", "node 1's position is out of range; expected x and"},
      {kRing + "node{node:1 x:nan y:0}", "node 1's position is out of range"},
      {kRing + two, "node 2 has no position, but others have; expected x and y for all"},
      {kRing + two + "node{node:2 x:1 y:0}",
       "node 2 has the same position as node 1; expected different positions"},
      {kRing + "routing:XY",
       "XY routes need positions, and node 0 has none; expected node "
       "{ node: 0 x: ... y: ... } for every node"},
      {kRing + "routing:YX",
       "Unknown enumeration value of \"YX\" for field \"routing\".; "
       "expected text as docs/topologies.md describes it"},
      {kRing + "lnk{}", "has no field named \"lnk\".; expected text as docs/topologies.md"},
      {kRing + "link{", "expected text as docs/topologies.md describes it"},
      {"", "the name is missing"},
  });
}

TEST(Custom, ErrorsOfLinksAndRoutes) {
  const std::string three = "expected 0 to 2 (3 ranks, 0 routers)";
  const std::string line = kHead + "link{from:0 to:1} link{from:1 to:2} ";
  const std::string square =
      "name:\"s\" ranks:4 link{from:0 to:1} link{from:1 to:2} link{from:2 to:3} link{from:3 to:0} ";
  expect_errors({
      {kRing + "link{to:1}", "link: 'from' is missing; " + three},
      {kRing + "link{from:1}", "link: 'to' is missing; " + three},
      {kRing + "link{from:1 to:3}", "link: 'to' is 3, which is not a node; " + three},
      {kRing + "link{from:1 to:1}", "link: node 1 is linked to itself; expected two nodes"},
      {line + "link{from:0 to:2 capacity:0}", "link: capacity is 0; expected 1 to 1048576 lanes"},
      {line + "link{from:1 to:0}",
       "the link from 1 to 0 exists already; expected it once, as a link { ... } without "
       "one_way is one each way"},
      {line + "link{from:1 to:0 one_way:true}", "the link from 1 to 0 exists already"},
      {kHead + "link{from:0 to:1}",
       "rank 0 cannot reach rank 2; expected links by which "
       "every node reaches every other"},
      {kHead + "link{from:0 to:1} link{from:1 to:2 one_way:true}", "rank 2 cannot reach rank 0"},
      {kHead + "routers:1 link{from:0 to:1} link{from:1 to:2}", "rank 0 cannot reach router 3"},
      {line + "next_hop{to:2 next:1}", "next_hop: 'at' is missing; " + three},
      {line + "next_hop{at:0 to:2}", "next_hop: 'next' is missing; " + three},
      {line + "next_hop{at:0 next:1}", "next_hop: 'to' is missing; " + three},
      {line + "next_hop{at:0 to:[2,7] next:1}",
       "next_hop: 'to' is 7, which is not a node; " + three},
      {line + "next_hop{at:0 to:1 next:2}",
       "next_hop: there is no link from 0 to 2; expected the other end of one of node 0's "
       "links"},
      {line + "next_hop{at:0 to:0 next:1}",
       "next_hop: node 0 cannot be its own destination; expected other nodes in 'to'"},
      {line + "next_hop{at:0 to:[2,2] next:1}",
       "next_hop: node 0 has a next_hop for node 2 already; expected one next_hop per "
       "destination"},
      {square + "next_hop{at:1 to:2 next:0}",
       "messages for rank 2 circulate without end, 0 -> 1 -> 0; expected a next_hop that "
       "leads "
       "to it"},
      {square + "next_hop{at:2 to:3 next:1} next_hop{at:1 to:3 next:2}",
       "messages for rank 3 circulate without end, 1 -> 2 -> 1"},
      {line + "route{node:1}", "route: it has 1 node; expected two at least"},
      {line + "route{node:[0,1,9]}", "route: 'node' is 9, which is not a node; " + three},
      {line + "route{node:[0,2]}",
       "route: there is no link from 0 to 2; expected a link from each node to the next"},
      {line + "route{node:[0,1,0]}",
       "route: it visits node 0 twice; expected a route without loops"},
      {line + "route{node:[0,1]} route{node:[0,1]}",
       "route: a route from 0 to 1 exists already; expected one route per pair of ends"},
  });
}

// The error for an XY route that meets a fault names the position.
TEST(Custom, XYRoutesThatEnd) {
  const std::string text =
      "name:\"m\" ranks:4 routing:XY node{node:0 x:0 y:0} node{node:1 x:1 y:0} node{node:2 x:0 "
      "y:1} "
      "node{node:3 x:1 y:1} link{from:0 to:2} link{from:1 to:3} link{from:2 to:3} ";
  EXPECT_NE(error_of(text).find(
                ": the XY route from rank 1 to rank 0 ends at rank 1, which has no link along its "
                "row in that direction; expected a next_hop { at: 1 to: 0 next: ... } or a route "
                "around"),
            std::string::npos)
      << error_of(text);
  const std::string helped = "next_hop{at:1 to:[0,2] next:3} next_hop{at:0 to:[1,3] next:2} ";
  const auto mesh = must_parse("custom:" + text + helped);
  expect_routes(*mesh);
  expect_paths(*mesh, {{1, 3, 2, 0}});
  const auto by_routes = must_parse(
      "custom:" + text +
      "route{node:[1,3,2,0]} route{node:[1,3,2]} route{node:[0,2,3,1]} route{node:[0,2,3]}");
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      EXPECT_EQ(by_routes->route(from, to), mesh->route(from, to));
    }
  }
}

TEST(Custom, LongSpecificationsAreCutInMessages) {
  EXPECT_EQ(
      error_of("ranks:1 name:\"?\""),
      "topology 'custom:ranks:1 name:\"?\"', at character 16: the name is not valid; expected "
      "name: \"...\" of 1 to 64 letters, digits, '.', '_' and '-'");
  EXPECT_EQ(
      error_of(kRing + "link{from:9 to:1}"),
      "topology 'custom:name:\"t\" ranks:3 link{from:0 to:1} link{...', at character 79: link: "
      "'from' is 9, which is not a node; expected 0 to 2 (3 ranks, 0 routers)");
}

class Files : public DirectoryTest {
 protected:
  [[nodiscard]] std::string written(const std::string& text) const {
    std::ofstream(directory_ / "t.textproto") << text;
    return (directory_ / "t.textproto").string();
  }
};

TEST_F(Files, ErrorsNameFileAndLine) {
  for (const Row& row : {
           Row{"name: \"t\"\nranks: 2\n\nlink { from: 0 to: 1 }\nlink {\n  from: 1\n  to: 0\n}\n",
               ":5: the link from 1 to 0 exists already (the first is in line 4); expected it "
               "once, as a link { ... } without one_way is one each way"},
           Row{"# mine\nname: \"t\"\nranks: 2\n",
               ":3: rank 0 cannot reach rank 1; expected links by which every node reaches every "
               "other"},
           Row{"name: \"t\"\nranks: 2\nlink { from: 0 to: one }\n",
               ":3: Expected integer, got: one; expected text as docs/topologies.md describes it"},
       }) {
    const std::string path = written(row.text);
    EXPECT_EQ(message_of(read("file:" + path)), path + row.parse_error);
  }
  EXPECT_EQ(message_of(read("file:" + directory_.string() + "/none")),
            "cannot read '" + directory_.string() +
                "/none': No such file or directory; expected file:PATH of a topology file "
                "as docs/topologies.md describes it");
  const std::string folder = message_of(read("file:" + directory_.string()));
  EXPECT_EQ(folder.find("cannot read"), 0u) << folder;
  EXPECT_EQ(message_of(read("file:/dev/zero")),
            "cannot read '/dev/zero': it is a device; expected a file or a pipe; expected "
            "file:PATH of a topology file as docs/topologies.md describes it");
}

// The path is not part of the topology, and a schedule file's specification opens no file.
TEST_F(Files, AreReadOnlyWhereTheyAreAskedFor) {
  const std::string path = written("# some\n" + kRing);
  const auto topology = or_throw(read("file:" + path));
  EXPECT_EQ(topology->spec(), must_parse("custom:" + kRing)->spec());
  const std::string error = message_of(parse("file:" + path));
  EXPECT_EQ(error.find("unknown topology 'file:"), 0u) << error;
}

TEST(Custom, TheLargest) {
  std::string text = "custom:name:\"ring\" ranks:1024";
  for (int node = 0; node < 1024; ++node) {
    text += " link{from:" + std::to_string(node) + " to:" + std::to_string((node + 1) % 1024) + "}";
  }
  const auto ring = must_parse(text);
  EXPECT_EQ(ring->link_count(), 2048u);
  EXPECT_EQ(ring->route(0, 512).size(), 513u);
  EXPECT_EQ(ring->route(0, 513)[1], 1023u);
}

}  // namespace
}  // namespace espalier::topology
