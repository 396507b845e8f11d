#pragma once
// Ten schedules, broken by hand in the ways that users of other libraries reported, each beside the
// sound one it came from.

#include <memory>
#include <string>
#include <vector>

#include "collectives/verify/hand_made.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::verify {

struct Broken {
  std::string name;   // of its file
  std::string story;  // what its author did wrong
  std::unique_ptr<topology::Topology> topology;
  std::vector<OwnedProgram> sound, broken;
  Point point = Point::kForm;      // the one that must refuse it
  std::vector<std::string> words;  // what the counterexample must name
};

// All ten, in the order of docs/verifier.md.
[[nodiscard]] std::vector<Broken> broken_schedules();

}  // namespace espalier::verify
