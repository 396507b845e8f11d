#pragma once
// Ten schedules, broken by hand in ways that users of other libraries reported, each with the
// correct schedule that it is made from.

#include <memory>
#include <string>
#include <vector>

#include "collectives/verify/testing/program_builder.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::verify {

struct Broken {
  std::string name;   // of its file, without extension
  std::string story;  // the mistake of its author
  std::unique_ptr<topology::Topology> topology;
  std::vector<OwnedProgram> sound, broken;
  Property property = Property::kForm;  // the property that must fail
  std::vector<std::string> words;       // words that the counterexample must contain
};

// All ten, in the order of docs/verifier.md.
[[nodiscard]] std::vector<Broken> broken_schedules();

}  // namespace espalier::verify
