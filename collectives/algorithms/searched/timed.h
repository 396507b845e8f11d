#pragma once
// Explicit schedules: an all-to-all whose every message crosses every link of its route in a step
// of its own, written as programs whose actions look their steps, links, segments and slots up.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithms/builder.h"
#include "collectives/schedule/programs.h"

namespace espalier::searched {

// One rank's part for another: it leaves nodes[j] for nodes[j + 1] in step steps[j], ascending. The
// first node and the last are ranks, the others routers; one hop at least.
struct TimedRoute {
  std::vector<std::uint32_t> nodes;
  std::vector<std::int32_t> steps;
};

struct TimedExchange {
  Outline outline;
  std::vector<TimedRoute> routes;
  std::int32_t period = 1;  // steps from a block to the next
  Count bound{};
};

// Steps of one block.
[[nodiscard]] std::int32_t steps_of(const TimedExchange& exchange);

// The least period, `least` or more, at which every node's arrivals, and its departures, of a block
// end before those of the next begin, and what waits in a router is gone one window before the next
// block's comes: then no port, link or slot is wanted twice, and paces do not fall.
[[nodiscard]] std::int32_t period_apart(const TimedExchange& exchange, std::int32_t least,
                                        std::uint32_t window);

// Programs of the outline's nodes: steps + (N-1) * period steps. The period must leave no link to
// two messages in a step, and be as long as any message is in a router and a window more. A line
// that says why, and no programs, where tables would be too long.
//
// A router sends from the slot that it received into; it waits for that step by `after`, so there
// is one action for every number of steps below the window that messages wait, and one for longer
// waits, which the window guards.
[[nodiscard]] std::string write_exchange(const Group& group, const TimedExchange& exchange,
                                         Programs& programs);

}  // namespace espalier::searched
