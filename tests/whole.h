#pragma once
// Test helpers: how much of their range tests go through.

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace espalier {

// Whether to test the whole range instead of a sample (ESPALIER_WHOLE=1).
[[nodiscard]] inline bool whole() {
  const char* value = std::getenv("ESPALIER_WHOLE");
  return value != nullptr && std::strcmp(value, "0") != 0;
}

// Whether to test an even smaller sample, and print that (ESPALIER_SMALL_SAMPLE=1): under the
// sanitizers, in an emulator (`emulated` in a board's cross.ini), and in ./test.sh quick.
[[nodiscard]] inline bool small_sample() {
  static const bool said = [] {
    if (whole() || std::getenv("ESPALIER_SMALL_SAMPLE") == nullptr) return false;
    std::printf("a smaller sample, by ESPALIER_SMALL_SAMPLE\n");
    return true;
  }();
  return said;
}

}  // namespace espalier
