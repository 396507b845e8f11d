#include "tests/mutation/data.h"

#include <algorithm>
#include <array>

namespace espalier::mutation {
namespace {

// The nibbles in ascending order.
std::uint64_t sorted(const Data& data) {
  std::array<std::uint64_t, 16> nibbles{};
  for (std::uint32_t k = 0; k < data.length; ++k) nibbles[k] = (data.ranks >> (4 * k)) & 15;
  std::sort(nibbles.begin(), nibbles.begin() + data.length);
  std::uint64_t result = 0;
  for (std::uint32_t k = 0; k < data.length; ++k) result = result << 4 | nibbles[k];
  return result;
}

}  // namespace

Data own_input(const Play& play, std::size_t rank, std::int64_t segment, std::int64_t block) {
  return {is_barrier(play) ? std::uint64_t{1} << rank : rank + 1, 1, segment, block};
}

Data combined(const Play& play, const Data& left, const Data& right) {
  if (left.length == 0 || right.length == 0) return {};
  if (is_barrier(play)) return {left.ranks | right.ranks, 1, 0, 0};
  const bool usable = left.segment == right.segment && left.block == right.block &&
                      left.length + right.length <= 15;
  if (!usable) return {};
  return {left.ranks << (4 * right.length) | right.ranks, left.length + right.length, left.segment,
          left.block};
}

bool same_result(const Play& play, const Data& result, const Data& right) {
  const std::uint64_t ranks = play.ordered ? result.ranks : sorted(result);
  return ranks == right.ranks && result.length == right.length && result.segment == right.segment;
}

Data wanted(const Play& play, std::int64_t rank, std::int64_t segment) {
  std::int64_t first = 0, last = play.ranks - 1, carried = segment;
  switch (play.collective) {
    case espalier_Collective_BROADCAST:
    case espalier_Collective_SCATTER: first = last = play.root; break;
    case espalier_Collective_SCAN: last = rank; break;
    case espalier_Collective_EXSCAN: last = rank - 1; break;
    case espalier_Collective_GATHER:
    case espalier_Collective_ALLGATHER: first = last = segment; break;
    case espalier_Collective_ALL_TO_ALL:
      first = last = segment;
      carried = rank;
      break;
    default: break;
  }
  Data data;
  for (std::int64_t from = first; from <= last; ++from) {
    data.ranks = data.ranks << 4 | static_cast<std::uint64_t>(from + 1);
  }
  data.length = static_cast<std::uint32_t>(last - first + 1);
  data.segment = carried;
  return data;
}

}  // namespace espalier::mutation
