#pragma once
// The programs of a plan's schedule, and random schedules.

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/simulation/testing/reference.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "tests/contention/dice.h"
#include "tests/storm/plan.h"

namespace espalier::storm {

using contention::Dice;

struct Schedule {
  ScheduleSpec spec;
  std::unique_ptr<topology::Topology> topology;
  Programs programs;
  std::vector<std::vector<std::uint32_t>> peers;  // by node: the nodes at the ends of its links
  bool commutative = false;                       // it needs an operator that commutes
  bool unequal = false;                           // it takes a count for each rank
};

// Returns the schedule; an error in one line if there is none.
[[nodiscard]] Result<Schedule> make_schedule(const ScheduleSpec& spec);

// Draws a schedule: ranks uniformly from 2 to `most_ranks`, then a topology of that many, then one
// of the algorithms that serve it.
[[nodiscard]] Schedule draw_schedule(Dice& dice, std::uint32_t most_ranks);

// Whether every fault of the plan is of nodes and links that the schedule has.
[[nodiscard]] Result<void> check_faults(const Plan& plan, const Schedule& schedule);

// Returns the plan's job of one round. The schedule must be the plan's.
[[nodiscard]] testing::Job job_of(const Plan& plan, const Schedule& schedule, std::uint32_t round);

}  // namespace espalier::storm
