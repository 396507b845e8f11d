#pragma once
// What seeds came to: printed by a run of seeds, read again and added up for docs/results/storm.md.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tests/storm/plan.h"
#include "tests/storm/trial.h"

namespace espalier::storm {

struct Tally {
  Over over = Over::kNetwork;  // kFrames: framed links over frames and over bytes
  std::uint64_t from = 0, seeds = 0;
  std::uint64_t wrong = 0, collectives = 0, messages = 0;
  std::uint64_t milliseconds = 0;  // of the processor
  std::uint64_t struck[kKinds] = {};
  std::map<std::string, std::uint64_t> verdicts;

  void add(const Outcome& outcome);
  // Adds the counts, not the seeds' numbers.
  void add(const Tally& other);
  [[nodiscard]] std::uint64_t faults() const;
};

// The lines that a run prints at its end. They are read back from the text of one run or several,
// which may have other lines before each tally.
[[nodiscard]] std::string tally_text(const Tally& tally);
// Errors: no tally, one that is cut short.
[[nodiscard]] Result<std::vector<Tally>> parse_tallies(const std::string& text);

// Returns docs/results/storm.md of these runs. Error: two of them had the same seed.
[[nodiscard]] Result<std::string> page_text(std::vector<Tally> tallies);

}  // namespace espalier::storm
