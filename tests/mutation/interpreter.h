#pragma once
// A second reading of docs/architecture.md, for judging mutants: runs all programs of a schedule
// on values that say whose data they are, in lock step and under random drift. Shares no code with
// the verifier, the machine or collectives/schedule beyond the program's struct.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule.pb.h"

namespace espalier::mutation {

struct Spot {
  std::uint8_t buffer = 0;  // espalier_Buffer
  std::int64_t segment = 0, block = 0, slot = 0;
  friend bool operator==(const Spot&, const Spot&) = default;
};

// One instance of an action.
struct Move {
  std::int64_t step = 0;
  std::uint8_t kind = 0;   // espalier_Kind
  std::int64_t peer = -1;  // SEND, RECEIVE
  std::uint32_t after = 0;
  Spot into, a, b;
  friend bool operator==(const Move&, const Move&) = default;
};

// What one rank does for one N.
struct Part {
  std::int64_t window = 1, scratch = 0, claimed = 0;
  std::vector<std::int64_t> phase_ends;  // steps, cumulative
  // By step; in a step sends and receives by peer, then combines and copies in their order.
  std::vector<Move> moves;
};

// A whole schedule for one N.
struct Play {
  std::int64_t blocks = 1, segments = 1;
  std::uint32_t root = 0;
  std::uint8_t collective = 0, port_model = 0;
  bool ordered = true;
  std::vector<Part> parts;  // by rank
};
// Whether two plays run alike under any drift: all is the same but what only limits them (claimed
// steps, scratch, ports).
[[nodiscard]] bool same_course(const Play& a, const Play& b);

// At most 15 ranks.
[[nodiscard]] Play unroll(const std::vector<espalier_Program>& programs, std::int64_t blocks);

// Empty if the play keeps within its claimed steps, ports, link capacities (one block a step of
// every pair of ranks) and scratch, in lock step; else one line that says what is wrong.
[[nodiscard]] std::string check_limits(const Play& play);
// Empty if the play, which is within its limits, gives right results within its window in lock step
// and under `drifts` seeded drifts; else one line that says what went wrong.
[[nodiscard]] std::string run_drifts(const Play& play, std::uint32_t drifts);
// Both.
[[nodiscard]] std::string interpret(const Play& play, std::uint32_t drifts);

}  // namespace espalier::mutation
