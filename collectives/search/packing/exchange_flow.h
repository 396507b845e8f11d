#pragma once
// The all-to-all of a graph as a flow of many commodities, by linear programming (Clp). Host only.

#include <cstdint>
#include <vector>

#include "collectives/search/packing/packing_graph.h"
#include "espalier/base/result.h"

namespace espalier::searched {

// Lengths of links, >= 0. For any of them, no all-to-all takes less time than the distances between
// all pairs of ranks divided by the sum of lanes * length: a block from u to v takes up at least
// the distance, and a step offers no more than the sum.
struct LinkLengths {
  std::vector<std::int64_t> by_link;
  std::int64_t distances = 0, lanes = 1;  // of the quotient
};

// Every rank sends one unit to every other rank. The flows of one origin are added up: which target
// a unit is for does not matter to the links.
inline constexpr std::int64_t kFlowUnit = 1 << 20;
struct ExchangeFlow {
  // by_origin[rank][link]: in units of 1 / kFlowUnit, rounded.
  std::vector<std::vector<std::int64_t>> by_origin;
  // The time of the busiest link: the maximum over all links of flow / lanes, rounded up.
  std::int64_t time = 0;
  // From the dual of the program, rounded: the quotient is near `time`.
  LinkLengths lengths;
};

// Returns why there is no Clp, and what to do; null if there is.
[[nodiscard]] const char* missing_flow_solver();

// Returns a flow whose busiest link takes at most a thousandth longer than necessary, and which
// takes few links. The optimum is unique: every link has a cost for every origin, drawn from a
// fixed generator, and no two flows have the same costs. So the flow does not depend on the
// machine, nor on the order in which Clp looks at flows. Requires ranks >= 2. Errors: Clp is
// missing, a rank cannot reach another, or Clp gives up.
[[nodiscard]] Result<ExchangeFlow> find_exchange_flow(const PackingGraph& graph);

// Sets distances and lanes from the lengths.
void measure(const PackingGraph& graph, LinkLengths& lengths);

}  // namespace espalier::searched
