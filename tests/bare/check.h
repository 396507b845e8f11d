#pragma once
// Checks for tests that run on boards and also on Linux: no heap, no GoogleTest. A test is a
// program whose main() returns finish().

#include <cstdint>

#include "firmware/bare/text.h"

namespace espalier::checks {

inline std::uint32_t passed = 0, failed = 0;

inline bool check(bool good, const char* file, std::uint32_t line, const char* what) {
  ++(good ? passed : failed);
  if (!good) bare::Text() << file << ":" << line << ": not so: " << what << "\n";
  return good;
}

inline void print_hex(std::uint64_t value) {
  char text[19] = "0x";
  for (int k = 0; k < 16; ++k) text[2 + k] = "0123456789abcdef"[value >> (60 - 4 * k) & 15];
  board::print(text);
}

// Prints the digests of results and events that the nodes have left, and checks them.
template <typename Digests>
void compare_digests(const Digests& found, const Digests& expected) {
  bare::Text() << "results ";
  print_hex(found.results);
  bare::Text() << ", events ";
  print_hex(found.events);
  bare::Text() << "\n";
  check(found.results == expected.results, __FILE__, __LINE__, "the results are the expected ones");
  check(found.events == expected.events, __FILE__, __LINE__, "the events are the expected ones");
}

// Returns the program's exit status: 0 if there were checks and all of them passed.
inline int finish() {
  bare::Text() << passed << " checks passed, " << failed << " failed\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace espalier::checks

#define CHECK(condition) espalier::checks::check(condition, __FILE__, __LINE__, #condition)
#define CHECK_EQ(left, right) CHECK((left) == (right))
