#include "collectives/verify/properties/expected_results.h"

namespace espalier::verify {

std::pair<std::int64_t, std::int64_t> ExpectedResults::segments(std::uint32_t node) {
  program_.node = node;
  switch (buffer_extent(program_, espalier_Buffer_OUTPUT)) {
    case Extent::kWhole: return {0, program_.segments};
    case Extent::kOwn: return {node, node + std::int64_t{1}};
    default: return {0, 0};
  }
}

RankSet ExpectedResults::ranks(std::uint32_t node, std::int64_t segment) const {
  const auto origin = static_cast<std::uint32_t>(segment);
  switch (program_.collective) {
    case espalier_Collective_BROADCAST:
    case espalier_Collective_SCATTER: return RankSets::range(program_.root, program_.root);
    case espalier_Collective_SCAN: return RankSets::range(0, node);
    case espalier_Collective_EXSCAN: return RankSets::range(0, node - 1);
    case espalier_Collective_GATHER:
    case espalier_Collective_ALLGATHER:
    case espalier_Collective_ALL_TO_ALL: return RankSets::range(origin, origin);
    default: return RankSets::range(0, program_.ranks - 1);
  }
}

}  // namespace espalier::verify
