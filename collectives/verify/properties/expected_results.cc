#include "collectives/verify/properties/expected_results.h"

namespace espalier::verify {

std::pair<std::int64_t, std::int64_t> ExpectedResults::segments(std::uint32_t node) {
  program_.node = node;
  switch (buffer_extent(program_, Buffer::kOutput)) {
    case Extent::kWhole: return {0, program_.segments};
    case Extent::kOwn: return {node, node + std::int64_t{1}};
    default: return {0, 0};
  }
}

RankSet ExpectedResults::ranks(std::uint32_t node, std::int64_t segment) const {
  const auto origin = static_cast<std::uint32_t>(segment);
  switch (program_.collective) {
    case Collective::kBroadcast:
    case Collective::kScatter: return RankSets::range(program_.root, program_.root);
    case Collective::kScan: return RankSets::range(0, node);
    case Collective::kExscan: return RankSets::range(0, node - 1);
    case Collective::kGather:
    case Collective::kAllgather:
    case Collective::kAllToAll: return RankSets::range(origin, origin);
    default: return RankSets::range(0, program_.ranks - 1);
  }
}

}  // namespace espalier::verify
