// Embeddings: proofs of the known ones, the search, and placing.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/embed/groups.h"
#include "collectives/embed/placement.h"
#include "collectives/search/fractional_mesh.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/search.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/whole.h"

namespace espalier::embed {
namespace {

using topology::Embedding;

CollectiveParameters parameters_on(const topology::Topology& topology, std::uint32_t root,
                                   std::uint32_t run_length) {
  CollectiveParameters parameters = topology_parameters(topology, root);
  parameters.run_length = run_length;
  return parameters;
}

// The schedule on virtual ranks.
Programs routed_programs(const topology::Topology& topology, const std::string& collective,
                         const std::string& algorithm, std::uint32_t run_length) {
  Collective wanted{};
  EXPECT_TRUE(parse_collective(collective.c_str(), wanted));
  const CollectiveParameters parameters = parameters_on(topology, 0, run_length);
  const auto* searched = searched::find_searched(wanted, algorithm);
  if (searched == nullptr) return must_generate(wanted, algorithm, parameters);
  return or_throw(searched->search(topology, parameters));
}

Programs embedded_programs(const topology::Topology& topology, const Embedding& embedding) {
  if (!embedding.groups.empty()) {
    const CollectiveParameters parameters =
        parameters_on(topology, embedding.node_of.front(), embedding.run_length);
    return or_throw(searched::fractional_mesh(topology, parameters, embedding));
  }
  Programs programs =
      routed_programs(topology, embedding.collective, embedding.algorithm, embedding.run_length);
  EXPECT_EQ(place_all(embedding.node_of, programs), Status::kOk);
  return programs;
}

// The maximum load of a link per period, recounted along the routes; and the period.
std::pair<std::uint32_t, std::uint32_t> stored_load(const topology::Topology& topology,
                                                    const Programs& programs) {
  const Traffic traffic = traffic_of(programs);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> loads;
  std::uint32_t most = 0;
  for (const Transfer& transfer : traffic.transfers) {
    const auto route = topology.route(transfer.from, transfer.to);
    for (std::size_t hop = 1; hop < route.size(); ++hop) {
      most = std::max(most, ++loads[{route[hop - 1], route[hop]}]);
    }
  }
  return {most, whole_period(traffic)};
}

// Whether an embedding belongs to a family, which has one for each mesh.
bool is_of_family(const Embedding& embedding) {
  return embedding.topology.starts_with("mesh:") && embedding.groups.empty() &&
         embedding.switching == Switching::kCutThrough;
}

// All embeddings that belong to no family, and every 17th of the others; with ESPALIER_WHOLE=1 all.
std::vector<std::string> names_to_prove() {
  constexpr std::size_t kStride = 17;
  std::vector<std::string> names;
  std::size_t members = 0;
  for (const std::string& name : topology::known_embeddings()) {
    if (is_of_family(*topology::known_embedding(name)) && members++ % kStride != 0 && !whole()) {
      continue;
    }
    names.push_back(name);
  }
  return names;
}

class Known : public testing::TestWithParam<std::string> {};

TEST_P(Known, IsProven) {
  const auto embedding = topology::known_embedding(GetParam());
  ASSERT_TRUE(embedding);
  const auto topology = or_throw(topology::parse(embedding->topology));
  const Programs programs = embedded_programs(*topology, *embedding);
  const bool stored = embedding->switching == Switching::kStoreAndForward;
  const verify::Verdict verdict = verify::verdict_of(*topology, programs, {.links = !stored});
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.for_all) << verdict.limited;
  if (stored) {
    const auto [load, period] = stored_load(*topology, programs);
    EXPECT_LE(load, period);
  } else {
    EXPECT_TRUE(verdict.slot);
    EXPECT_LE(verdict.busiest.load, verdict.busiest.capacity);
  }
}

INSTANTIATE_TEST_SUITE_P(Embeddings, Known, testing::ValuesIn(names_to_prove()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The number of transfers that find their link taken in their slot, counted along X-Y routes.
// Phases do not share slots.
std::uint32_t conflicts(const topology::Shape& mesh, const Traffic& traffic,
                        const std::vector<std::uint32_t>& node_of) {
  std::uint32_t count = 0;
  std::set<std::array<std::uint32_t, 4>> taken;  // from, to, phase, slot
  for (const Transfer& transfer : traffic.transfers) {
    std::uint32_t node = node_of[transfer.from];
    const std::uint32_t end = node_of[transfer.to];
    while (node != end) {
      const std::uint32_t column = node % mesh.columns, wanted = end % mesh.columns;
      const std::uint32_t next = column < wanted   ? node + 1
                                 : column > wanted ? node - 1
                                 : node < end      ? node + mesh.columns
                                                   : node - mesh.columns;
      if (!taken.insert({node, next, transfer.phase, transfer.slot}).second) ++count;
      node = next;
    }
  }
  return count;
}

// The traffic of a schedule on virtual ranks, which depends on their number alone.
const Traffic& traffic_for(const Embedding& embedding, const topology::Topology& topology) {
  using Key = std::tuple<std::string, std::string, std::uint32_t, std::uint32_t>;
  static std::map<Key, Traffic> all;
  const auto [found, is_new] = all.try_emplace(
      Key{embedding.collective, embedding.algorithm, embedding.run_length, topology.ranks()});
  if (is_new) {
    found->second = traffic_of(
        routed_programs(topology, embedding.collective, embedding.algorithm, embedding.run_length));
  }
  return found->second;
}

// The premise of the sample above: each of the families' embeddings, whose schedules are proven on
// complete graphs, keeps its links.
TEST(Families, UseEachLinkOnceInASlot) {
  std::uint32_t members = 0;
  for (const std::string& name : topology::known_embeddings()) {
    const auto embedding = topology::known_embedding(name);
    if (!is_of_family(*embedding)) continue;
    const auto topology = or_throw(topology::parse(embedding->topology));
    const Traffic& traffic = traffic_for(*embedding, *topology);
    EXPECT_EQ(conflicts(topology->shape(), traffic, embedding->node_of), 0u) << name;
    EXPECT_EQ(embedding->node_of.front(), 0u) << name;
    ++members;
    // Two ranks exchanged are seen.
    if (topology->ranks() != 256) continue;
    std::vector<std::uint32_t> other = embedding->node_of;
    std::swap(other[1], other[255]);
    EXPECT_GT(conflicts(topology->shape(), traffic, other), 0u) << name;
  }
  EXPECT_GT(members, 1000u);
}

// Every mesh of up to 16 x 16 has an embedding from the corner, except those on which none exists.
// (For double Fibonacci trees on 2x15 and 15x2, none is found, and the cuts do not prove that there
// is none.)
TEST(Families, HaveEveryMeshThatCanBe) {
  const struct {
    const char *collective, *algorithm;
    std::uint32_t run_length;
  } families[] = {{"broadcast", "two-tree", 0},         {"reduce", "two-tree", 0},
                  {"broadcast", "double-fibonacci", 0}, {"reduce", "double-fibonacci", 0},
                  {"broadcast", "fractional", 2},       {"reduce", "fractional", 2},
                  {"broadcast", "fractional", 4},       {"reduce", "fractional", 4}};
  for (const auto& [collective, algorithm, run_length] : families) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      for (std::uint32_t columns = rows == 1 ? 2 : 1; columns <= 16; ++columns) {
        const std::string spec = "mesh:" + std::to_string(rows) + "x" + std::to_string(columns);
        const auto topology = or_throw(topology::parse(spec));
        const auto found = topology::best_embedding(*topology, {.collective = collective,
                                                                .algorithm = algorithm,
                                                                .run_length = run_length,
                                                                .root = 0});
        if (found && found->switching == Switching::kCutThrough) continue;
        if (std::string(algorithm) == "double-fibonacci" && topology->ranks() == 30) {
          EXPECT_EQ(std::min(rows, columns), 2u) << spec;
          continue;
        }
        const Traffic traffic =
            traffic_of(routed_programs(*topology, collective, algorithm, run_length));
        EXPECT_FALSE(cuts_leave_room(topology->shape(), traffic, 0))
            << spec << " " << collective << " " << algorithm << " " << run_length;
      }
    }
  }
}

TEST(Known, OnesThatPapersAndDocsRestOn) {
  const struct {
    const char *topology, *collective, *algorithm;
    std::uint32_t root;
  } wanted[] = {{"mesh:4x4", "broadcast", "two-tree", 0},
                {"mesh:4x8", "broadcast", "two-tree", 0},
                {"mesh:8x8", "broadcast", "two-tree", 0},
                {"mesh:8x16", "broadcast", "two-tree", 0},
                {"mesh:8x8", "reduce", "two-tree", 0},
                {"mesh:4x4", "broadcast", "double-fibonacci", 0},
                {"mesh:4x8", "broadcast", "double-fibonacci", 0},
                {"mesh:8x8", "broadcast", "double-fibonacci", 0},
                {"mesh:8x16", "broadcast", "fractional-mesh", 0},
                {"mesh:8x16", "reduce", "fractional-mesh", 0},
                {"mesh:12x12", "reduce", "fractional-mesh", 0}};
  for (const auto& [spec, collective, algorithm, root] : wanted) {
    const auto topology = or_throw(topology::parse(spec));
    for (const std::uint32_t corner : {root, topology->ranks() - 1}) {
      const auto found = topology::best_embedding(
          *topology, {.collective = collective, .algorithm = algorithm, .root = corner});
      ASSERT_TRUE(found) << spec << " " << algorithm << " root " << corner;
      EXPECT_EQ(found->switching, Switching::kCutThrough);
      EXPECT_EQ(found->node_of.front(), corner);
      const verify::Verdict verdict =
          verify::verdict_of(*topology, embedded_programs(*topology, *found));
      EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
    }
  }
  EXPECT_FALSE(
      topology::best_embedding(*or_throw(topology::parse("mesh:4x4")),
                               {.collective = "broadcast", .algorithm = "chain", .root = 0}));
}

// The verifier, which counts links independently, proves each placement that a search finds.
void expect_found(const std::string& spec, const std::string& collective,
                  const std::string& algorithm, const Search& search) {
  const auto topology = or_throw(topology::parse(spec));
  Programs programs = routed_programs(*topology, collective, algorithm, 0);
  const Traffic traffic = traffic_of(programs);
  const Placement found = find_placement(Routes(*topology), traffic, search);
  EXPECT_EQ(found.over, 0) << spec;
  EXPECT_EQ(find_placement(Routes(*topology), traffic, search).node_of, found.node_of);
  if (!search.root_moves) {
    EXPECT_EQ(found.node_of.front(), search.root);
  }
  ASSERT_EQ(place_all(found.node_of, programs), Status::kOk);
  const bool stored = search.switching == Switching::kStoreAndForward;
  const verify::Verdict verdict = verify::verdict_of(*topology, programs, {.links = !stored});
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  if (!stored) return;
  const auto [load, period] = stored_load(*topology, programs);
  EXPECT_LE(load, period);
}

TEST(Search, FindsTwoTreesOnASmallMesh) {
  expect_found("mesh:4x4", "broadcast", "two-tree", {.seed = 7, .moves = 2'000'000});
  expect_found("mesh:4x4", "broadcast", "two-tree", {.root = 5, .seed = 3, .moves = 2'000'000});
  expect_found("mesh:4x4", "reduce", "two-tree", {.root_moves = true, .moves = 2'000'000});
  expect_found("mesh:4x4", "allreduce", "two-tree", {.moves = 2'000'000});
}

// A greater limit finds the same placement; a time that is over ends the search.
TEST(Search, DependsOnItsLimitsOnlyIfTheyEndIt) {
  const auto topology = or_throw(topology::parse("mesh:6x7"));
  const Traffic traffic = traffic_of(routed_programs(*topology, "broadcast", "two-tree", 0));
  const Routes routes(*topology);
  const Placement found = find_placement(routes, traffic, {.moves = 10'000'000});
  EXPECT_EQ(found.over, 0);
  EXPECT_EQ(find_placement(routes, traffic, {.moves = 90'000'000}).node_of, found.node_of);
  EXPECT_GT(find_placement(routes, traffic, {.moves = 5000}).over, 0);
  std::uint32_t asked = 0;
  const Placement late = find_placement(
      routes, traffic, {.moves = 10'000'000, .is_late = [&] { return ++asked > 2; }});
  EXPECT_GT(late.over, 0);
  EXPECT_EQ(asked, 4u);  // it ends the round, then the search
  EXPECT_EQ(conflicts(topology->shape(), traffic, late.node_of), late.over);
}

// All placements from the corner are tried: where one exists, the cuts leave room for it.
TEST(Cuts, LeaveRoomWhereAPlacementExists) {
  std::uint32_t none = 0, refused = 0;
  for (const char* spec : {"mesh:1x3", "mesh:1x4", "mesh:4x1", "mesh:1x5", "mesh:1x6", "mesh:1x7",
                           "mesh:7x1", "mesh:2x2", "mesh:2x3", "mesh:3x2", "mesh:2x4"}) {
    const auto topology = or_throw(topology::parse(spec));
    for (const auto& [algorithm, run_length] : {std::pair{"two-tree", 0u},
                                                {"double-fibonacci", 0u},
                                                {"fractional", 1u},
                                                {"fractional", 2u},
                                                {"chain", 0u},
                                                {"binary", 0u}}) {
      const Traffic traffic =
          traffic_of(routed_programs(*topology, "broadcast", algorithm, run_length));
      std::vector<std::uint32_t> node_of(topology->ranks());
      std::iota(node_of.begin(), node_of.end(), 0u);
      bool exists = false;
      do {
        exists = conflicts(topology->shape(), traffic, node_of) == 0;
      } while (!exists && std::next_permutation(node_of.begin() + 1, node_of.end()));
      const bool room = cuts_leave_room(topology->shape(), traffic, 0);
      EXPECT_TRUE(room || !exists) << spec << " " << algorithm << " " << run_length;
      none += exists ? 0 : 1;
      refused += room ? 0 : 1;
    }
  }
  EXPECT_GE(refused, 10u);
  EXPECT_LE(refused, none);
}

TEST(Cuts, RefuseOnlyWhatTheyCanProve) {
  for (const auto& [spec, room] : {std::pair{"mesh:2x14", true},
                                   {"mesh:2x15", false},
                                   {"mesh:16x2", false},
                                   {"mesh:3x16", true},
                                   {"complete:4", true}}) {
    const auto topology = or_throw(topology::parse(spec));
    const Traffic traffic = traffic_of(routed_programs(*topology, "broadcast", "two-tree", 0));
    for (const std::uint32_t root : {0u, topology->ranks() - 1}) {
      EXPECT_EQ(cuts_leave_room(topology->shape(), traffic, root), room) << spec << " " << root;
    }
  }
}

TEST(Search, FindsLoadsOfAPeriodStoreAndForward) {
  expect_found("mesh:4x4", "broadcast", "two-tree",
               {.switching = Switching::kStoreAndForward, .moves = 100'000});
  expect_found("fattree:k=2,h=2,c=1", "broadcast", "chain",
               {.switching = Switching::kStoreAndForward, .moves = 10'000});
}

// From the end of a row everything uses its one link, which has no room for a third block in a
// period of two. The search reports this.
TEST(Search, ReportsThatNoPlacementExists) {
  const auto topology = or_throw(topology::parse("mesh:1x9"));
  const Programs programs = routed_programs(*topology, "allreduce", "two-tree", 0);
  const Placement found =
      find_placement(Routes(*topology), traffic_of(programs),
                     {.switching = Switching::kStoreAndForward, .period = 1, .moves = 20'000});
  EXPECT_GT(found.over, 0);
  EXPECT_GT(stored_load(*topology, programs).first, 1u);
}

TEST(Groups, FillTheMesh) {
  const auto topology = or_throw(topology::parse("mesh:4x8"));
  const Routes routes(*topology);
  for (const bool complete : {false, true}) {
    GroupTree tree = complete ? complete_tree(2, 16) : least_tree(2, 16);
    tree.keeps_h_tree = complete;
    for (const bool moves : {false, true}) {
      const GroupPlacement found =
          find_groups(*topology, routes, {1, 2}, tree, {.root_moves = moves, .moves = 1'000'000});
      EXPECT_EQ(found.placement.over, 0);
      if (!moves) {
        EXPECT_EQ(found.placement.node_of.front(), 0u);
      }
      Embedding embedding{.name = "test",
                          .topology = topology->spec(),
                          .collective = "broadcast",
                          .algorithm = "fractional-mesh",
                          .run_length = 2,
                          .node_of = found.placement.node_of,
                          .groups = {},
                          .found_by = {}};
      for (const GroupTree::TreeGroup& group : found.tree.groups) {
        embedding.groups.push_back({group.parent, group.is_right});
      }
      const Programs programs = embedded_programs(*topology, embedding);
      const verify::Verdict verdict = verify::verdict_of(*topology, programs);
      EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
      EXPECT_EQ(phase_steps(programs[0], 1), found.placement.latency + 1);
    }
  }
}

#ifdef ESPALIER_ASSERTIONS
TEST(GroupsDeathTest, FillTheMeshExactly) {
  const auto topology = or_throw(topology::parse("mesh:4x8"));
  const Routes routes(*topology);
  const auto find = [&](const GroupShape& shape, std::uint32_t groups) {
    (void)find_groups(*topology, routes, shape, least_tree(2, groups), {});
  };
  EXPECT_DEATH(find({1, 3}, 8), "columns == 0");
  EXPECT_DEATH(find({1, 2}, 15), "expected rectangles.count");
  EXPECT_DEATH((void)complete_tree(2, 12), "expected std::has_single_bit");
}
#endif

// For any permutation, data flow, ports, deadlock and hazards stay proven, and the steps stay the
// same.
TEST(Placing, KeepsASchedule) {
  std::mt19937 random(1);
  for (const auto& [collective, algorithm] : {std::pair{"broadcast", "two-tree"},
                                              {"reduce", "two-tree"},
                                              {"allreduce", "two-tree"},
                                              {"broadcast", "chain"},
                                              {"reduce", "chain"},
                                              {"allreduce", "combine"},
                                              {"broadcast", "fractional"},
                                              {"reduce", "fractional"},
                                              {"broadcast", "binomial"},
                                              {"broadcast", "lambda-tree"},
                                              {"broadcast", "alpha-tree"},
                                              {"broadcast", "knomial"},
                                              {"broadcast", "scatter-allgather"},
                                              {"reduce", "binomial"},
                                              {"reduce", "knomial"},
                                              {"reduce", "binary"},
                                              {"reduce", "double-fibonacci"}}) {
    for (const std::uint32_t ranks : {2u, 3u, 8u, 13u}) {
      const auto topology = or_throw(topology::parse("complete:" + std::to_string(ranks)));
      Programs programs = routed_programs(*topology, collective, algorithm, 0);
      const std::int64_t steps = phase_steps(programs[0], 5);
      std::vector<std::uint32_t> node_of(ranks);
      std::iota(node_of.begin(), node_of.end(), 0u);
      std::shuffle(node_of.begin(), node_of.end(), random);
      ASSERT_EQ(place_all(node_of, programs), Status::kOk);
      for (std::uint32_t node = 0; node < ranks; ++node) EXPECT_EQ(programs[node].node, node);
      const verify::Verdict verdict = verify::verdict_of(*topology, programs);
      EXPECT_TRUE(verdict.valid) << collective << " " << algorithm << " " << ranks << ": "
                                 << verdict.counterexample.message;
      EXPECT_EQ(phase_steps(programs[0], 5), steps);
    }
  }
}

TEST(Placing, RefusesCollectivesThatDependOnTheOrderOfRanks) {
  const auto topology = or_throw(topology::parse("complete:4"));
  const std::vector<std::uint32_t> turned{1, 2, 3, 0}, same{0, 1, 2, 3};
  for (const auto& [collective, algorithm] :
       {std::pair{"scan", "chain"}, {"allgather", "ring"}, {"scatter", "binomial"}}) {
    Programs programs = routed_programs(*topology, collective, algorithm, 0);
    EXPECT_EQ(place_all(turned, programs), Status::kUnsupported);
    EXPECT_EQ(programs[2].node, 2u);
    EXPECT_EQ(place_all(same, programs), Status::kOk);
    EXPECT_EQ(programs[2].contention, ContentionGuarantee::kAsync);
  }
}

// All steps go to neighbours, and the chain's links are free under any timing skew.
TEST(Snake, StepsToNeighbours) {
  for (const char* spec :
       {"mesh:4x4", "mesh:3x4", "mesh:4x3", "mesh:3x5", "mesh:2x7", "mesh:1x6"}) {
    const auto topology = or_throw(topology::parse(spec));
    std::uint32_t roots = 0;
    for (std::uint32_t root = 0; root < topology->ranks(); ++root) {
      const auto snake = topology::snake(*topology, root);
      if (!snake) continue;
      ++roots;
      EXPECT_EQ(snake->node_of.front(), root);
      for (std::size_t i = 1; i < snake->node_of.size(); ++i) {
        EXPECT_EQ(topology->capacity(snake->node_of[i - 1], snake->node_of[i]), 1u) << spec;
      }
      Programs programs = routed_programs(*topology, "broadcast", "chain", 0);
      ASSERT_EQ(place_all(snake->node_of, programs), Status::kOk);
      const verify::Verdict verdict = verify::verdict_of(*topology, programs);
      EXPECT_TRUE(verdict.valid && verdict.async) << verdict.counterexample.message;
    }
    const bool ring = topology->ranks() % 2 == 0 && topology->shape().rows > 1;
    EXPECT_GE(roots, ring ? topology->ranks() : 2) << spec;
  }
  EXPECT_FALSE(topology::snake(*or_throw(topology::parse("complete:4")), 0));
}

TEST(ZOrder, TakesTheDigitsOfColumnAndRowInTurn) {
  const auto order = [](const char* spec) {
    const auto found = topology::z_order(*or_throw(topology::parse(spec)));
    return found ? found->node_of : std::vector<std::uint32_t>();
  };
  using Nodes = std::vector<std::uint32_t>;
  EXPECT_EQ(order("mesh:4x4"), (Nodes{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  EXPECT_EQ(order("mesh:2x4"), (Nodes{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(order("mesh:4x1"), (Nodes{0, 1, 2, 3}));
  EXPECT_EQ(order("mesh:4x3"), Nodes());
  EXPECT_EQ(order("complete:4"), Nodes());
}

}  // namespace
}  // namespace espalier::embed
