#pragma once
// Topologies of tests. Host only.

#include <memory>
#include <string>

#include "base/testing/results.h"
#include "espalier/topology/topology.h"

namespace espalier::topology {

// Returns the topology of a specification that must be right; throws otherwise.
inline std::unique_ptr<Topology> must_parse(const std::string& spec) {
  return or_throw(parse(spec));
}

}  // namespace espalier::topology
