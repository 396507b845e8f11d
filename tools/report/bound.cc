#include "tools/report/bound.h"

#include <numeric>

#include "base/counted.h"
#include "espalier/internal/base/arithmetic.h"
#include "planner/make/blocks.h"
#include "planner/make/bound.h"
#include "tools/report/show_text.h"
#include "tools/report/witness.h"

namespace espalier::tools {
namespace {

// Shortened: ceil((a + bN) / d) is ceil((ceil(a/g) + (b/g)N) / (d/g)) for every g that divides b
// and d.
std::string formula(const verify::LowerBound& bound) {
  const std::int64_t by = std::gcd(bound.b, bound.d);
  const std::int64_t a = ceil_div(bound.a, by), b = bound.b / by, d = bound.d / by;
  const std::string line = line_text(a, b);
  if (d == 1) return line;
  return "ceil(" + (a != 0 && b != 0 ? "(" + line + ")" : line) + "/" + std::to_string(d) + ")";
}

}  // namespace

std::vector<verify::LowerBound> bounds_of(const planner::LoadedSchedule& loaded) {
  return planner::bounds_of(*loaded.topology, [&loaded](std::uint32_t node) -> const Program& {
    return loaded.programs.at(node);
  });
}

Json certificate_of(const planner::LoadedSchedule& loaded) {
  const auto program = [&loaded](std::uint32_t node) -> const Program& {
    return loaded.programs.at(node);
  };
  std::string limited;
  const std::vector<verify::LowerBound> bounds =
      verify::lower_bounds(*loaded.topology, program, false, &limited);
  if (bounds.empty()) return nullptr;
  return certificate_json(*loaded.topology, loaded.programs.front(),
                          verify::bound_facts(*loaded.topology, program, false), bounds, limited);
}

std::string bound_text(const std::vector<verify::LowerBound>& bounds, const Program& program) {
  if (bounds.empty()) return count_text(program.counts[program.bound_ref]);
  const std::int64_t first = planner::allowed_blocks(program, 1);
  if (!planner::cuts_messages(program))
    return std::to_string(planner::bound_steps(bounds, program, first));
  std::string text;
  const std::vector<verify::LowerBound> few = verify::greatest(bounds, first);
  for (const verify::LowerBound& bound : few) text += (text.empty() ? "" : ", ") + formula(bound);
  return few.size() == 1 ? text : "max(" + text + ")";
}

std::string lower_bound_text(const verify::LowerBound& bound) {
  return counted(formula(bound), "step") + ": " + bound.reason;
}

}  // namespace espalier::tools
