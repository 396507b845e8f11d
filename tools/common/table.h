#pragma once
// Columns for people: each as wide as its widest cell.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace espalier::tools {

// Returns the rows as lines, which begin with two spaces.
template <std::size_t columns>
std::string table_text(const std::vector<std::array<std::string, columns>>& rows) {
  std::array<std::size_t, columns> width{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
      line += row[i] + std::string(width[i] - row[i].size() + 2, ' ');
    }
    text += "  " + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace espalier::tools
