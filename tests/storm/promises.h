#pragma once
// What the product promises about a trial, and whether it was kept (docs/architecture.md,
// "Failure"; hal/endpoint.h; collectives/machine/machine.h).

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/hal/endpoint.h"
#include "tests/storm/plan.h"
#include "tests/storm/schedule.h"

namespace espalier::storm {

// How a node ended.
struct NodeFacts {
  bool alive = true;
  bool ended = false;  // its last poll() did not return kBusy
  Status status = Status::kOk;
  Cause cause;
  std::uint32_t rounds = 0;         // collectives that ended with kOk
  std::uint64_t ended_ns = 0;       // at which it knew of its failure
  std::uint64_t found_ns = kNever;  // at which it detected a failure itself
  std::string wrong;                // a wrong result, a byte outside its buffers, a forbidden call
};

struct Facts {
  std::vector<NodeFacts> nodes;
  // By fault of the plan: whether it did something, and when.
  std::vector<bool> struck;
  std::vector<std::uint64_t> struck_ns;
  std::uint64_t moved_ns = 0;  // the last time at which a message completed anywhere
  std::string hang;            // why the trial did not come to an end; empty: it did
};

struct Broken {
  std::string kind;  // one word or two; empty: every promise was kept
  std::string text;
};

[[nodiscard]] Broken broken_promise(const Plan& plan, const Schedule& schedule, const Facts& facts);

}  // namespace espalier::storm
