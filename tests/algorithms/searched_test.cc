// Searched schedules: replayed step by step, proven by the verifier, and compared with an
// independent prototype (testdata/golden.json).

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/search/crossbar_trees.h"
#include "collectives/search/double_fibonacci.h"
#include "collectives/search/fractional_direct.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/search.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/algorithms/prototype_values.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier::searched {
namespace {

std::unique_ptr<topology::Topology> must_parse(const std::string& spec) {
  return or_throw(topology::parse(spec));
}

std::vector<std::uint32_t> grid_ranks() {
  std::vector<std::uint32_t> ranks{64};
  if (!small_sample()) ranks.push_back(100);
  for (std::uint32_t p = 1; p <= 40; p += small_sample() && p >= 8 ? 8 : 1) ranks.push_back(p);
  return ranks;
}

std::set<std::uint32_t> grid_roots(std::uint32_t p) { return {0, p > 1 ? 1u : 0u, p - 1}; }

// Replays the whole schedule for every N of the grid, and proves it. Returns its steps for N = 1,
// or -1 after a failure.
std::int64_t proven(const SearchedAlgorithm& algorithm, const topology::Topology& topology,
                    const CollectiveParameters& parameters) {
  const std::string what = std::string(algorithm.name) + " on " + topology.spec() + " root " +
                           std::to_string(parameters.root) + " r " +
                           std::to_string(parameters.run_length);
  const Programs programs = or_throw(algorithm.search(topology, parameters));
  const Program& first = programs[0];
  for (const Program& program : programs) {
    EXPECT_EQ(check_program(program), Status::kOk) << what << " rank " << program.node;
  }
  for (const std::int64_t n : {1, 2, 3, 7, 20, 21}) {
    if (first.residue_mod != 0 && n % first.residue_mod != 0) continue;
    EXPECT_EQ(message_of(replay::run(programs, n)), "") << what << " N " << n;
  }
  const verify::Verdict verdict = verify::verdict_of(topology, programs);
  EXPECT_TRUE(verdict.valid) << what << ": " << verdict.counterexample.message;
  return verdict.valid && !::testing::Test::HasFailure() ? verdict.steps_at_one : -1;
}

TEST(DoubleFibonacci, LatencyOfThePrototype) {
  const nlohmann::json values = prototype_values()["dfib_D"];
  ASSERT_GE(values.size(), 60u);
  for (const auto& [key, latency] : values.items()) {
    const auto n = static_cast<std::uint32_t>(std::stoul(key));
    EXPECT_EQ(double_fibonacci(n).latency, latency.get<std::uint32_t>()) << "n " << n;
  }
}

// The steps in addition to N, as found by a prototype.
TEST(DoubleFibonacci, LatencyTable) {
  const std::map<std::uint32_t, std::uint32_t> terms{
      {64, 8}, {126, 10}, {256, 11}, {512, 12}, {1023, 14}};
  for (const auto& [n, term] : terms) EXPECT_EQ(double_fibonacci(n).latency - 1, term) << n;
}

// Every rank is in both trees, receives in both kinds of step, and sends at most once in each.
TEST(DoubleFibonacci, TreesFitTogether) {
  std::vector<std::uint32_t> sizes{1000, 1023, 4096, 100000};
  for (std::uint32_t n = 1; n <= 400; ++n) sizes.push_back(n);
  for (const std::uint32_t n : sizes) {
    const DoubleFibonacci both = double_fibonacci(n);
    std::vector<std::array<int, 2>> receives(n + 1), sends(n + 1);
    std::uint32_t last = 0;
    for (const auto& tree : both.trees) {
      ASSERT_EQ(tree.size(), n);
      std::map<std::uint32_t, std::uint32_t> arrivals;
      for (const DoubleFibonacci::TreeNode& node : tree) arrivals[node.pe] = node.step;
      ASSERT_EQ(arrivals.size(), n);
      for (const DoubleFibonacci::TreeNode& node : tree) {
        last = std::max(last, node.step);
        ++receives[node.pe][node.step % 2];
        ++sends[node.parent][node.step % 2];
        if (node.parent != 0) {
          ASSERT_LT(arrivals[node.parent], node.step);
        }
      }
    }
    EXPECT_EQ(last, both.latency) << n;
    for (std::uint32_t pe = 0; pe <= n; ++pe) {
      for (const std::uint32_t parity : {0u, 1u}) {
        ASSERT_EQ(receives[pe][parity], pe > 0) << "n " << n << " PE " << pe;
        ASSERT_LE(sends[pe][parity], 1) << "n " << n << " PE " << pe;
      }
    }
  }
}

TEST(DoubleFibonacci, Proven) {
  for (const Collective collective : {Collective::kBroadcast, Collective::kReduce}) {
    const SearchedAlgorithm* algorithm = find_searched(collective, "double-fibonacci");
    ASSERT_NE(algorithm, nullptr);
    for (const std::uint32_t p : grid_ranks()) {
      const auto topology = must_parse("complete:" + std::to_string(p));
      for (const std::uint32_t root : grid_roots(p)) {
        const CollectiveParameters parameters{
            .ranks = p, .root = root, .topology_digest = topology->digest()};
        const std::int64_t steps = proven(*algorithm, *topology, parameters);
        if (p == 1) continue;
        ASSERT_EQ(steps, double_fibonacci(p - 1).latency + 1) << "p " << p;
      }
    }
  }
}

using Sizes = std::vector<std::uint32_t>;  // of a crossbar, outermost first

// 256 modules of 64 ranks, and P = 16384 on a complete graph.
TEST(Crossbar, DepthsOfThePrototype) {
  const Sizes sizes{256, 64};
  for (const std::uint32_t root : {0u, 5000u}) {
    EXPECT_EQ(crossbar_a(sizes, root, 8).depth(), 97u);
    EXPECT_EQ(crossbar_b(sizes, root, 8).depth(), 130u);
    EXPECT_EQ(crossbar_a(sizes, root, 16).depth(), 177u);
    EXPECT_EQ(crossbar_b(sizes, root, 16).depth(), 236u);
  }
  std::vector<std::uint32_t> all(16384);
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) all[rank] = rank;
  for (const auto& [run_length, depth] :
       std::map<std::uint32_t, std::uint32_t>{{8, 92}, {16, 164}}) {
    FractionalForest flat{.run_length = run_length, .groups = {}};
    (void)flat.add_tree(all, -1);
    EXPECT_EQ(flat.depth(), depth);
    EXPECT_EQ(FractionalTree(16384, run_length).last_arrival() + 1,
              static_cast<std::int32_t>(depth));
  }
}

// The maximum number of blocks that pass a module's channels in one step of the steady state;
// `inside`: the ranks of each module of the level.
struct Channels {
  int in = 0, out = 0;
};
Channels channels(const Broadcast& broadcast, std::uint32_t inside) {
  std::map<std::array<std::uint32_t, 2>, int> in, out;
  Channels most;
  for (const Stream& stream : broadcast.streams) {
    const std::uint32_t from = stream.from / inside, to = stream.to / inside;
    if (from == to) continue;
    const std::uint32_t slot = stream.step % broadcast.period;
    most.in = std::max(most.in, ++in[{to, slot}]);
    most.out = std::max(most.out, ++out[{from, slot}]);
  }
  return most;
}

TEST(Crossbar, ChannelsOfALargeOne) {
  const Outline outline{.collective = Collective::kBroadcast, .algorithm = "crossbar"};
  const Sizes sizes{256, 64}, deep{16, 8, 4, 32};
  for (const std::uint32_t run_length : {1u, 3u, 8u, 16u}) {
    const Channels a = channels(crossbar_a(sizes, 77, run_length).broadcast(outline), 64);
    EXPECT_EQ(a.in, 2) << run_length;
    EXPECT_EQ(a.out, run_length == 1 ? 1 : 2) << run_length;  // r = 1: down and right alternate
    const Channels b = channels(crossbar_b(sizes, 77, run_length).broadcast(outline), 64);
    EXPECT_EQ(b.in, 1) << run_length;
    EXPECT_EQ(b.out, 2) << run_length;
    const Broadcast deep_a = crossbar_a(deep, 77, run_length).broadcast(outline);
    const Broadcast deep_b = crossbar_b(deep, 77, run_length).broadcast(outline);
    for (const std::uint32_t inside : {32u, 4 * 32u, 8 * 4 * 32u}) {
      EXPECT_LE(channels(deep_a, inside).in, 2) << run_length << " of " << inside;
      EXPECT_LE(channels(deep_a, inside).out, 2) << run_length << " of " << inside;
      EXPECT_EQ(channels(deep_b, inside).in, 1) << run_length << " of " << inside;
      EXPECT_LE(channels(deep_b, inside).out, 2) << run_length << " of " << inside;
    }
  }
}

// The trees' depths counted a second time, by steps alone. `run_length` is r. A group whose head
// gets block 0 in step t has its last rank served in t + r - 1. It feeds down in t + r and to the
// right in t + r + 1.
struct Depths {
  std::int64_t run_length;
  std::int64_t last = -1;  // the step in which the last rank gets block 0

  void local(std::int64_t ranks, std::int64_t step) {
    if (ranks == 0) return;
    const FractionalTree tree(static_cast<std::uint32_t>(ranks),
                              static_cast<std::uint32_t>(run_length));
    last = std::max(last, step + 1 + tree.last_arrival());
  }
  void group(std::int64_t step) { last = std::max(last, step + run_length - 1); }

  // Variant A: groups in `modules` modules of these sizes, then the rest of each, and of one more
  // whose first module has a group.
  void span_a(std::int64_t modules, bool one_more, const Sizes& inside, std::int64_t step) {
    std::multimap<std::int64_t, std::size_t> links;  // step, group
    std::vector<std::int64_t> heads;
    std::vector<int> used(static_cast<std::size_t>(modules), 0);
    for (std::int64_t i = 0; i < modules; ++i) {
      if (i > 0) {
        step = links.begin()->first;
        ++used[links.begin()->second];
        links.erase(links.begin());
      }
      group(step);
      links.insert({step + run_length, heads.size()});
      links.insert({step + run_length + 1, heads.size()});
      heads.push_back(step);
    }
    std::int64_t waiting = one_more ? 1 : 0;
    std::multiset<std::int64_t> spare;  // the down links of groups without successors
    for (std::size_t i = 0; i < heads.size(); ++i) {
      waiting += used[i] == 2;
      if (used[i] < 2) rest_a(inside, heads[i] + run_length + 1);
      if (used[i] == 0) spare.insert(heads[i] + run_length);
    }
    for (; waiting > 0; --waiting) {
      rest_a(inside, *spare.begin());
      spare.erase(spare.begin());
    }
  }
  // The rest of a module of these sizes whose first module has a group.
  void rest_a(Sizes sizes, std::int64_t step) {
    const std::uint32_t first = sizes.front();
    if (sizes.size() == 1) return local(first - run_length, step);
    sizes.erase(sizes.begin());
    if (first == 1) return rest_a(sizes, step);
    span_a(first - 1, true, sizes, step);
  }

  // Variant B: a module of these sizes; returns the steps of its two links out.
  std::array<std::int64_t, 2> place_b(Sizes sizes, std::int64_t step) {
    const std::uint32_t count = sizes.front();
    if (sizes.size() == 1) {
      group(step);
      group(step + run_length + 1);
      local(count - 2 * run_length, step + 2 * (run_length + 1));
      return {step + run_length, step + 2 * run_length + 1};
    }
    sizes.erase(sizes.begin());
    const auto first = place_b(sizes, step);
    if (count == 1) return first;
    const auto second = place_b(sizes, first[1]);
    fill_b(count - 2, sizes, {second[1]});
    return {first[0], second[0]};
  }
  void fill_b(std::uint32_t modules, const Sizes& sizes, std::multiset<std::int64_t> links) {
    for (; modules > 0; --modules) {
      const std::int64_t step = *links.begin();
      links.erase(links.begin());
      const auto exits = place_b(sizes, step);
      links.insert(exits.begin(), exits.end());
    }
  }
};

// Steps for one block.
std::int64_t crossbar_steps(Sizes sizes, bool is_a, std::uint32_t run_length) {
  while (sizes.size() > 1 && sizes.front() == 1) sizes.erase(sizes.begin());
  Depths depths{.run_length = run_length};
  const std::uint32_t modules = sizes.front();
  if (sizes.size() == 1) {
    depths.local(modules, -1);
    return depths.last + 1;
  }
  sizes.erase(sizes.begin());
  if (is_a) {
    depths.span_a(modules, false, sizes, -1);
  } else {
    const auto exits = depths.place_b(sizes, -1);
    depths.fill_b(modules - 1, sizes, {exits.begin(), exits.end()});
  }
  return depths.last + 1;
}

std::string crossbar_of(const Sizes& sizes) {
  std::string spec = "crossbar:";
  for (const std::uint32_t size : sizes) {
    spec += (spec.ends_with(':') ? "" : "x") + std::to_string(size);
  }
  return spec;
}

void prove_crossbar(const std::string& name, Collective collective, const char* channels) {
  const SearchedAlgorithm* algorithm = find_searched(collective, name);
  ASSERT_NE(algorithm, nullptr);
  EXPECT_EQ(algorithm->needs_commutative, collective == Collective::kReduce);
  const std::uint32_t groups = name == "crossbar-a" ? 1 : 2;  // per module
  for (const Sizes& sizes : std::vector<Sizes>{{1, 4},
                                               {1, 9},
                                               {2, 2},
                                               {2, 7},
                                               {3, 4},
                                               {5, 8},
                                               {8, 8},
                                               {7, 3},
                                               {13, 2},
                                               {2, 2, 2},
                                               {3, 4, 5},
                                               {4, 3, 2},
                                               {1, 3, 4},
                                               {3, 1, 4},
                                               {2, 2, 2, 4},
                                               {2, 1, 2, 1, 2, 2, 1, 4}}) {
    const auto topology = must_parse(crossbar_of(sizes) + channels);
    const std::uint32_t p = topology->ranks();
    for (const std::uint32_t root : grid_roots(p)) {
      for (const std::uint32_t run_length : {0u, 1u, 2u, 4u}) {
        if (run_length * groups > sizes.back()) continue;
        CollectiveParameters parameters{
            .ranks = p, .root = root, .topology_digest = topology->digest()};
        parameters.run_length = run_length;
        const std::int64_t steps = proven(*algorithm, *topology, parameters);
        const std::uint32_t used =
            std::min(sizes.back() / groups, fractional_run_length(parameters));
        ASSERT_EQ(steps, crossbar_steps(sizes, groups == 1, used)) << topology->spec();
        if (sizes.size() > 2 || sizes.front() > 1) continue;
        ASSERT_EQ(steps, FractionalTree(p, used).last_arrival() + 1) << "one module: no detour";
      }
    }
  }
}

// Each further level costs at most (r + 1) log2 of the ranks of its modules, as [Sanders03] has it
// for the second one, and nothing if its modules have one module each. Variant A costs far less.
TEST(Crossbar, DepthOfMoreLevels) {
  for (const std::uint32_t run_length : {1u, 4u, 8u}) {
    for (const bool is_a : {true, false}) {
      const auto steps = [&](const Sizes& sizes) {
        const std::int64_t found = (is_a ? crossbar_a : crossbar_b)(sizes, 3, run_length).depth();
        EXPECT_EQ(found, crossbar_steps(sizes, is_a, run_length)) << crossbar_of(sizes);
        return found;
      };
      const std::int64_t two = steps({64, 64}), three = steps({8, 8, 64});
      EXPECT_GE(three, FractionalTree(4096, run_length).last_arrival() + 1);
      EXPECT_LE(three, two + (is_a ? 1 : 9) * (run_length + 1)) << run_length;
      EXPECT_LE(steps({4, 4, 4, 64}), two + (is_a ? 2 : 8 + 10) * (run_length + 1)) << run_length;
      EXPECT_EQ(steps({1, 64, 64}), two);
      EXPECT_EQ(steps({64, 1, 64}), two);
    }
  }
}

// A reduce takes the steps of the broadcast, and needs the channels of the other direction.
TEST(Crossbar, Proven) {
  prove_crossbar("crossbar-a", Collective::kBroadcast, "");
  prove_crossbar("crossbar-a", Collective::kReduce, "");
  prove_crossbar("crossbar-b", Collective::kBroadcast, ",in=1,out=2");
  prove_crossbar("crossbar-b", Collective::kReduce, ",in=2,out=1");
}

// Checks the proof: with fewer channels than the schedule needs it fails.
TEST(Crossbar, VerifierCountsChannels) {
  const auto wide = must_parse("crossbar:8x8");
  const auto narrow = must_parse("crossbar:8x8,in=1,out=2");
  const SearchedAlgorithm& crossbar = *find_searched(Collective::kBroadcast, "crossbar-a");
  const Programs programs = or_throw(
      crossbar.search(*wide, {.ranks = 64, .topology_digest = narrow->digest(), .run_length = 4}));
  const verify::Verdict verdict = verify::verdict_of(*narrow, programs);
  EXPECT_FALSE(verdict.valid);
  EXPECT_EQ(verdict.counterexample.property, verify::Property::kLinks);
}

// P = 1024: the prototype's depths are upper bounds, and ours are smaller from r = 2 onward. Pairs
// of ranks with runs of 2r blocks, which have the same period, are later.
TEST(FractionalDirect, Depths) {
  const std::map<std::uint32_t, std::uint32_t> prototype{{1, 14}, {2, 25}, {3, 41},  {4, 55},
                                                         {5, 71}, {6, 91}, {8, 141}, {10, 190}};
  const std::map<std::uint32_t, std::uint32_t> exhaustive{{1, 14}, {2, 23}, {3, 34}, {4, 45}};
  for (const auto& [run_length, depth] : prototype) {
    if (small_sample() && run_length > 6) continue;
    const DirectTree tree = direct_tree(simplex_family(run_length), 1024);
    std::printf("r %u: first blocks reach 1024 ranks in %u steps (prototype %u)\n", run_length,
                tree.depth, depth);
    EXPECT_LE(tree.depth, depth) << "r " << run_length;
    EXPECT_LT(tree.depth, 2u * (FractionalTree(512, 2 * run_length).last_arrival() + 1))
        << "r " << run_length;
    if (exhaustive.contains(run_length)) {
      EXPECT_EQ(tree.depth, exhaustive.at(run_length));
    }
  }
}

// No single pattern can be forwarded unchanged in both directions for r = 2, 4 and 5 (5: among
// those that the beam finds). A family is needed.
TEST(FractionalDirect, NoPatternAloneForSomeRuns) {
  for (std::uint32_t run_length = 1; run_length <= 5; ++run_length) {
    const SimplexFamily& family = simplex_family(run_length);
    std::uint32_t alone = 0;
    for (std::uint32_t at = 0; at < family.patterns.size(); ++at) {
      alone += std::any_of(
          family.passings[at].begin(), family.passings[at].end(),
          [&](const Passing& passing) { return passing.down == at && passing.right == at; });
    }
    if (run_length <= 4) {
      const std::size_t patterns[] = {1, 4, 15, 56};
      EXPECT_EQ(family.patterns.size(), patterns[run_length - 1]);
    }
    EXPECT_EQ(alone, run_length == 1 ? 1u : run_length == 3 ? 6u : 0u) << "r " << run_length;
  }
}

// A reduce takes the steps of the broadcast.
TEST(FractionalDirect, Proven) {
  const SearchedAlgorithm* algorithm = find_searched(Collective::kBroadcast, "fractional-direct");
  const SearchedAlgorithm* reduce = find_searched(Collective::kReduce, "fractional-direct");
  ASSERT_NE(algorithm, nullptr);
  ASSERT_NE(reduce, nullptr);
  EXPECT_TRUE(reduce->needs_commutative);
  for (const std::uint32_t p : grid_ranks()) {
    const auto topology = must_parse("complete:" + std::to_string(p));
    for (const std::uint32_t root : grid_roots(p)) {
      for (const std::uint32_t run_length : {0u, 1u, 2u, 3u, 7u}) {
        // The searches take a tenth of a second and a second.
        if (run_length == 0 && root != p % 2) continue;
        if (run_length == 7 && (p % 32 != 0 || root != 1)) continue;
        CollectiveParameters parameters{
            .ranks = p, .root = root, .topology_digest = topology->digest()};
        parameters.run_length = run_length;
        const std::int64_t steps = proven(*algorithm, *topology, parameters);
        ASSERT_GE(steps, 0);
        if (p == 1) continue;
        ASSERT_EQ(proven(*reduce, *topology, parameters), steps);
      }
    }
  }
}

TEST(Searched, Refusals) {
  const auto refusal = [&](const char* name, const char* spec,
                           const CollectiveParameters& parameters,
                           Collective collective = Collective::kBroadcast) -> std::string {
    const auto found = find_searched(collective, name)->search(*must_parse(spec), parameters);
    EXPECT_FALSE(found) << name << ' ' << spec;
    return message_of(found);
  };
  EXPECT_EQ(refusal("crossbar-a", "complete:8", {.ranks = 8}),
            "crossbar-a on complete:8: expected crossbar:AxB[xC..]");
  EXPECT_EQ(
      refusal("crossbar-a", "crossbar:2x4", {.ranks = 8, .run_length = 5}),
      "crossbar-a on crossbar:2x4: runs of 5 do not fit; expected r at most 30 and modules of "
      "at least 1 r ranks");
  EXPECT_EQ(refusal("crossbar-a", "crossbar:2x4,in=1,out=2", {.ranks = 8}),
            "crossbar-a on crossbar:2x4,in=1,out=2: expected at least 2 channels in and 2 out of a "
            "module");
  EXPECT_EQ(
      refusal("crossbar-b", "crossbar:8x1", {.ranks = 8}),
      "crossbar-b on crossbar:8x1: runs of 1 do not fit; expected r at most 30 and modules of "
      "at least 2 r ranks");
  EXPECT_EQ(refusal("crossbar-b", "crossbar:2x4,in=1,out=2", {.ranks = 8}, Collective::kReduce),
            "crossbar-b on crossbar:2x4,in=1,out=2: expected at least 2 channels in and 1 out of a "
            "module");
  EXPECT_EQ(
      refusal("crossbar-a", "crossbar:2x40", {.ranks = 80, .run_length = 21}, Collective::kReduce),
      "crossbar-a on crossbar:2x40: runs of 21 do not fit; expected r at most 20 and modules of "
      "at least 1 r ranks");
  EXPECT_EQ(refusal("fractional-direct", "complete:8", {.ranks = 8, .run_length = 11}),
            "fractional-direct: runs of 11; expected r at most 10 (fractional-simplex has longer "
            "ones)");
  EXPECT_EQ(refusal("double-fibonacci", "complete:8", {.ranks = 9}),
            "parameters for 9 ranks on complete:8; it has 8");
  EXPECT_EQ(refusal("double-fibonacci", "complete:8", {.ranks = 8, .root = 8}),
            "root 8 on complete:8; expected 0 to 7");
  EXPECT_EQ(find_searched(Collective::kScan, "double-fibonacci"), nullptr);
  const auto exchange = [&](const char* name, const char* spec,
                            Collective collective = Collective::kAllToAll) -> std::string {
    const auto topology = must_parse(spec);
    const auto found =
        find_searched(collective, name)->search(*topology, {.ranks = topology->ranks()});
    EXPECT_FALSE(found) << name << ' ' << spec;
    return message_of(found);
  };
  EXPECT_EQ(exchange("leaf-overlapped", "fattree:k=2,h=3,c=k"),
            "leaf-overlapped on fattree:k=2,h=3,c=k: expected fattree:k=K,h=H,c=1 of at most 64 "
            "leaves");
  for (const char* spec : {"fattree:k=129,h=1,c=1", "fattree:k=17,h=2,c=1", "complete:4"}) {
    EXPECT_EQ(exchange("leaf-flood", spec, Collective::kAllgather),
              "leaf-flood on " + std::string(spec) +
                  ": expected fattree:k=K,h=H,c=C of at most 256 leaves, and at most 128 links per "
                  "router");
  }
  EXPECT_EQ(exchange("leaf-single", "fattree:k=128x2,c=1", Collective::kAllgather),
            "leaf-single on fattree:k=128x2,c=1: expected fattree:k=K,h=H,c=C of at most 256 "
            "leaves, and at most 128 links per router");
  for (const char* spec : {"fattree:k=129,h=1,c=1", "fattree:k=3,h=6,c=1", "complete:4"}) {
    const auto topology = must_parse(spec);
    for (const Collective collective : {Collective::kAllgather, Collective::kAllToAll}) {
      const auto found =
          find_searched(collective, "leaf-single")->search(*topology, {.ranks = topology->ranks()});
      EXPECT_EQ(message_of(found), std::string("leaf-single on ") + spec +
                                       ": expected fattree:k=K,h=H,c=C of at most 256 leaves, and "
                                       "at most 128 links per router");
    }
  }
}

TEST(Searched, TableFindsItself) {
  for (const SearchedAlgorithm& algorithm : searched_algorithms()) {
    EXPECT_EQ(find_searched(algorithm.collective, algorithm.name), &algorithm);
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name), nullptr) << algorithm.name;
  }
  const auto crossbar = must_parse("crossbar:2x4"), complete = must_parse("complete:8");
  const SearchedAlgorithm* variant = find_searched(Collective::kBroadcast, "crossbar-a");
  EXPECT_TRUE(variant->applies(*crossbar));
  EXPECT_FALSE(variant->applies(*complete));
}

}  // namespace
}  // namespace espalier::searched
