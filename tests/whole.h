#pragma once
// Test helper: whether tests go through all they are for instead of a sample (ESPALIER_WHOLE=1).

#include <cstdlib>
#include <cstring>

namespace espalier {

[[nodiscard]] inline bool whole() {
  const char* value = std::getenv("ESPALIER_WHOLE");
  return value != nullptr && std::strcmp(value, "0") != 0;
}

}  // namespace espalier
