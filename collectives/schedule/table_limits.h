#pragma once
// The number of rows that a program's tables may have. Hosts have room for more terms and indices
// (proto/host.options) than boards (proto/schedule.options). Generators write programs that boards
// hold, unless CollectiveParameters::host_limits is set. Freestanding.

#include <cstddef>
#include <cstdint>

namespace espalier {

// Maximum rows on boards; a board's description may state less. A test compares
// proto/schedule.options.
inline constexpr std::uint32_t kBoardTerms = 24, kBoardIndices = 64;

// Returns the number of rows that a table has room for in this build.
template <typename Row, std::size_t Size>
constexpr std::uint32_t rows_of(const Row (&)[Size]) {
  return Size;
}

// A table of a program that needs more rows than there may be.
struct TableExcess {
  const char* table = nullptr;  // "terms"; null: another reason
  std::uint32_t rows = 0;       // at least so many are needed
  std::uint32_t limit = 0;
  bool is_for_hosts = false;  // the limit is that of hosts
};

}  // namespace espalier
