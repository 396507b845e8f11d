// Algorithms on meshes with XY routing, replayed: steps as stated, and for those that promise it no
// link with two messages in a step. docs/meshes.md has the numbers. The routes and
// loads are computed here, independently of topology/ and of the verifier. By default a sample of
// meshes and roots; all with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/schedule/expand.h"
#include "collectives/search/balanced_square.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/search.h"
#include "espalier/topology/topology.h"
#include "tests/algorithms/expected_steps.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

struct Mesh {
  std::uint32_t rows, columns;

  [[nodiscard]] std::uint32_t ranks() const { return rows * columns; }
  [[nodiscard]] std::string spec() const {
    return "mesh:" + std::to_string(rows) + "x" + std::to_string(columns);
  }
};

// How a row of a table in docs/meshes.md begins.
std::string page_name(const Mesh& mesh) { return "| " + mesh.spec().substr(5) + " |"; }

// Whether docs/meshes.md has this line.
bool is_on_page(const std::string& line) {
  std::ifstream in(ESPALIER_MESHES_PAGE);
  std::stringstream page;
  page << in.rdbuf();
  return page.str().find("\n" + line + "\n") != std::string::npos;
}

using DirectedLink = std::pair<std::uint32_t, std::uint32_t>;

// First along the row, then along the column.
std::vector<DirectedLink> route(const Mesh& mesh, std::uint32_t from, std::uint32_t to) {
  std::vector<DirectedLink> links;
  const auto go = [&](std::uint32_t next) {
    links.emplace_back(from, next);
    from = next;
  };
  const std::uint32_t column = to % mesh.columns;
  while (from % mesh.columns != column) go(from % mesh.columns < column ? from + 1 : from - 1);
  while (from != to) go(from < to ? from + mesh.columns : from - mesh.columns);
  return links;
}

// The maximum number of messages on a link in a step.
int worst_load(const Mesh& mesh, const Programs& programs, std::int64_t blocks) {
  std::map<std::pair<std::int64_t, DirectedLink>, int> loads;
  int worst = 0;
  for (const Program& program : programs) {
    for (const Instance& one : expand(program, blocks)) {
      if (one.kind != ActionKind::kSend) continue;
      for (const DirectedLink& link :
           route(mesh, program.node, static_cast<std::uint32_t>(one.peer))) {
        worst = std::max(worst, ++loads[{one.step, link}]);
      }
    }
  }
  return worst;
}

CollectiveParameters parameters_on(const Mesh& mesh, std::uint32_t root) {
  CollectiveParameters parameters{.ranks = mesh.ranks(), .root = root};
  parameters.rows = mesh.rows;
  parameters.columns = mesh.columns;
  parameters.topology_digest = 7;
  return parameters;
}

// Squares, others, odd and prime sizes, and lines.
std::vector<Mesh> meshes() {
  std::vector<Mesh> all{{1, 1}, {1, 2}, {2, 1}, {1, 7}, {7, 1}, {2, 2}, {2, 3}, {3, 2},
                        {3, 3}, {2, 5}, {4, 4}, {3, 5}, {4, 6}, {5, 5}, {5, 7}, {2, 13}};
  if (!whole()) return all;
  for (std::uint32_t rows = 1; rows <= 9; ++rows) {
    for (std::uint32_t columns = 1; columns <= 9; ++columns) all.push_back({rows, columns});
  }
  // Not by insert(): g++ 14 warns of an overflow inside it that is not there.
  for (const Mesh& mesh : {Mesh{11, 13}, {8, 16}, {16, 16}, {1, 40}, {37, 1}}) all.push_back(mesh);
  return all;
}

std::set<std::uint32_t> roots_of(const Mesh& mesh, Collective collective) {
  std::set<std::uint32_t> roots{0};
  const std::uint32_t step = whole() || mesh.ranks() <= 16 ? 1 : 3;
  for (std::uint32_t root = 0; has_root(collective) && root < mesh.ranks(); root += step) {
    roots.insert(root);
  }
  if (has_root(collective)) roots.insert(mesh.ranks() - 1);
  return roots;
}

std::string name_of(const std::string& algorithm, Collective collective, const Mesh& mesh,
                    std::uint32_t root) {
  return std::string(collective_name(collective)) + " " + algorithm + " on " + mesh.spec() +
         ", root " + std::to_string(root);
}

// As the heads of the generators' files state them, for p > 1.
std::int64_t stated_steps(const Algorithm& algorithm, const Mesh& mesh) {
  const std::string name = algorithm.name;
  if (name == "bucket") {
    const std::int64_t once = std::int64_t{mesh.rows} + mesh.columns - 2;
    return algorithm.collective == Collective::kAllreduce ? 2 * once : once;
  }
  ADD_FAILURE() << name << ": no steps are stated for it";
  return 0;
}

TEST(MeshAlgorithms, TakeTheStatedStepsWithoutContention) {
  static constexpr std::uint32_t kWindows[] = {1, 3, 8, 16};
  std::uint32_t schedules = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kGrid) continue;
    for (const Mesh& mesh : meshes()) {
      for (const std::uint32_t root : roots_of(mesh, algorithm.collective)) {
        CollectiveParameters parameters = parameters_on(mesh, root);
        parameters.window = kWindows[(mesh.rows + 2 * mesh.columns + root) % 4];
        const std::string name = name_of(algorithm.name, algorithm.collective, mesh, root);
        const Programs programs = or_throw(replay::generate(algorithm, parameters));
        const auto steps = replay::run(programs, 1);
        ASSERT_EQ(message_of(steps), "") << name;
        EXPECT_EQ(programs[0].needs_commutative, algorithm.needs_commutative && mesh.ranks() > 1);
        if (mesh.ranks() > 1) {
          EXPECT_EQ(*steps, stated_steps(algorithm, mesh)) << name;
          EXPECT_EQ(*steps, phase_steps(programs[0], 1)) << name;
        }
        ASSERT_LE(worst_load(mesh, programs, 1), 1) << name;
        ++schedules;
      }
    }
  }
  std::printf("replayed %u schedules\n", schedules);
  EXPECT_GT(schedules, 40u);
}

TEST(MeshAlgorithms, Refusals) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kGrid) continue;
    Program program;
    const auto status = [&](const CollectiveParameters& parameters, std::uint32_t me) {
      return algorithm.generate(parameters, me, program);
    };
    EXPECT_EQ(status({.ranks = 6}, 0), Status::kUnsupported) << algorithm.name << ": no mesh";
    CollectiveParameters wrong = parameters_on({2, 3}, 0);
    wrong.ranks = 7;
    EXPECT_EQ(status(wrong, 0), Status::kUnsupported) << algorithm.name;
    EXPECT_EQ(program.actions_count, 0) << algorithm.name;
    EXPECT_EQ(status(parameters_on({2, 3}, 0), 6), Status::kBadArgument) << algorithm.name;
    EXPECT_EQ(status(parameters_on({1, 65536}, 0), 0), Status::kTooLarge) << algorithm.name;
    EXPECT_FALSE(runs_on(algorithm, {.ranks = 6}));
    EXPECT_TRUE(runs_on(algorithm, parameters_on({2, 3}, 0)));
  }
}

struct TreeOnMesh {
  Collective collective;
  const char* name;
};

int worst_load_of(const TreeOnMesh& tree, const Mesh& mesh, std::uint32_t root,
                  std::uint32_t radix) {
  CollectiveParameters parameters = parameters_on(mesh, root);
  parameters.radix = radix;
  const Algorithm& algorithm = *find_algorithm(tree.collective, tree.name);
  return worst_load(mesh, or_throw(replay::generate(algorithm, parameters)), 1);
}

// interval_tree.h: towards the root by the nearest leaders, and away from it in cyclic order.
TEST(TreesOnMeshes, NoTwoMessagesOfAStepShareALink) {
  const TreeOnMesh trees[] = {
      {Collective::kBroadcast, "knomial"},    {Collective::kBroadcast, "lambda-tree"},
      {Collective::kBroadcast, "alpha-tree"}, {Collective::kBroadcast, "alpha-table"},
      {Collective::kReduce, "knomial"},       {Collective::kReduce, "binomial"},
      {Collective::kGather, "knomial"},       {Collective::kGather, "binomial"}};
  std::uint32_t schedules = 0;
  for (const Mesh& mesh : meshes()) {
    for (const TreeOnMesh& tree : trees) {
      const bool has_radix = std::string(tree.name) == "knomial";
      for (const std::uint32_t radix : has_radix ? std::set{2u, 3u, 4u, 5u, 8u} : std::set{0u}) {
        for (const std::uint32_t root : roots_of(mesh, tree.collective)) {
          ASSERT_LE(worst_load_of(tree, mesh, root, radix), 1)
              << name_of(tree.name, tree.collective, mesh, root) << ", radix " << radix;
          ++schedules;
        }
      }
    }
  }
  std::printf("counted the links of %u schedules\n", schedules);
  EXPECT_GT(schedules, 1000u);
}

// The count finds contention: these trees have another order.
TEST(TreesOnMeshes, OthersShareLinks) {
  EXPECT_GT(worst_load_of({Collective::kBroadcast, "binomial"}, {4, 4}, 0, 0), 1);
  EXPECT_GT(worst_load_of({Collective::kScatter, "binomial"}, {3, 5}, 1, 0), 1);
}

// The sum over the steps of a reduce-scatter of the greatest load of a link, in parts of the
// message; virtual rank v is on node node_of[v]. `steps`: those that are counted.
double reduce_scatter_loads(const Mesh& mesh, const char* name,
                            const std::vector<std::uint32_t>& node_of, std::int64_t steps) {
  const Algorithm& algorithm = *find_algorithm(Collective::kAllreduce, name);
  const Programs programs = or_throw(replay::generate(algorithm, parameters_on(mesh, 0)));
  std::map<std::int64_t, std::map<DirectedLink, std::uint32_t>> loads;
  for (const Program& program : programs) {
    for (const Instance& one : expand(program, 1)) {
      if (one.kind != ActionKind::kSend || one.step >= steps) continue;
      for (const DirectedLink& link :
           route(mesh, node_of[program.node], node_of[static_cast<std::uint32_t>(one.peer)])) {
        loads[one.step][link] += operand_segment_count(program.actions[one.action].a);
      }
    }
  }
  std::uint32_t sum = 0;
  for (const auto& [step, links] : loads) {
    std::uint32_t greatest = 0;
    for (const auto& [link, load] : links) greatest = std::max(greatest, load);
    sum += greatest;
  }
  return static_cast<double>(sum) / programs[0].segments;
}

// The table "Halving" of docs/meshes.md.
TEST(HalvingOnMeshes, NearestFirstLoadsLinksLess) {
  for (const auto& [mesh, levels] : {std::pair(Mesh{4, 4}, 4), std::pair(Mesh{8, 8}, 6)}) {
    const std::uint32_t p = mesh.ranks();
    std::vector<std::uint32_t> natural(p), reversed(p);
    for (std::uint32_t v = 0; v < p; ++v) {
      natural[v] = v;
      for (int digit = 0; digit < levels; ++digit) {
        reversed[v] = 2 * reversed[v] + (v >> digit & 1);
      }
    }
    const auto topology = or_throw(topology::parse(mesh.spec()));
    const auto loads = [&, steps = levels](const std::vector<std::uint32_t>& node_of) {
      return reduce_scatter_loads(mesh, "rabenseifner", node_of, steps);
    };
    const std::int64_t rings = std::int64_t{mesh.rows} + mesh.columns - 2;
    const double found[] = {reduce_scatter_loads(mesh, "bucket", natural, rings),
                            loads(topology::z_order(*topology)->node_of), loads(natural),
                            loads(reversed)};
    EXPECT_TRUE(std::is_sorted(std::begin(found), std::end(found))) << mesh.spec();
    std::string row = page_name(mesh);
    for (const double load : found) {
      char text[16];
      std::snprintf(text, sizeof text, " %.3f |", load);
      row += text;
    }
    EXPECT_TRUE(is_on_page(row)) << row;
  }
}

// The loads of the permutations of a line, as balanced_square.h states them.
std::vector<std::uint32_t> stated_loads(std::uint32_t n) {
  std::vector<std::uint32_t> loads(n);
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t sum = n * n / 4;
    loads[k] = n <= searched::kMaxBalanced ? sum / n + (k < sum % n ? 1 : 0) : std::min(k, n - k);
  }
  return loads;
}

TEST(BalancedSquare, LoadsAreAsEvenAsPossible) {
  for (std::uint32_t n = 1; n <= (small_sample() ? 12 : 40); ++n) {
    const std::vector<searched::LinePermutation> square = searched::balanced_square(n);
    ASSERT_EQ(square.size(), n);
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    std::multiset<std::uint32_t> loads;
    for (const searched::LinePermutation& one : square) {
      std::map<DirectedLink, std::uint32_t> on_link;
      std::set<std::pair<std::uint32_t, DirectedLink>> in_group;
      std::set<std::uint32_t> targets;
      std::uint32_t load = 0;
      for (std::uint32_t c = 0; c < n; ++c) {
        pairs.insert({c, one.to[c]});
        targets.insert(one.to[c]);
        ASSERT_LT(one.group[c], one.groups);
        for (const DirectedLink& link : route({1, n}, c, one.to[c])) {
          load = std::max(load, ++on_link[link]);
          ASSERT_TRUE(in_group.insert({one.group[c], link}).second) << "n " << n;
        }
      }
      EXPECT_EQ(targets.size(), n) << "not a permutation";
      EXPECT_EQ(one.groups, std::max(1u, load));
      EXPECT_EQ(one.is_identity, load == 0);
      loads.insert(load);
    }
    EXPECT_EQ(pairs.size(), std::size_t{n} * n);
    const std::vector<std::uint32_t> stated = stated_loads(n);
    EXPECT_EQ(loads, std::multiset<std::uint32_t>(stated.begin(), stated.end())) << "n " << n;
  }
}

Programs all_to_all_on(const Mesh& mesh) {
  const auto topology = or_throw(topology::parse(mesh.spec()));
  CollectiveParameters parameters = parameters_on(mesh, 0);
  parameters.topology_digest = topology->digest();
  const auto* algorithm = searched::find_searched(Collective::kAllToAll, "mesh-balanced");
  return or_throw(algorithm->search(*topology, parameters));
}

// The blocks that a link or a port must carry, by counting all pairs.
std::int64_t all_to_all_bound(const Mesh& mesh) {
  std::map<DirectedLink, std::int64_t> loads;
  std::int64_t bound = mesh.ranks() - 1;
  for (std::uint32_t from = 0; from < mesh.ranks(); ++from) {
    for (std::uint32_t to = 0; to < mesh.ranks(); ++to) {
      for (const DirectedLink& link : route(mesh, from, to)) bound = std::max(bound, ++loads[link]);
    }
  }
  return bound;
}

TEST(MeshAllToAll, TakesTheStatedStepsWithoutContention) {
  for (const Mesh& mesh : meshes()) {
    if (mesh.ranks() == 1 || mesh.ranks() > 129) continue;
    const Programs programs = all_to_all_on(mesh);
    std::int64_t stated = 0;
    for (const std::uint32_t across : stated_loads(mesh.columns)) {
      for (const std::uint32_t along : stated_loads(mesh.rows)) stated += std::max(across, along);
    }
    for (const std::int64_t blocks : {1, 2, 3}) {
      const auto steps = replay::run(programs, blocks);
      ASSERT_EQ(message_of(steps), "") << mesh.spec() << " N " << blocks;
      EXPECT_EQ(*steps, stated * blocks) << mesh.spec();
      EXPECT_EQ(worst_load(mesh, programs, blocks), 1) << mesh.spec();
    }
  }
}

// The table "All-to-all" of docs/meshes.md.
TEST(MeshAllToAll, IsWithinFivePercentOfTheLoadBound) {
  for (const Mesh& mesh : {Mesh{4, 4}, Mesh{5, 7}, Mesh{8, 8}, Mesh{6, 6}, Mesh{8, 16}}) {
    const std::int64_t steps = phase_steps(all_to_all_on(mesh)[0], 1);
    const std::int64_t bound = all_to_all_bound(mesh);
    const std::string row =
        page_name(mesh) + " " + std::to_string(steps) + " | " + std::to_string(bound) + " |";
    EXPECT_TRUE(is_on_page(row)) << row;
    EXPECT_GE(steps, bound) << mesh.spec();
    if (mesh.rows == 6) continue;  // no multiple of 4 on both sides
    EXPECT_LE(100 * steps, 105 * bound) << mesh.spec();
  }
}

TEST(MeshAllToAll, Refusals) {
  const auto* algorithm = searched::find_searched(Collective::kAllToAll, "mesh-balanced");
  const auto error = [&](const char* spec) {
    const auto topology = or_throw(topology::parse(spec));
    return message_of(algorithm->search(*topology, {.ranks = topology->ranks()}));
  };
  EXPECT_EQ(error("mesh:10x13"),
            "mesh-balanced on mesh:10x13: expected mesh:RxC of at most 129 ranks");
  EXPECT_EQ(error("complete:4"),
            "mesh-balanced on complete:4: expected mesh:RxC of at most 129 ranks");
}

}  // namespace
}  // namespace espalier
