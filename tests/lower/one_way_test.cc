// Graphs with one-way links, with routers and without: every algorithm for any topology is lowered
// onto their links and proven, or refused with one line before. A message against a link is
// refused, whichever way it is proven.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "collectives/verify/testing/program_builder.h"
#include "espalier/collectives/lower/lower.h"
#include "tests/grid/grid.h"
#include "tests/whole.h"

namespace espalier::grid {
namespace {

// A ring of one-way links over all nodes, and more one-way links: each node reaches each other.
std::string random_graph(std::uint32_t ranks, std::uint32_t routers, std::mt19937& dice) {
  std::string text = "custom:name: \"one-way\" ranks: " + std::to_string(ranks);
  const std::uint32_t nodes = ranks + routers;
  if (routers > 0) text += " routers: " + std::to_string(routers);
  std::vector<std::uint32_t> order(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) order[node] = node;
  std::shuffle(order.begin(), order.end(), dice);
  std::vector<bool> linked(std::size_t{nodes} * nodes);
  const auto add = [&](std::uint32_t from, std::uint32_t to) {
    if (from == to || linked[from * nodes + to]) return;
    linked[from * nodes + to] = true;
    text +=
        " link { from: " + std::to_string(from) + " to: " + std::to_string(to) + " one_way: true }";
  };
  for (std::uint32_t k = 0; k < nodes; ++k) add(order[k], order[(k + 1) % nodes]);
  for (std::uint32_t more = dice() % (2 * nodes); more > 0; --more) {
    add(dice() % nodes, dice() % nodes);
  }
  return text;
}

CollectiveParameters parameters_for(const topology::Topology& topology) {
  return topology_parameters(topology, 0, &kBlocks);
}

verify::Verdict verdict_of(const topology::Topology& topology, const Programs& programs,
                           verify::Method method) {
  verify::VerifyOptions options{.method = method};
  if (method == verify::Method::kExhaustive) options.max_blocks = 6;
  return verify::verdict_of(topology, programs, options);
}

TEST(OneWay, EveryAlgorithmIsProvenOrRefused) {
  std::mt19937 dice(static_cast<std::mt19937::result_type>(sample_seed()));
  std::uint32_t proven = 0, with_routers = 0;
  const int graphs = whole() ? 60 : small_sample() ? 3 : 8;
  for (int graph = 0; graph < graphs; ++graph) {
    const std::uint32_t routers = graph % 2 == 0 ? 0 : 1 + dice() % 3;
    const std::string spec = random_graph(2 + dice() % 5, routers, dice);
    const auto topology = or_throw(topology::parse(spec));
    const CollectiveParameters parameters = parameters_for(*topology);
    for (const Algorithm& algorithm : algorithms()) {
      if (!runs_on(algorithm, parameters)) continue;
      const Programs routed = programs_of(algorithm, parameters);
      const std::string name = std::string(algorithm.name) + " on " + spec;
      lower::Report report;
      const auto lowered =
          lower::lower(*topology, parameters, PortModel::kMultiport, routed, report);
      if (!lowered) {
        EXPECT_EQ(lowered.error().message.find('\n'), std::string::npos) << name;
        continue;
      }
      const verify::Verdict verdict = verdict_of(*topology, *lowered, verify::Method::kAuto);
      EXPECT_TRUE(verdict.valid) << name << ": " << verdict.counterexample.message;
      ++proven;
      if (routers > 0) ++with_routers;
    }
  }
  std::printf("%u schedules proven, %u of them with programs of routers\n", proven, with_routers);
  EXPECT_GT(with_routers, 0u);
  EXPECT_GT(proven, with_routers);
}

// Rank 0 sends to rank 1 although the link leads from rank 1 to rank 0.
TEST(OneWay, AMessageAgainstALinkIsRefused) {
  const auto topology = or_throw(topology::parse(
      "custom:name: \"t\" ranks: 2 routers: 1 link { from: 1 to: 0 one_way: true } link { from: 0 "
      "to: 2 one_way: true } link { from: 2 to: 1 one_way: true }"));
  Programs programs;
  for (std::uint32_t node = 0; node < 3; ++node) {
    verify::ProgramBuilder builder(*topology, Collective::kBroadcast, node, 4);
    builder.program.nodes = 3;
    if (node == 0) builder.send(0, 1, builder.input(), 0);
    if (node == 1) builder.receive(0, 0, builder.output());
    programs.push_back(builder.finish(1, 0, 1, 0));
  }
  for (const verify::Method method : {verify::Method::kPeriodic, verify::Method::kExhaustive}) {
    const verify::Verdict verdict = verdict_of(*topology, programs, method);
    EXPECT_FALSE(verdict.valid);
    EXPECT_NE(verdict.counterexample.message.find(
                  "it sends to rank 1, but t has a link in the other direction only"),
              std::string::npos)
        << verdict.counterexample.message;
  }
}

}  // namespace
}  // namespace espalier::grid
