#pragma once
// Test helper.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/testing/results.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// Returns the topology that `spec` names.
inline std::unique_ptr<topology::Topology> parsed(const char* spec) {
  return or_throw(topology::parse(spec));
}

}  // namespace espalier::lower
