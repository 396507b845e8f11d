#pragma once
// Test helper: values of an independent prototype.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace espalier {

[[nodiscard]] inline nlohmann::json prototype_values() {
  std::ifstream file(ESPALIER_TESTDATA "/golden.json");
  EXPECT_TRUE(file) << "no " ESPALIER_TESTDATA "/golden.json";
  return nlohmann::json::parse(file);
}

}  // namespace espalier
