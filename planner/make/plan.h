#pragma once
// Makes the schedule that a request names: places the ranks, lowers the schedule onto the
// topology's links, and compiles it. Host only.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "planner/make/algorithms.h"
#include "planner/make/plan_request.h"
#include "planner/progress.h"

namespace espalier::planner {

// A schedule whose programs generate() writes.
struct PlannedSchedule {
  std::shared_ptr<const topology::Topology> topology;
  topology::Shape shape;  // of the topology; parameters.capacities points into it
  AlgorithmEntry algorithm;
  CollectiveParameters parameters;
  Programs found;           // all nodes' programs, of a searched algorithm or a lowered schedule
  lower::Report report;     // on its lowering
  std::uint32_t nodes = 0;  // that have programs: ranks, and routers where they run
  std::optional<topology::Embedding> embedding;  // the placement of ranks; nothing: as numbered
  std::vector<std::uint32_t> rank_at;            // of an embedding: virtual rank of each node
  std::vector<BlockRule> rules;        // the block table, from a model; empty: the algorithm's own
  std::uint64_t selection_digest = 0;  // of the selection that it is one of; 0: of none
};

// Makes the schedule of a request that names an algorithm. Without a run length, it is the
// algorithm's own. Errors: the algorithm cannot do it, as asked.
[[nodiscard]] Result<PlannedSchedule> make_schedule(const PlanRequest& request);

// Writes node's program into `program`. Error: the algorithm cannot do it.
[[nodiscard]] Result<void> generate(const PlannedSchedule& schedule, std::uint32_t node,
                                    OwnedProgram& program);

// Returns the schedule file: a descriptor for each node. Error: the algorithm cannot do it.
[[nodiscard]] Result<std::vector<std::uint8_t>> compile(const PlannedSchedule& schedule,
                                                        const ShowProgress& progress);

}  // namespace espalier::planner
