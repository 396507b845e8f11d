#pragma once
// Test helper: EXPECT_PRED2(contains, text, words) shows both if it fails.

#include <string>

namespace espalier {

inline bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace espalier
