#pragma once
// A second reading of docs/architecture.md, for judging mutants: runs all programs of a schedule
// on values that say whose data they are, in lock step and under random timing skew. Shares no code
// with the verifier, the machine or collectives/schedule beyond the program's struct.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/proto/schedule.pb.h"
#include "espalier/topology/topology.h"
#include "tests/mutation/contract.h"

namespace espalier::mutation {

struct Spot {
  std::uint8_t buffer = 0;  // espalier_Buffer
  std::int64_t segment = 0, block = 0, slot = 0;
  std::int64_t segment_count = 1;  // number of consecutive segments, or slots, from this one onward
  // Rotated scratch: the run is so many segments after the node's own. -1: not rotated.
  std::int64_t after_own = -1;
  friend bool operator==(const Spot&, const Spot&) = default;
};

// One instance of an action.
struct Move {
  std::int64_t step = 0;
  std::uint8_t kind = 0;   // espalier_ActionKind
  std::int64_t peer = -1;  // SEND, RECEIVE
  std::uint32_t after = 0;
  Spot into, a, b;
  friend bool operator==(const Move&, const Move&) = default;
};

// The actions of one node, for one N.
struct Part {
  std::int64_t window = 1, scratch = 0, claimed = 0;
  // Paces neither fall nor leave their phase; no action has more than 255 operations in a step.
  bool keeps_pace = true;
  std::vector<std::int64_t> phase_ends;  // steps, cumulative
  // By step; within a step, sends and receives by peer, operations in the program's order.
  std::vector<Move> moves;
};

// A whole schedule for one N.
struct Play : Contract {
  std::int64_t blocks = 1;
  std::vector<Part> parts;  // by node
  // Lanes of the topology's links, by (from, to).
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> lanes;
};
// Messages per step from one node to another; 0: routers have programs, and there is no such link.
[[nodiscard]] std::int64_t lanes_between(const Play& play, std::int64_t from, std::int64_t to);
// Whether two plays run alike under any timing skew: everything is the same except the limits
// (claimed steps, scratch, ports).
[[nodiscard]] bool same_course(const Play& a, const Play& b);

// At most 15 ranks, with any number of routers; as many programs as the first says, or fewer.
[[nodiscard]] Play unroll(const topology::Topology& topology, const Programs& programs,
                          std::int64_t blocks);

// Empty if the play keeps within its claimed steps, ports, lanes and scratch, in lock step;
// otherwise one line that says what is wrong.
[[nodiscard]] std::string check_limits(const Play& play);
// Empty if the play, which is within its limits, gives correct results within its window in lock
// step and under `skews` seeded timing skews; otherwise one line that says what went wrong.
[[nodiscard]] std::string run_skews(const Play& play, std::uint32_t skews);
// Both.
[[nodiscard]] std::string interpret(const Play& play, std::uint32_t skews);

}  // namespace espalier::mutation
