#pragma once
// Test helpers: how much of what they are for tests go through.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace espalier {

// All of it instead of a sample (ESPALIER_WHOLE=1).
[[nodiscard]] inline bool whole() {
  const char* value = std::getenv("ESPALIER_WHOLE");
  return value != nullptr && std::strcmp(value, "0") != 0;
}

// A smaller sample still, and says so (ESPALIER_EMULATED=1): an emulator runs the test, ten times slower
// (`emulated` in a board's cross.ini), or ./test.sh quick.
[[nodiscard]] inline bool emulated() {
  static const bool said = [] {
    if (whole() || std::getenv("ESPALIER_EMULATED") == nullptr) return false;
    std::printf("a smaller sample, by ESPALIER_EMULATED\n");
    return true;
  }();
  return said;
}

}  // namespace espalier
