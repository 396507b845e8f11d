#include "collectives/algorithms/hosts/host_halves.h"

#include "collectives/build/builder.h"

namespace espalier {

RankHalves halve_ranks(const RankInterval& whole) {
  const std::uint32_t upper_size = whole.size / 2;
  const std::uint32_t middle = whole.first + whole.size - upper_size;
  const RankInterval lower{whole.first, whole.size - upper_size, whole.first};
  const RankInterval upper{middle, upper_size, middle};
  const bool in_upper = whole.leader >= middle;
  RankHalves halves{in_upper ? upper : lower, in_upper ? lower : upper};
  halves.kept.leader = whole.leader;
  return halves;
}

HalvingTree::HalvingTree(std::uint32_t ranks, std::uint32_t root_rank, std::uint32_t me)
    : steps(log2_ceil(ranks)), interval{0, ranks, root_rank}, from(root_rank), root(true) {
  RankInterval rest = interval;
  for (std::uint32_t at = 0; rest.leader != me; ++at) {
    const RankHalves halves = halve_ranks(rest);
    const bool given = me - halves.given.first < halves.given.size;
    if (given) {
      interval = halves.given;
      step = at;
      from = rest.leader;
      root = false;
    }
    rest = given ? halves.given : halves.kept;
  }
}

}  // namespace espalier
