#pragma once
// A trial: a plan is run, and all that the product promises is checked.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/storm/plan.h"
#include "tests/storm/schedule.h"

namespace espalier::storm {

struct Outcome {
  std::string wrong;  // the first broken promise, in one line; empty: none
  // The kind of wrong, so that a shorter plan is known to fail in the same way.
  std::string wrong_kind;
  std::map<std::string, std::uint64_t> verdicts;  // "right", or a status; one per live part
  std::uint64_t struck[kKinds] = {};              // faults that happened, by kind
  std::uint64_t messages = 0, collectives = 0;
  std::uint64_t virtual_ns = 0;
  // By node: operations of its endpoint; by link: messages sent.
  std::vector<std::uint64_t> operations;
  std::vector<std::vector<std::uint64_t>> sent;
};

// Runs the plan; `schedule` is the plan's.
[[nodiscard]] Outcome run_trial(const Plan& plan, const Schedule& schedule);

}  // namespace espalier::storm
