#pragma once
// Writing SVG: what the pictures of topologies and of schedules share. Host only.

#include <cstdio>
#include <string>

namespace espalier::svg {

// Appends one printf-formatted piece to `out`; it is cut at 511 characters.
template <typename... Values>
void print(std::string& out, const char* format, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  out += line;
}

// `text` as the content of an element; what is not printable ASCII becomes '?', as a file's names
// may hold anything.
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
