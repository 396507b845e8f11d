// The algorithms for hosts:HxR, replayed: the number of network steps and of memory steps, for
// every root class and for H and R in 1..6; some larger ones. ESPALIER_WHOLE=1: every root.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/schedule/expand.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/expected_steps.h"
#include "tests/algorithms/replay.h"
#include "tests/whole.h"

namespace espalier {
namespace {

struct Cluster {
  std::uint32_t hosts, ranks;
};

// Steps in which some host sends to another one, and all other steps.
struct StepCounts {
  std::int64_t network = 0, memory = 0;
  bool operator==(const StepCounts&) const = default;
};

std::vector<Algorithm> for_hosts() {
  std::vector<Algorithm> all;
  for (const Algorithm& one : algorithms()) {
    if (one.where == Where::kHosts) all.push_back(one);
  }
  return all;
}

std::vector<Cluster> clusters() {
  std::vector<Cluster> all{{8, 8}, {2, 17}, {17, 2}, {9, 5}};
  for (std::uint32_t hosts = 1; hosts <= 6; ++hosts) {
    for (std::uint32_t ranks = 1; ranks <= 6; ++ranks) all.push_back({hosts, ranks});
  }
  return all;
}

CollectiveParameters parameters_for(const Cluster& cluster, std::uint32_t root) {
  CollectiveParameters parameters{.ranks = cluster.hosts * cluster.ranks, .root = root};
  parameters.hosts = cluster.hosts;
  parameters.host_ranks = cluster.ranks;
  parameters.topology_digest = 7;
  return parameters;
}

// The root is the first or the last rank, on the first or the last host or between.
std::set<std::uint32_t> roots_of(const Algorithm& algorithm, const Cluster& cluster) {
  if (!has_root(algorithm.collective)) return {0};
  const std::uint32_t p = cluster.hosts * cluster.ranks;
  std::set<std::uint32_t> roots{0, p - 1, p / 2, cluster.ranks - 1, p - cluster.ranks};
  for (std::uint32_t root = 0; whole() && root < p; ++root) roots.insert(root);
  return roots;
}

// The steps of two-tree among `ranks`, by its own generator.
std::int64_t two_tree(std::uint32_t ranks, std::int64_t blocks) {
  if (ranks == 1) return 0;
  const Algorithm* flat = find_algorithm(Collective::kBroadcast, "two-tree");
  const Programs programs = or_throw(replay::generate(*flat, {.ranks = ranks}));
  return or_throw(replay::run(programs, blocks));
}

std::int64_t chain(std::int64_t ranks, std::int64_t blocks) {
  return ranks == 1 ? 0 : ranks - 2 + blocks;
}

bool is_scan(const Algorithm& algorithm) {
  return algorithm.collective == Collective::kScan || algorithm.collective == Collective::kExscan;
}

// As the heads of the generators' files state them, for p > 1.
StepCounts expected(const Algorithm& algorithm, const Cluster& cluster, std::int64_t blocks) {
  const std::string name = algorithm.name;
  const std::int64_t h = cluster.hosts, r = cluster.ranks;
  const std::int64_t twice = algorithm.collective == Collective::kAllreduce ? 2 : 1;
  if (name == "hosts-dissemination") return {log_of(h), 2 * log_of(r)};
  if (name == "hosts-binomial") return {twice * log_of(h), twice * log_of(r)};
  if (name == "hosts-two-tree") {
    return {twice * two_tree(cluster.hosts, blocks), twice * two_tree(cluster.ranks, blocks)};
  }
  if (name == "hosts-multi-leader") {
    return {h == 1 ? 0 : 2 * (r * blocks + h - 2), 2 * (r - 1) * blocks};
  }
  if (name == "hosts-ring") return {r * (h - 1) * blocks, h * (r - 1) * blocks};
  if (name == "hosts-pairwise") return {r * r * (h - 1) * blocks, (r - 1) * blocks};
  if (is_scan(algorithm) && h > 1 && r > 1) {
    const std::int64_t first = algorithm.collective == Collective::kExscan ? 2 : 0;
    return {h - 2 + 2 * blocks, 2 * (r - 2) + blocks + first};
  }
  if (name == "hosts-chain") return {twice * chain(h, blocks), twice * chain(r, blocks)};
  ADD_FAILURE() << name << ": no steps are stated for it";
  return {};
}

// Counts the steps of the programs by their messages; checks that a host sends at most one message
// to other hosts in a step, and receives at most one.
StepCounts counted(const Programs& programs, const Cluster& cluster, std::int64_t blocks) {
  std::set<std::int64_t> network;
  std::set<std::pair<std::int64_t, std::uint32_t>> out, in;
  for (const Program& program : programs) {
    const std::uint32_t host = program.node / cluster.ranks;
    for (const Instance& one : expand(program, blocks)) {
      if (one.kind != ActionKind::kSend) continue;
      const auto other = static_cast<std::uint32_t>(one.peer) / cluster.ranks;
      if (other == host) continue;
      network.insert(one.step);
      EXPECT_TRUE(out.insert({one.step, host}).second) << "two messages out of host " << host;
      EXPECT_TRUE(in.insert({one.step, other}).second) << "two messages into host " << other;
    }
  }
  const auto messages = static_cast<std::int64_t>(network.size());
  return {messages, phase_steps(programs[0], blocks) - messages};
}

void check(const Algorithm& algorithm, const Cluster& cluster, std::uint32_t root) {
  static constexpr std::uint32_t kWindows[] = {1, 3, 8, 16};
  CollectiveParameters parameters = parameters_for(cluster, root);
  parameters.window = kWindows[(cluster.hosts + 2 * cluster.ranks + root) % 4];
  const std::string name = std::string(collective_name(algorithm.collective)) + " " +
                           algorithm.name + " on hosts:" + std::to_string(cluster.hosts) + "x" +
                           std::to_string(cluster.ranks) + ", root " + std::to_string(root);
  const Programs programs = or_throw(replay::generate(algorithm, parameters));
  const bool one_block = programs[0].blocks[0].block_bytes == 0;
  // Chains across the hosts keep the order, rings do not.
  const bool rings = cluster.ranks > 1 || algorithm.collective == Collective::kReduceScatter;
  EXPECT_EQ(programs[0].needs_commutative,
            algorithm.needs_commutative && rings && parameters.ranks > 1)
      << name;
  for (const std::int64_t blocks : {1, 2, 3, 7}) {
    if (one_block && blocks > 1) break;
    const auto steps = replay::run(programs, blocks);
    ASSERT_EQ(message_of(steps), "") << name;
    if (parameters.ranks == 1) continue;
    EXPECT_EQ(*steps, phase_steps(programs[0], blocks)) << name << ", N " << blocks;
    EXPECT_EQ(counted(programs, cluster, blocks), expected(algorithm, cluster, blocks))
        << name << ", N " << blocks;
  }
}

TEST(Hosts, TakeTheStatedSteps) {
  std::uint32_t schedules = 0;
  for (const Cluster& cluster : clusters()) {
    for (const Algorithm& algorithm : for_hosts()) {
      for (const std::uint32_t root : roots_of(algorithm, cluster)) {
        check(algorithm, cluster, root);
        if (HasFailure()) return;
        ++schedules;
      }
    }
  }
  std::printf("replayed %u schedules\n", schedules);
  EXPECT_GT(schedules, 40 * for_hosts().size());
}

TEST(Hosts, EveryCollectiveHasOne) {
  std::set<Collective::Value> collectives;
  for (const Algorithm& algorithm : for_hosts()) collectives.insert(algorithm.collective);
  EXPECT_EQ(collectives.size(), static_cast<std::size_t>(Collective::kBarrier));
}

TEST(Hosts, Refusals) {
  for (const Algorithm& algorithm : for_hosts()) {
    Program program;
    const auto status = [&](const CollectiveParameters& parameters, std::uint32_t me) {
      return algorithm.generate(parameters, me, program);
    };
    EXPECT_EQ(status({.ranks = 6}, 0), Status::kUnsupported) << algorithm.name << ": no hosts";
    CollectiveParameters wrong = parameters_for({2, 3}, 0);
    wrong.ranks = 7;
    EXPECT_EQ(status(wrong, 0), Status::kUnsupported) << algorithm.name;
    EXPECT_EQ(program.actions_count, 0) << algorithm.name;
    EXPECT_EQ(status(parameters_for({2, 3}, 0), 6), Status::kBadArgument) << algorithm.name;
    const CollectiveParameters no_root = parameters_for({2, 3}, 6);
    EXPECT_EQ(status(no_root, 0),
              has_root(algorithm.collective) ? Status::kBadArgument : Status::kOk);
    EXPECT_FALSE(runs_on(algorithm, {.ranks = 6}));
    EXPECT_TRUE(runs_on(algorithm, parameters_for({2, 3}, 0)));
  }
}

}  // namespace
}  // namespace espalier
