#pragma once
// Test helper.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "espalier/topology/topology.h"

namespace espalier::lower {

// Returns the topology that `spec` names.
inline std::unique_ptr<topology::Topology> parsed(const char* spec) {
  std::string error;
  auto topology = topology::parse(spec, error);
  EXPECT_NE(topology, nullptr) << error;
  return topology;
}

}  // namespace espalier::lower
