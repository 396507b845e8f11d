#pragma once
// SVG output shared by the pictures of topologies and of schedules. Host only.

#include <cstdio>
#include <string>

namespace espalier::svg {

// Appends one printf-formatted piece to `out`, truncated to 511 characters.
template <typename... Values>
void print(std::string& out, const char* format, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  out += line;
}

// Appends `text` as it is.
inline void print(std::string& out, const char* text) { out += text; }

// Returns `text` as element content. Characters other than printable ASCII become '?', because
// names from a file may contain anything.
inline std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c >= ' ' && c < 0x7f ? c : '?';
  }
  return out;
}

}  // namespace espalier::svg
