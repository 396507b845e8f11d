#include "espalier/collectives/algorithms/algorithms.h"

#include <array>
#include <span>

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/leaf_tree.h"

namespace espalier {
namespace {

template <typename... Rows>
constexpr std::array<std::span<const Algorithm>, sizeof...(Rows)> join(const Rows&... rows) {
  return {rows...};
}

constexpr auto kRows =
    join(kBinomialRows, kKnomialRows, kScatterAllgatherRows, kChainRows, kChainEndsRows,
         kBinaryRows, kTwoTreeRows, kTwoTreeMirrorBroadcastRows, kTwoTreeSimplexRows,
         kTwoTreeMirrorReduceRows, kFractionalRows, kFractionalSimplexRows, kCirculantTreeRows,
         kLambdaTreeRows, kAlphaTreeRows, kChainScanRows, kTwoTreeScanRows,
         kDoublyPipelinedScanRows, kTwoTreeSimplexScanRows, kDoublingScanRows, kKnomialScatterRows,
         kLinearRows, kChainScatterRows, kRingRows, kRecursiveHalvingRows, kPairwiseRows,
         kBruckRows, kDisseminationRows, kRecursiveDoublingRows, kCombineRows, kRabenseifnerRows,
         kRingAllreduceRows, kCirculantRows, kDualRootRows, kLeafBroadcastRows, kLeafScatterRows,
         kLeafAllgatherRows, kLeafAllToAllRows, kHostsTreesRows, kHostsReduceBarrierRows,
         kHostsRingsRows, kHostsScanRows, kHostsAllToAllRows, kHostsScatterRows, kBucketRows);

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace

std::size_t AlgorithmList::size() {
  std::size_t rows = 0;
  for (const std::span<const Algorithm> file : kRows) rows += file.size();
  return rows;
}

const Algorithm& AlgorithmList::operator[](std::size_t number) const {
  for (std::uint32_t each = Collective::kBroadcast;; ++each) {
    for (const std::span<const Algorithm> file : kRows) {
      for (const Algorithm& row : file) {
        if (row.collective == static_cast<Collective>(each) && number-- == 0) return row;
      }
    }
  }
}

const Algorithm* find_algorithm(Collective collective, const char* name) {
  for (const std::span<const Algorithm> file : kRows) {
    for (const Algorithm& row : file) {
      if (row.collective == collective && same(row.name, name)) return &row;
    }
  }
  return nullptr;
}

bool runs_on(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  switch (algorithm.where) {
    case Where::kFatTree: return parameters.height > 0;
    case Where::kHosts: return parameters.hosts > 0;
    case Where::kGrid: return parameters.rows > 0 || parameters.dimensions > 0;
    case Where::kTorus: return parameters.dimensions > 0 && parameters.wraps;
    default: return true;
  }
}

std::uint32_t algorithm_nodes(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  if (algorithm.where != Where::kFatTree) return parameters.ranks;
  std::uint32_t nodes = parameters.ranks, size = parameters.ranks;
  for (std::uint32_t level = 1; level <= parameters.height; ++level) {
    const std::uint32_t arity = level_arity(parameters, level);
    if (arity < 2) break;
    size /= arity;
    nodes += size;
  }
  return nodes;
}

bool parse_collective(const char* name, Collective& collective) {
  for (std::uint32_t each = Collective::kBroadcast; each <= _espalier_Collective_MAX; ++each) {
    if (same(collective_name(static_cast<Collective>(each)), name)) {
      collective = static_cast<Collective>(each);
      return true;
    }
  }
  return false;
}

}  // namespace espalier
