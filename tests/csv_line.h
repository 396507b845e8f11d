#pragma once
// Lines of CSV files: the records of pages (tests/pages.py).

#include <initializer_list>
#include <string>

namespace espalier::testing {

// Returns the cells as a line; those with commas, quotes or line breaks are quoted.
[[nodiscard]] inline std::string csv_line(std::initializer_list<std::string> cells) {
  std::string out;
  for (const std::string& cell : cells) {
    if (&cell != cells.begin()) out += ',';
    if (cell.find_first_of(",\"\n\r") == std::string::npos) {
      out += cell;
      continue;
    }
    out += '"';
    for (const char letter : cell)
      out += letter == '"' ? std::string("\"\"") : std::string(1, letter);
    out += '"';
  }
  return out + '\n';
}

}  // namespace espalier::testing
