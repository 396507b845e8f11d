#pragma once
// What seeds came to: printed by a run of seeds; page.py adds runs up for docs/results/storm.md.

#include <cstdint>
#include <map>
#include <string>

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
};

// The lines that a run prints at its end, for page.py.
[[nodiscard]] std::string tally_text(const Tally& tally);

}  // namespace espalier::storm
