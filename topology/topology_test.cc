#include "espalier/topology/topology.h"

#include <algorithm>
#include <map>

#include "topology/testing/must_parse.h"

namespace espalier::topology {
namespace {

TEST(Topology, CountsNodesAndLinks) {
  struct Row {
    const char* spec;
    std::uint32_t ranks, nodes;
    std::uint64_t links;
  };
  for (const Row& row : {Row{"complete:1", 1, 1, 0},
                         Row{"complete:16", 16, 16, 240},
                         Row{"mesh:1x1", 1, 1, 0},
                         Row{"mesh:4x4", 16, 16, 48},
                         Row{"mesh:1x5", 5, 5, 8},
                         Row{"fattree:k=4,h=2,c=1", 16, 21, 40},
                         Row{"crossbar:3x4", 12, 16, 66},
                         Row{"hosts:3x4", 12, 16, 66},
                         Row{"hosts:1x1", 1, 3, 4},
                         Row{"crossbar:2x1,in=1,out=2", 2, 5, 8},
                         Row{"crossbar:1x3", 3, 5, 14},
                         Row{"fattree:k=2,h=3,c=1,2,2", 8, 15, 28},
                         Row{"mesh:2x3x4", 24, 24, 92},
                         Row{"torus:1x1", 1, 1, 0},
                         Row{"torus:2x2", 4, 4, 8},
                         Row{"torus:4x4", 16, 16, 64},
                         Row{"torus:1x5", 5, 5, 10},
                         Row{"torus:2x3x4", 24, 24, 120},
                         Row{"ring:1", 1, 1, 0},
                         Row{"ring:2", 2, 2, 2},
                         Row{"ring:7", 7, 7, 14},
                         Row{"hypercube:1", 2, 2, 2},
                         Row{"hypercube:5", 32, 32, 160},
                         Row{"hyperx:3x4", 12, 12, 60},
                         Row{"hyperx:2x3x4", 24, 24, 144},
                         Row{"dragonfly:1x1x1", 1, 2, 2},
                         Row{"dragonfly:5x2x3", 30, 40, 90},
                         Row{"dragonfly:7x3x2", 42, 63, 168}}) {
    const auto topology = must_parse(row.spec);
    EXPECT_EQ(topology->spec(), row.spec);
    EXPECT_EQ(topology->ranks(), row.ranks) << row.spec;
    EXPECT_EQ(topology->nodes(), row.nodes) << row.spec;
    EXPECT_EQ(topology->link_count(), row.links) << row.spec;
    EXPECT_EQ(topology->links().size(), row.links) << row.spec;
  }
}

// Specifications of all families.
const std::vector<std::string> kFamilies = specs_in(
    "complete:5 crossbar:3x4 crossbar:1x3 crossbar:3x1 crossbar:3x4,in=1,out=3 crossbar:1x1 "
    "crossbar:2x3x2,in=1/2,out=3/4 crossbar:2x1x2x2x1 hosts:3x4 hosts:1x3 hosts:3x1 hosts:2x3 "
    "mesh:3x4 mesh:1x4 mesh:4x1 mesh:2x3x4 fattree:k=3,h=2,c=k fattree:k=2,h=3,c=1 "
    "fattree:k=2x4x3,c=1,5,2 torus:4x5 torus:2x3x4 torus:1x4 torus:1x2 ring:1 ring:2 ring:7 "
    "hypercube:4 hyperx:3x4 hyperx:2x3x4 dragonfly:1x3x2 dragonfly:2x1x1 dragonfly:5x2x2 "
    "dragonfly:6x4x1");

// Every link appears once, with its reverse. Every route uses only links, visits no node twice, and
// connects its ends.
TEST(Topology, RoutesRunAlongLinks) {
  for (const std::string& spec : kFamilies) {
    SCOPED_TRACE(spec);
    const auto topology = must_parse(spec);
    expect_links(*topology);
    expect_routes(*topology);
    for (const Link& link : topology->links())
      EXPECT_GT(topology->capacity(link.to, link.from), 0u);
  }
}

TEST(Topology, FatTreeRoutesThroughTheLowestCommonRouter) {
  const auto tree = must_parse("fattree:k=2,h=3,c=1");
  expect_paths(*tree, {{0, 8, 1}, {0, 8, 12, 9, 3}, {0, 8, 12, 14, 13, 11, 7}});
  EXPECT_EQ(tree->node_name(14), "router 14 (level 3)");
  EXPECT_EQ(tree->node_name(3), "rank 3");
}

// Capacity of a branch by the level of its lower end, beginning with c_1.
Nodes branch_capacities(const std::string& spec) {
  const auto tree = must_parse(spec);
  std::map<std::size_t, std::uint32_t> levels;
  for (const Link& link : tree->links()) {
    const std::size_t to_root = tree->route(std::min(link.from, link.to), tree->nodes() - 1).size();
    const auto [at, fresh] = levels.insert({-to_root, link.capacity});
    EXPECT_EQ(at->second, link.capacity) << spec;
  }
  Nodes capacities;
  capacities.reserve(levels.size());
  for (const auto& [level, capacity] : levels) capacities.push_back(capacity);
  return capacities;
}

TEST(Topology, FatTreeCapacities) {
  EXPECT_EQ(branch_capacities("fattree:k=4,h=3,c=1"), (Nodes{1, 1, 1}));
  EXPECT_EQ(branch_capacities("fattree:k=4,h=3,c=k"), (Nodes{1, 4, 16}));
  EXPECT_EQ(branch_capacities("fattree:k=4,h=3,c=1,2,7"), (Nodes{1, 2, 7}));
}

// Different arities: 24 ranks, 6 routers of 4 ranks, 2 of 3 routers each, and the root.
TEST(Topology, FatTreeLevelsMayDiffer) {
  const auto tree = must_parse("fattree:k=4x3x2,c=1,2,7");
  EXPECT_EQ(tree->ranks(), 24u);
  EXPECT_EQ(tree->nodes(), 33u);
  EXPECT_EQ(tree->link_count(), 64u);
  expect_paths(*tree, {{0, 24, 3}, {4, 25, 30, 26, 11}, {11, 26, 30, 32, 31, 27, 12}});
  EXPECT_EQ(tree->node_name(31), "router 31 (level 2)");
  EXPECT_EQ(tree->capacity(23, 29), 1u);
  EXPECT_EQ(tree->capacity(29, 31), 2u);
  EXPECT_EQ(tree->capacity(32, 31), 7u);
  EXPECT_EQ(tree->capacity(29, 30), 0u);
  // Each router is above the middle of its children.
  EXPECT_DOUBLE_EQ(tree->position(24).x, 1.5);
  EXPECT_DOUBLE_EQ(tree->position(30).x, 5.5);
  EXPECT_DOUBLE_EQ(tree->position(32).x, 11.5);
  const Shape shape = tree->shape();
  EXPECT_EQ(shape.arity, 0u);
  EXPECT_EQ(shape.height, 3u);
  EXPECT_EQ(shape.arities, (Nodes{4, 3, 2}));
  EXPECT_EQ(shape.capacities, (Nodes{1, 2, 7}));
  EXPECT_EQ(must_parse("fattree:k=4x3x2,h=3,c=k")->shape().capacities, (Nodes{1, 4, 12}));
}

TEST(Topology, ShapesSayTheNumbersOfAFamily) {
  const Shape tree = must_parse("fattree:k=2,h=3,c=1,2,2")->shape();
  EXPECT_EQ(tree.arity, 2u);
  EXPECT_EQ(tree.arities, (Nodes{2, 2, 2}));
  EXPECT_EQ(tree.height, 3u);
  EXPECT_EQ(tree.capacities, (Nodes{1, 2, 2}));
  EXPECT_EQ(tree.rows, 0u);
  const Shape mesh = must_parse("mesh:3x4")->shape();
  EXPECT_EQ(mesh.rows, 3u);
  EXPECT_EQ(mesh.columns, 4u);
  EXPECT_EQ(mesh.grid, (Nodes{3, 4}));
  EXPECT_FALSE(mesh.wraps);
  const Shape torus = must_parse("torus:3x4")->shape();
  EXPECT_EQ(torus.rows + torus.columns, 0u) << "algorithms for meshes do not know wrap links";
  EXPECT_EQ(torus.grid, (Nodes{3, 4}));
  EXPECT_TRUE(torus.wraps);
  EXPECT_EQ(must_parse("mesh:2x3x4")->shape().grid, (Nodes{2, 3, 4}));
  EXPECT_EQ(must_parse("mesh:2x3x4")->shape().rows, 0u);
  EXPECT_EQ(must_parse("ring:5")->shape().grid, (Nodes{5}));
  EXPECT_TRUE(must_parse("hypercube:4")->shape().grid.empty());
  EXPECT_EQ(must_parse("hypercube:4")->shape().hypercube, 4u);
  EXPECT_TRUE(must_parse("hyperx:4x4")->shape().grid.empty());
  EXPECT_EQ(mesh.arity, 0u);
  const Shape hosts = must_parse("hosts:3x4")->shape();
  EXPECT_EQ(hosts.hosts, 3u);
  EXPECT_EQ(hosts.host_ranks, 4u);
  EXPECT_TRUE(hosts.crossbar.empty()) << "algorithms for crossbars are not for it";
  const Shape crossbar = must_parse("crossbar:2x3x4,in=1/2,out=3")->shape();
  EXPECT_EQ(crossbar.crossbar, (Nodes{2, 3, 4}));
  EXPECT_EQ(crossbar.channels_in, (Nodes{1, 2}));
  EXPECT_EQ(crossbar.channels_out, (Nodes{3, 3}));
  const Shape complete = must_parse("complete:4")->shape();
  EXPECT_EQ(complete.arity + complete.rows + complete.hosts, 0u);
}

TEST(Topology, CrossbarRoutesShareTheModulesChannels) {
  const auto crossbar = must_parse("crossbar:3x4,in=1,out=2");
  expect_paths(*crossbar, {{4, 6}, {1, 12, 15, 14, 10}, {13, 15, 12, 0}});
  EXPECT_EQ(crossbar->capacity(4, 6), 1u);
  EXPECT_EQ(crossbar->capacity(4, 8), 0u);
  EXPECT_EQ(crossbar->capacity(1, 12), 1u);
  EXPECT_EQ(crossbar->capacity(12, 15), 2u);
  EXPECT_EQ(crossbar->capacity(15, 12), 1u);
  EXPECT_EQ(crossbar->node_name(7), "rank 7 (module 1)");
  EXPECT_EQ(crossbar->node_name(13), "router 13 (port of module 1)");
  EXPECT_EQ(crossbar->node_name(15), "router 15 (switch)");
}

// Modules of modules: 2 x 3 modules of 2 ranks, ports 12 to 17, switches 18 and 19, all around 20.
TEST(Topology, CrossbarsOfThreeLevels) {
  const auto crossbar = must_parse("crossbar:2x3x2,in=1/2,out=3/4");
  EXPECT_EQ(crossbar->ranks(), 12u);
  EXPECT_EQ(crossbar->nodes(), 21u);
  expect_paths(
      *crossbar,
      {{4, 5}, {1, 12, 18, 14, 4}, {1, 12, 18, 20, 19, 17, 10}, {18, 13, 3}, {20, 18, 14}});
  EXPECT_EQ(crossbar->capacity(12, 18), 4u);
  EXPECT_EQ(crossbar->capacity(18, 12), 2u);
  EXPECT_EQ(crossbar->capacity(18, 20), 3u);
  EXPECT_EQ(crossbar->capacity(20, 18), 1u);
  EXPECT_EQ(crossbar->capacity(12, 20), 0u);
  EXPECT_EQ(crossbar->node_name(7), "rank 7 (module 1.0)");
  EXPECT_EQ(crossbar->node_name(14), "router 14 (port of module 0.2)");
  EXPECT_EQ(crossbar->node_name(19), "router 19 (switch of module 1)");
  EXPECT_EQ(crossbar->node_name(20), "router 20 (switch)");
  // A switch is above the middle of its modules, and each level above the one below.
  EXPECT_EQ(crossbar->position(18).x, crossbar->position(13).x);
  EXPECT_LT(crossbar->position(20).y, crossbar->position(18).y);
  EXPECT_LT(crossbar->position(18).y, crossbar->position(12).y);
  EXPECT_LT(crossbar->position(12).y, crossbar->position(0).y);
}

// The ranks of a host share one link into the network and one out of it; all other links are inside
// the host.
TEST(Topology, HostsShareOneLink) {
  const auto hosts = must_parse("hosts:3x4");
  expect_paths(*hosts, {{4, 6}, {1, 12, 15, 14, 10}});
  std::uint32_t fabric = 0, memory = 0;
  for (const Link& link : hosts->links()) {
    EXPECT_EQ(link.capacity, 1u);
    const bool crosses = link.from == 15 || link.to == 15;
    EXPECT_EQ(hosts->link_class(link.from, link.to),
              crosses ? LinkClass::kFabric : LinkClass::kMemory);
    ++(crosses ? fabric : memory);
  }
  EXPECT_EQ(fabric, 6u);
  EXPECT_EQ(memory, 60u);
  EXPECT_EQ(hosts->node_name(7), "rank 7 (host 1)");
  EXPECT_EQ(hosts->node_name(13), "router 13 (port of host 1)");
  EXPECT_EQ(hosts->node_name(15), "router 15 (switch)");
  EXPECT_EQ(must_parse("crossbar:3x4")->link_class(0, 1), LinkClass::kFabric);
  EXPECT_STREQ(link_class_name(LinkClass::kMemory), "memory");
  EXPECT_STREQ(link_class_name(LinkClass::kFabric), "fabric");
}

// Each specification, and what it is written as.
TEST(Topology, SpecsAreCanonical) {
  const std::vector<std::string> specs = specs_in(
      "crossbar:4x8,in=2,out=2 crossbar:4x8 "
      "crossbar:4x8,in=1,out=2 crossbar:4x8,in=1,out=2 "
      "crossbar:4x8x2,in=2/2,out=2 crossbar:4x8x2 "
      "crossbar:4x8x2,in=1/1,out=2/1 crossbar:4x8x2,in=1,out=2/1 "
      "fattree:k=4,h=2,c=1,1 fattree:k=4,h=2,c=1 "
      "fattree:k=4,h=2,c=1,4 fattree:k=4,h=2,c=k "
      "fattree:k=4,h=1,c=k fattree:k=4,h=1,c=1 "
      "fattree:k=4,h=2,c=2,3 fattree:k=4,h=2,c=2,3 "
      "fattree:k=4x4 fattree:k=4,h=2,c=1 "
      "fattree:k=4x4,h=2,c=2,3 fattree:k=4,h=2,c=2,3 "
      "fattree:k=4x3x2 fattree:k=4x3x2,c=1 "
      "fattree:k=4x3x2,h=3 fattree:k=4x3x2,c=1 "
      "fattree:k=4x3x2,c=1,1,1 fattree:k=4x3x2,c=1 "
      "fattree:k=4x3x2,h=3,c=1,4,12 fattree:k=4x3x2,c=k "
      "fattree:k=4x3,c=2,3 fattree:k=4x3,c=2,3");
  for (std::size_t i = 0; i < specs.size(); i += 2) {
    EXPECT_EQ(must_parse(specs[i])->spec(), specs[i + 1]);
  }
  EXPECT_EQ(must_parse("crossbar:2x2x2x2x2x2x2x2")->ranks(), 256u);
}

TEST(Topology, DigestsDifferAndStay) {
  std::set<std::uint64_t> digests;
  for (const std::string& spec : specs_in(
           "complete:16 complete:17 mesh:4x4 mesh:2x8 mesh:8x2 fattree:k=4,h=2,c=1 "
           "fattree:k=4,h=2,c=k fattree:k=2x8,c=1 fattree:k=8x2,c=1 crossbar:4x4 "
           "crossbar:4x4,in=1,out=2 crossbar:4x2x2 crossbar:2x2x4 hosts:4x4 mesh:2x2x4 "
           "torus:4x4 torus:2x2x4 ring:16 hypercube:4 hyperx:4x4 hyperx:2x2x4 dragonfly:4x2x2")) {
    EXPECT_TRUE(digests.insert(must_parse(spec)->digest()).second);
  }
  EXPECT_EQ(must_parse("complete:16")->digest(), 0x3291d14a47f5497ull)
      << "FNV-1a of the specification";
  EXPECT_EQ(must_parse("mesh:4x4")->digest(), 0xd082fe04917b57feull);
}

// The errors of a family: the part of each specification after "family:", and the cause. Then the
// correct form.
struct FamilyErrors {
  std::string family, form;
  std::vector<std::pair<std::string, std::string>> causes;
};

const FamilyErrors kErrors[] = {
    {"mesh",
     "mesh:RxC with R and C at least 1, e.g. mesh:4x4, or mesh:AxBxC",
     {{"0x4", "the number of rows is 0 (at character 7)"},
      {"4x0", "the number of columns is 0 (at character 9)"},
      {"4", "'x' is missing (at character 7)"},
      {"", "the number of rows is missing (at character 6)"},
      {"4x", "the number of columns is missing (at character 8)"},
      {"-4x4", "the number of rows is missing (at character 6)"},
      {"4x4 ", "unexpected ' ' (at character 9)"},
      {"4x4x4x4", "unexpected 'x4' (at character 11)"},
      {"0x4x4", "the number of planes is 0 (at character 7)"},
      {"4096x4096x4096", "68719476736 nodes are more than 16777216 (at character 20)"},
      {"04x4", "the number of rows has a leading 0 (at character 8)"},
      {"9999999999x1", "the number of rows is too large (at character 16)"},
      {"99999x99999", "9999800001 nodes are more than 16777216 (at character 17)"}}},
    {"complete",
     "complete:N with N at least 1, e.g. complete:16",
     {{"0", "the number of ranks is 0 (at character 11)"},
      {"", "the number of ranks is missing (at character 10)"},
      {"8a", "unexpected 'a' (at character 11)"},
      {"99999999999999999999999", "the number of ranks is too large (at character 20)"}}},
    {"fattree",
     "fattree:k=K,h=H,c=1 or c=k or c=c1,...,cH with K at least 2 and H at least 1, e.g. "
     "fattree:k=4,h=2,c=1; or k=K1xK2x...xKH by level, e.g. fattree:k=4x3,c=1",
     {{"k=1,h=2,c=1", "k is 1 (at character 12)"},
      {"k=4", "',h=' is missing (at character 12)"},
      {"k=4,h=0,c=1", "h is 0 (at character 16)"},
      {"k=4,h=2", "',c=' is missing (at character 16)"},
      {"k=4,h=2,c=0", "c1 is 0 (at character 20)"},
      {"k=4,h=2,c=1,2,3", "c lists 3 capacities for h=2 (at character 24)"},
      {"k=4,h=2,c=2", "c lists 1 capacity for h=2 (at character 20)"},
      {"k=4,h=2,c=kk", "unexpected 'k' (at character 20)"},
      {"k=2,h=60,c=1", "a tree of k=2 and h=60 has more than 16777216 nodes (at character 17)"},
      {"k=4x1", "k2 is 1 (at character 14)"},
      {"k=4x", "k2 is missing (at character 13)"},
      {"k=4x0", "k2 is 0 (at character 14)"},
      {"k=4x3,h=3", "h is not the number of arities, 2 (at character 18)"},
      {"k=4x3,c=1,2,3", "c lists 3 capacities for h=2 (at character 22)"},
      {"k=4x3,h=2,", "'c=' is missing (at character 19)"},
      {"k=4x3 ", "unexpected ' ' (at character 14)"},
      {"k=4096x2x4096", "a tree of k=4096x2x4096 has more than 16777216 nodes (at character 22)"}}},
    {"crossbar",
     "crossbar:AxB or crossbar:AxB,in=I,out=O with A modules of B ranks and I channels into, O out "
     "of a module (2 where not given), e.g. crossbar:4x8; AxBxC..., up to 8 numbers, for modules "
     "of modules, with I1/I2/... from the outermost on",
     {{"x4", "the number of modules is missing (at character 10)"},
      {"4", "'x' is missing (at character 11)"},
      {"4x0", "the number of ranks a module is 0 (at character 13)"},
      {"4x8,out=1", "'in=' is missing (at character 14)"},
      {"4x8,in=1", "',out=' is missing (at character 18)"},
      {"4x8,in=1,out=0", "out is 0 (at character 24)"},
      {"4x8,in=1,out=2,", "unexpected ',' (at character 24)"},
      {"4x8x", "the number of ranks a module is missing (at character 14)"},
      {"4x8x2,in=1/2/3,out=1", "in has 3 numbers for 2 levels of modules (at character 24)"},
      {"1x1x1x1x1x1x1x1x1", "9 levels are more than 8 (at character 27)"},
      {"4096x4096", "16781313 nodes are more than 16777216 (at character 19)"}}},
    {"hosts",
     "hosts:HxR with H hosts of R ranks, each at least 1, e.g. hosts:4x8",
     {{"4", "'x' is missing (at character 8)"},
      {"0x4", "the number of hosts is 0 (at character 8)"},
      {"4x0", "the number of ranks per host is 0 (at character 10)"},
      {"4x8,in=1", "unexpected ',in=1' (at character 10)"},
      {"4096x4096", "16781313 nodes are more than 16777216 (at character 16)"}}},
    {"torus",
     "torus:RxC with R and C at least 1, e.g. torus:4x4, or torus:AxBxC",
     {{"4", "'x' is missing (at character 8)"},
      {"4x", "the number of columns is missing (at character 9)"}}},
    {"ring",
     "ring:P with P at least 1, e.g. ring:8",
     {{"0", "the number of ranks is 0 (at character 7)"},
      {"4x4", "unexpected 'x4' (at character 7)"}}},
    {"hypercube",
     "hypercube:D with D dimensions, 1 to 24, e.g. hypercube:4 of 16 ranks",
     {{"0", "the number of dimensions is 0 (at character 12)"},
      {"25", "33554432 nodes are more than 16777216 (at character 13)"}}},
    {"hyperx",
     "hyperx:AxB with A and B at least 1, e.g. hyperx:4x4, or hyperx:AxBxC",
     {{"4", "'x' is missing (at character 9)"}}},
    {"dragonfly",
     "dragonfly:GxAxP with G groups of A routers of P ranks, each at least 1, e.g. dragonfly:5x2x2",
     {{"5x2", "'x' is missing (at character 14)"},
      {"5x0x2", "the number of routers per group is 0 (at character 14)"},
      {"256x256x256", "16842752 nodes are more than 16777216 (at character 22)"}}},
};

TEST(Topology, ErrorsGiveCausePositionAndCorrectForm) {
  for (const auto& [family, form, causes] : kErrors) {
    for (const auto& [numbers, cause] : causes) {
      const std::string spec = family + ":" + numbers;
      EXPECT_EQ(message_of(parse(spec)),
                "topology '" + spec + "': " + cause + "; expected " + form);
    }
  }
  for (const std::string spec : {"rung:4", ""}) {
    EXPECT_EQ(message_of(parse(spec)),
              "unknown topology '" + spec + "'; expected " + kSpecificationForms);
  }
}

TEST(Draw, NamesEveryNodeAndCountsOmissions) {
  const std::string tree = draw_svg(*must_parse("fattree:k=2,h=2,c=k"));
  EXPECT_NE(tree.find("router 6 (level 2)"), std::string::npos);
  EXPECT_NE(tree.find("4 ranks, 3 routers, 12 links"), std::string::npos);
  EXPECT_NE(tree.find("class=\"lanes\""), std::string::npos);
  EXPECT_NE(draw_svg(*must_parse("crossbar:2x3,in=1,out=2")).find(">2/1</text>"),
            std::string::npos);
  const std::string hosts = draw_svg(*must_parse("hosts:2x3"));
  EXPECT_NE(hosts.find("<line class=\"link\" style="), std::string::npos);
  EXPECT_NE(hosts.find("<line class=\"link\" x1"), std::string::npos);
  EXPECT_EQ(tree.find("<line class=\"link\" style="), std::string::npos);
  // Links that would pass over other ranks are curves: the wrap links of rows and columns of 3 or
  // more, of a hypercube those between its halves.
  const auto curves = [](const char* spec) {
    return count_of(draw_svg(*must_parse(spec)), "<path class=\"link\"");
  };
  EXPECT_EQ(curves("mesh:4x4"), 0u);
  EXPECT_EQ(curves("mesh:3x3x3"), 0u);
  EXPECT_EQ(curves("torus:4x4"), 8u);
  EXPECT_EQ(curves("torus:3x3x3"), 27u);
  EXPECT_EQ(curves("torus:2x5"), 2u);
  EXPECT_EQ(curves("ring:6"), 0u);
  EXPECT_EQ(curves("hyperx:4x1"), 3u);
  EXPECT_EQ(curves("hypercube:3"), 0u);
  EXPECT_EQ(curves("hypercube:4"), 16u);
  const std::string large = draw_svg(*must_parse("complete:200"));
  EXPECT_EQ(large.find("<line"), std::string::npos);
  EXPECT_NE(large.find("39800 links (too many to draw)"), std::string::npos);
  EXPECT_LT(draw_svg(*must_parse("complete:1000000")).size(), 4096u);
}

}  // namespace
}  // namespace espalier::topology
