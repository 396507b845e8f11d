#pragma once
// The output of `espalier explain`: a choice as text, JSON and a picture. Host only.

#include <string>
#include <vector>

#include "planner/choose/choice.h"

namespace espalier::tools {

// `topology`: as the user named it.
// A table per size: candidates by predicted time, and why the others lost or were dropped.
[[nodiscard]] std::string explain_text(const planner::Choice& choice, const std::string& topology,
                                       const std::vector<planner::Ranking>& rankings);
[[nodiscard]] std::string explain_json(const planner::Choice& choice, const std::string& topology,
                                       const std::vector<planner::Ranking>& rankings);
// Predicted time by size of every candidate that is not dropped, and the sizes at which the fastest
// one changes. `rankings`: by ascending size, each with all candidates.
[[nodiscard]] std::string explain_svg(const planner::Choice& choice, const std::string& topology,
                                      const std::vector<planner::Ranking>& rankings);

// Sizes at which the fastest candidate differs from that of the size before.
struct Crossover {
  std::uint64_t bytes = 0;
  std::size_t before = 0, after = 0;  // numbers of candidates
};
[[nodiscard]] std::vector<Crossover> crossovers(const std::vector<planner::Ranking>& rankings);

}  // namespace espalier::tools
