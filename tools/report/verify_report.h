#pragma once
// The output of `espalier verify`: the proof's summary, the proof property by property, or the
// counterexample.

#include <string>

#include "espalier/collectives/verify/verify.h"
#include "tools/common/json.h"
#include "tools/report/verify_source.h"

namespace espalier::tools {

// A verdict, and what belongs to it.
struct Proof {
  verify::Verdict verdict;
  std::string links;  // why the topology's own links cannot carry it; empty: they can
  // Over all ranks; only of valid schedules.
  std::uint32_t least_scratch = 0, max_scratch = 0;  // blocks
  std::uint32_t max_links = 0;                       // of one rank
};

// One line. For valid schedules only.
[[nodiscard]] std::string summary(Source& source, const Proof& proof);
// One line for each property, with its numbers, and the properties that are not proven. For valid
// schedules only.
[[nodiscard]] std::string explanation(Source& source, const Proof& proof);
// Both verdicts.
[[nodiscard]] Json to_json(Source& source, const Proof& proof);

}  // namespace espalier::tools
