// Every algorithm for any topology, on the topologies of examples/topologies, and on the shapes
// that no other grid covers: verified without the links, and run in lock step with correct results.
// The loads of links that the verifier finds are counted again from the steps and the topology's
// routes. Prints the contention guarantee that holds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/schedule/expand.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

constexpr std::int64_t kMaxBlocks = 3;

using Link = std::pair<std::uint32_t, std::uint32_t>;

// Whether no link carries more than its lanes, for N blocks. SLOT: in any step. ASYNC: even if
// every pair of nodes has, at the same time, its maximum number of transfers of any step under way.
struct Contention {
  bool slot = true, async = true;
};

Contention contention_of(const topology::Topology& topology, const Programs& programs,
                         std::int64_t blocks) {
  std::map<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>, std::uint32_t> sends;
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    for (const Instance& instance : expand(programs[node], blocks)) {
      if (instance.kind == ActionKind::kSend) {
        ++sends[{instance.step, node, static_cast<std::uint32_t>(instance.peer)}];
      }
    }
  }
  std::map<std::pair<std::int64_t, Link>, std::uint32_t> in_step;
  std::map<Link, std::uint32_t> most;  // transfers of a pair of nodes in a step
  for (const auto& [send, times] : sends) {
    const auto& [step, from, to] = send;
    const auto route = topology.route(from, to);
    for (std::size_t hop = 1; hop < route.size(); ++hop) {
      in_step[{step, {route[hop - 1], route[hop]}}] += times;
    }
    most[{from, to}] = std::max(most[{from, to}], times);
  }
  std::map<Link, std::uint32_t> at_once;
  for (const auto& [pair, times] : most) {
    const auto route = topology.route(pair.first, pair.second);
    for (std::size_t hop = 1; hop < route.size(); ++hop) {
      at_once[{route[hop - 1], route[hop]}] += times;
    }
  }
  Contention contention;
  for (const auto& [use, load] : in_step) {
    contention.slot =
        contention.slot && load <= topology.capacity(use.second.first, use.second.second);
  }
  for (const auto& [link, load] : at_once) {
    contention.async = contention.async && load <= topology.capacity(link.first, link.second);
  }
  return contention;
}

// The schedule must be valid without the links. With them it must be valid if and only if the
// contention guarantee that it claims holds.
void expect_verdicts(const topology::Topology& topology, const Programs& programs,
                     std::int64_t most, const std::string& name) {
  const verify::Programs all = [&](std::uint32_t node) -> const Program& { return programs[node]; };
  verify::VerifyOptions options{
      .links = false, .method = verify::Method::kExhaustive, .max_blocks = most};
  const verify::Verdict routed = verify::verify(topology, all, options);
  ASSERT_TRUE(routed.valid) << name << ": " << routed.counterexample.message;
  Contention counted;
  const std::int64_t mod = std::max<std::uint32_t>(1, programs[0].residue_mod);
  for (std::int64_t blocks = 1; blocks <= most; ++blocks) {
    if (blocks % mod != programs[0].residue % mod) continue;
    const Contention one = contention_of(topology, programs, blocks);
    counted = {counted.slot && one.slot, counted.async && one.async};
  }
  options.links = true;
  const verify::Verdict verdict = verify::verify(topology, all, options);
  const bool claimed =
      programs[0].contention == ContentionGuarantee::kSlot ? counted.slot : counted.async;
  EXPECT_EQ(verdict.valid, claimed) << name << ": " << verdict.counterexample.message;
  if (verdict.valid) {
    EXPECT_EQ(verdict.slot, counted.slot) << name;
    EXPECT_EQ(verdict.async, counted.async) << name;
  } else {
    EXPECT_EQ(verdict.counterexample.property, verify::Property::kLinks) << name;
  }
  std::printf("%s: %s\n", name.c_str(),
              counted.async  ? "ASYNC"
              : counted.slot ? "SLOT"
                             : "links overloaded");
}

void verify_and_run(const std::string& spec) {
  const auto topology = or_throw(topology::read(spec));
  std::uint32_t schedules = 0;
  const AlgorithmList table = algorithms();
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    const Algorithm& algorithm = table[i];
    if (algorithm.where != Where::kAnywhere) continue;
    CollectiveParameters parameters = topology_parameters(*topology, 1, &kBlocks);
    const Programs programs = programs_of(algorithm, parameters);
    if (::testing::Test::HasFailure()) return;
    if (programs.empty()) continue;
    const std::string name = name_of(algorithm, *topology, parameters);
    const bool pipelined = programs[0].blocks[0].block_bytes != 0;
    expect_verdicts(*topology, programs, pipelined ? kMaxBlocks : 1, name);
    if (::testing::Test::HasFailure()) return;
    run(programs, parameters, pipelined ? kMaxBlocks : 1, name);
    if (::testing::Test::HasFailure()) return;
    ++schedules;
  }
  EXPECT_GE(schedules, 20u) << "the table has that many that do any number of ranks";
}

TEST(Grid, MeshWithABrokenLink) {
  verify_and_run("file:" ESPALIER_EXAMPLES "/broken-mesh.textproto");
}
TEST(Grid, TreeOfUnequalArity) {
  verify_and_run("file:" ESPALIER_EXAMPLES "/uneven-tree.textproto");
}
TEST(Grid, OtherShapes) {
  for (const char* spec : {"torus:3x4", "torus:2x2x3", "mesh:2x2x3", "ring:7", "hypercube:3",
                           "hyperx:3x3", "dragonfly:3x2x2"}) {
    verify_and_run(spec);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace espalier::grid
