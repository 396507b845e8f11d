#pragma once
// The page of a soak run, its plot and its verdicts.

#include <string>
#include <vector>

#include "tests/soak/controller.h"

namespace espalier::soak {

// Returns what did not stay constant, or was wrong; empty: nothing. Memory and mappings are judged
// from kJudgedJobs jobs on, because the processes grow at first.
[[nodiscard]] std::vector<std::string> findings(const Record& record);
constexpr std::size_t kJudgedJobs = 100;

// The page, in Markdown. `command`: what wrote it.
[[nodiscard]] std::string page(const Record& record, const std::string& command);
[[nodiscard]] std::string picture(const Record& record);

}  // namespace espalier::soak
