#include "tests/storm/single_faults.h"

#include <numeric>

#include "espalier/collectives/search.h"

namespace espalier::storm {
namespace {

constexpr const char* kTopologies[] = {
    "complete:4", "complete:5",   "mesh:2x2", "mesh:2x3", "fattree:k=2,h=2,c=1",
    "hosts:2x2",  "crossbar:2x2", "mesh:2x4", "ring:4"};
constexpr Kind kMessageFaults[] = {Kind::kDrop, Kind::kDuplicate, Kind::kReorder, Kind::kCorrupt,
                                   Kind::kDelay};

// The schedule of an algorithm on the first topology that it serves.
Result<Schedule> small_schedule(Collective collective, const std::string& algorithm) {
  std::string last;
  for (const char* topology : kTopologies) {
    for (const std::uint32_t root : {1u, 0u}) {
      for (const std::uint32_t run_length : {0u, 2u}) {
        ScheduleSpec spec{.topology = topology,
                          .collective = collective,
                          .algorithm = algorithm,
                          .root = has_root(collective) ? root : 0,
                          .run_length = run_length};
        auto schedule = make_schedule(spec);
        if (schedule) return schedule;
        last = schedule.error().message;
      }
    }
  }
  return fail(std::string(collective_name(collective)) + " by " + algorithm +
              " runs on none of the small topologies: " + last);
}

Result<SmallCluster> small_cluster(Collective collective, const std::string& algorithm,
                                   bool eager_copies) {
  auto schedule = small_schedule(collective, algorithm);
  if (!schedule) return fail(schedule.error());
  SmallCluster cluster;
  cluster.schedule = *std::move(schedule);
  Plan& plan = cluster.plan;
  plan.schedule = cluster.schedule.spec;
  plan.rounds = 2;
  plan.blocks = 2;
  plan.eager_copies = eager_copies;
  plan.unequal = !eager_copies && cluster.schedule.unequal;
  // Both sides of it: a round has shorter blocks than the other.
  plan.eager_bytes = 48;
  plan.jitter = 50;
  const Outcome outcome = run_trial(plan, cluster.schedule);
  if (!outcome.wrong.empty()) return fail(plan_text(plan) + ": " + outcome.wrong);
  cluster.operations = outcome.operations;
  cluster.sent = outcome.sent;
  return cluster;
}

}  // namespace

std::uint64_t SmallCluster::points() const {
  std::uint64_t points = 0;
  for (const std::uint64_t number : operations) points += 2 * number;
  for (const auto& links : sent) {
    points +=
        std::size(kMessageFaults) * std::accumulate(links.begin(), links.end(), std::uint64_t{0});
  }
  return points;
}

void SmallCluster::for_each(const std::function<void(const Plan&)>& visit) const {
  Plan one = plan;
  one.faults.resize(1);
  Fault& fault = one.faults[0];
  for (std::uint32_t node = 0; node < operations.size(); ++node) {
    for (std::uint32_t link = 0; link < sent[node].size(); ++link) {
      for (std::uint64_t message = 0; message < sent[node][link]; ++message) {
        for (const Kind kind : kMessageFaults) {
          fault = Fault();
          fault.kind = kind;
          fault.node = node;
          fault.peer = schedule.peers[node][link];
          fault.message = message;
          fault.bit = kind == Kind::kCorrupt ? 3 + 8 * message : 0;
          fault.ns = kind == Kind::kDelay ? plan.deadline_ns / 2 : plan.deadline_ns / 20;
          visit(one);
        }
      }
    }
    for (std::uint64_t operation = 0; operation < operations[node]; ++operation) {
      for (const Kind kind : {Kind::kKill, Kind::kPause}) {
        fault = Fault();
        fault.kind = kind;
        fault.node = node;
        fault.operation = operation;
        fault.ns = kind == Kind::kPause ? 2 * plan.deadline_ns : 0;
        visit(one);
      }
    }
  }
}

Result<std::vector<SmallCluster>> small_clusters() {
  std::vector<SmallCluster> clusters;
  const auto add = [&](Collective collective, const char* name) -> Result<void> {
    for (const bool eager_copies : {true, false}) {
      auto cluster = small_cluster(collective, name, eager_copies);
      if (!cluster) return fail(cluster.error());
      clusters.push_back(*std::move(cluster));
    }
    return {};
  };
  for (const Algorithm& algorithm : algorithms()) {
    if (auto added = add(algorithm.collective, algorithm.name); !added) return fail(added.error());
  }
  for (const auto& one : searched::searched_algorithms()) {
    if (auto added = add(one.collective, one.name); !added) return fail(added.error());
  }
  return clusters;
}

}  // namespace espalier::storm
