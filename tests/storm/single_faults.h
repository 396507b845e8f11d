#pragma once
// Every single fault of small clusters: each fault at each operation of each endpoint.

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/storm/schedule.h"
#include "tests/storm/trial.h"

namespace espalier::storm {

// A small cluster, and the points at which one fault may strike it.
struct SmallCluster {
  Schedule schedule;
  Plan plan;                                     // without a fault
  std::vector<std::uint64_t> operations;         // by node
  std::vector<std::vector<std::uint64_t>> sent;  // by node and link: messages

  [[nodiscard]] std::uint64_t points() const;
  // Calls `visit` for each point: the plan with its one fault.
  void for_each(const std::function<void(const Plan&)>& visit) const;
};

// One cluster for each algorithm of each collective, with and without eager copies. The error is
// that of a cluster that fails without a fault, or of an algorithm that serves none of the small
// topologies.
[[nodiscard]] Result<std::vector<SmallCluster>> small_clusters();

}  // namespace espalier::storm
