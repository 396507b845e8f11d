#include "planner/make/bound.h"

#include <algorithm>

namespace espalier::planner {

std::vector<verify::LowerBound> bounds_of(const topology::Topology& topology,
                                          const verify::Programs& programs) {
  return verify::lower_bounds(topology, programs, false);
}

std::int64_t bound_steps(const std::vector<verify::LowerBound>& bounds, const Program& program,
                         std::int64_t blocks) {
  if (bounds.empty()) return count_value(program.counts[program.bound_ref], blocks);
  std::int64_t steps = 0;
  for (const verify::LowerBound& bound : bounds) steps = std::max(steps, bound.steps(blocks));
  return steps;
}

}  // namespace espalier::planner
