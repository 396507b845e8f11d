#pragma once
// Test helper.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "espalier/topology/topology.h"

namespace espalier::lower {

// Returns the topology that `spec` names.
inline std::unique_ptr<topology::Topology> parsed(const char* spec) {
  return topology::parse(spec).value();
}

}  // namespace espalier::lower
