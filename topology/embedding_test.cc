// Embedding files: accepted, written and refused text; the choice of the best known embedding.

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/testing/results.h"
#include "espalier/topology/topology.h"
#include "topology/embedding_family.h"

namespace espalier::topology {
namespace {

constexpr char kGood[] =
    "topology: \"mesh:1x4\"\ncollective: \"broadcast\"\nalgorithm: "
    "\"fractional-mesh\"\nrun_length: 2\n"
    "switching: STORE_AND_FORWARD\nnode: [0, 1,\n2, 3]\ngroup {} group { parent: 0 right: true }\n"
    "found_by: \"hand,\\nwith \\\"care\\\"\"\n";

TEST(Embedding, ReadsAndWritesTheSame) {
  const auto read = or_throw(parse_embedding(kGood, "good"));
  const auto again = or_throw(parse_embedding(write_embedding(read), "again"));
  for (const Embedding& embedding : {read, again}) {
    EXPECT_EQ(embedding.topology, "mesh:1x4");
    EXPECT_EQ(embedding.collective, "broadcast");
    EXPECT_EQ(embedding.algorithm, "fractional-mesh");
    EXPECT_EQ(embedding.run_length, 2u);
    EXPECT_EQ(embedding.switching, Switching::kStoreAndForward);
    EXPECT_EQ(embedding.node_of, (std::vector<std::uint32_t>{0, 1, 2, 3}));
    ASSERT_EQ(embedding.groups.size(), 2u);
    EXPECT_TRUE(embedding.groups[1].is_right);
    EXPECT_EQ(embedding.found_by, "hand,\nwith \"care\"");
  }
}

TEST(Embedding, KnownOnesReadAndAreWrittenAlike) {
  EXPECT_FALSE(known_embeddings().empty());
  std::set<std::string> names;
  for (const std::string& name : known_embeddings()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    const auto known = known_embedding(name);
    ASSERT_TRUE(known) << name;
    const auto again = or_throw(parse_embedding(write_embedding(*known), name));
    EXPECT_EQ(again.node_of, known->node_of);
    EXPECT_EQ(again.groups.size(), known->groups.size());
  }
  EXPECT_FALSE(known_embedding("no such"));
}

constexpr char kFamily[] =
    "collective: \"broadcast\"\nalgorithm: \"two-tree\"\nreversed: \"reduce\"\nfound_by: \"on "
    "mesh:RxC, so\"\n"
    "mesh { rows: 2 columns: 3 nodes: \"000102\"\n \"121110\" }\n";

// Each mesh of a family has an embedding, and the mesh turned by rows and columns one for the
// reversed collective.
TEST(EmbeddingFamily, ServesTheReversedCollectiveToo) {
  const auto all = or_throw(parse_family(kFamily));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "mesh-3x2-reduce-two-tree");
  EXPECT_EQ(all[0].topology, "mesh:3x2");
  EXPECT_EQ(all[0].collective, "reduce");
  EXPECT_EQ(all[0].node_of, (std::vector<std::uint32_t>{0, 2, 4, 5, 3, 1}));
  EXPECT_EQ(all[1].name, "mesh-2x3-broadcast-two-tree");
  EXPECT_EQ(all[1].node_of, (std::vector<std::uint32_t>{0, 1, 2, 5, 4, 3}));
  for (const Embedding& embedding : all) EXPECT_EQ(embedding.found_by, "on mesh:2x3, so");
}

TEST(EmbeddingFamily, RefusesBadNodes) {
  const std::string good = kFamily;
  for (const auto& [from, to, error] :
       {std::tuple{"121110", "121111", "mesh 2x3: node '11'; expected each node once"},
        {"121110", "121120", "mesh 2x3: node '20'; expected each node once"},
        {"121110", "1211g0", "mesh 2x3: node 'g0'; expected each node once"},
        {"121110", "1211", "mesh 2x3: 10 digits; expected two for each node"},
        {"121110", "1211101", "mesh 2x3: 13 digits; expected two for each node"},
        {"columns", "colums", "line 5: "}}) {
    std::string text = good;
    text.replace(text.find(from), std::string(from).size(), to);
    const auto refused = parse_family(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().message.rfind(error, 0), 0u) << refused.error().message;
  }
}

// A broadcast's message from (0, 0) to (1, 2) goes over (0, 2); the reduce's one on the other mesh
// from (2, 1) to (0, 0) over (2, 0), which is the same node.
TEST(Embedding, ReversedOnTheMeshWithRowsAndColumnsExchanged) {
  Embedding embedding = or_throw(parse_embedding(kGood, "good"));
  embedding.topology = "mesh:2x3";
  embedding.node_of = {0, 5, 1, 3, 2, 4};
  const Embedding reduce = reversed(embedding, "reduce");
  EXPECT_EQ(reduce.topology, "mesh:3x2");
  EXPECT_EQ(reduce.collective, "reduce");
  EXPECT_EQ(reduce.algorithm, embedding.algorithm);
  EXPECT_EQ(reduce.node_of, (std::vector<std::uint32_t>{0, 5, 2, 1, 4, 3}));
  const auto mesh = or_throw(parse("mesh:2x3")), other = or_throw(parse("mesh:3x2"));
  EXPECT_EQ(mesh->route(0, 5), (std::vector<std::uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(other->route(5, 0), (std::vector<std::uint32_t>{5, 4, 2, 0}));
  EXPECT_EQ(reversed(reduce, "broadcast").node_of, embedding.node_of);
}

// Each known broadcast by groups gives the reduce on the other mesh.
TEST(Embedding, KnownGroupsReduceToo) {
  std::uint32_t broadcasts = 0, reduces = 0;
  for (const std::string& name : known_embeddings()) {
    const Embedding known = *known_embedding(name);
    if (known.groups.empty()) continue;
    ++(known.collective == "reduce" ? reduces : broadcasts);
  }
  EXPECT_EQ(reduces, broadcasts);
  const auto known = known_embedding("mesh-8x16-reduce-fractional-mesh-r2-h-tree");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->topology, "mesh:8x16");
}

// `good` with `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Embedding, RefusesBadTextsInOneLine) {
  const struct {
    std::string text, error;
  } bad[] = {
      {changed("mesh:1x4", "mesh:1y4"), "e:1: topology: "},
      {changed("\"broadcast\"", "\"\""), "e:2: the collective is missing; expected coll"},
      {changed("[0, 1,", "[0, 0,"), "e:6: node 0 is listed twice; expected 0 to 3, each once"},
      {changed("2, 3]", "2, 4]"),
       "e:6: node 4 is not a rank of mesh:1x4; expected 0 to 3, each once"},
      {changed("node: [0, 1,\n2, 3]", ""),
       "e:1: 0 nodes; expected each of the 4 ranks of mesh:1x4"},
      {changed("2, 3]", "2]"), "e:6: 3 nodes; expected each of the 4 ranks of mesh:1x4 once"},
      {changed("run_length: 2", "run_length: 3"), "e:8: 2 groups of 3 ranks; expected all 4 ranks"},
      {changed("parent: 0", "parent: 1"), "e:8: group 1 cannot be right of group 1; expected a"},
      {changed("group {} ", "group { right: true } "), "e:8: the first group is the source's"},
      {changed("switching: STORE", "switching: SHOP"), "e:6: Unknown enumeration value"},
      {changed("run_length: 2", "walk: 2"), "e:4: "},
      {std::string(kGood) + "node: [", "e:10: "},
      {"", "e:1: the collective is missing; expected collective: \"NAME\""},
  };
  for (const auto& [text, expected] : bad) {
    const auto refused = parse_embedding(text, "e");
    ASSERT_FALSE(refused) << text;
    const std::string& error = refused.error().message;
    EXPECT_EQ(error.rfind(expected, 0), 0u) << error << "\nnot " << expected;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_NE(error.find("expected "), std::string::npos) << error;
  }
  const auto missing = read_embedding("/no/such/file");
  ASSERT_FALSE(missing);
  const std::string& error = missing.error().message;
  EXPECT_NE(error.find("cannot read '/no/such/file'"), std::string::npos) << error;
}

// XY routes of a mirrored mesh are the mirror images of XY routes.
TEST(Embedding, OfACornerServesAllCorners) {
  const auto mesh = or_throw(parse("mesh:4x8"));
  const Wanted wanted{.collective = "broadcast", .algorithm = "two-tree", .root = 0};
  const auto own = best_embedding(*mesh, wanted);
  ASSERT_TRUE(own);
  for (const auto& [root, flip] : {std::pair{7u, 7u}, {24u, 24u}, {31u, 31u}}) {
    Wanted other = wanted;
    other.root = root;
    const auto turned = best_embedding(*mesh, other);
    ASSERT_TRUE(turned) << root;
    for (std::size_t rank = 0; rank < own->node_of.size(); ++rank) {
      EXPECT_EQ(turned->node_of[rank], own->node_of[rank] ^ flip);
    }
  }
  Wanted inside = wanted;
  inside.root = 9;
  EXPECT_FALSE(best_embedding(*mesh, inside));
}

}  // namespace
}  // namespace espalier::topology
