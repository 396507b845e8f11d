#include <string>
#include <vector>

#include "collectives/search/searches.h"

namespace espalier::searched {

std::span<const SearchedAlgorithm> searched_algorithms() {
  static const std::vector<SearchedAlgorithm> all = [] {
    std::vector<SearchedAlgorithm> joined;
    for (const std::span<const SearchedAlgorithm> rows :
         std::initializer_list<std::span<const SearchedAlgorithm>>{
             kDoubleFibonacciRows, kFractionalDirectRows, kFractionalMeshRows, kCrossbarRows,
             kMeshBalancedRows, kAllPortRows, kLeafOverlappedRows, kLeafSingleRows, kLeafFloodRows,
             kLeafMultinodeRows, kInNetworkRows, kPackedTreesRows, kPackedPathsRows,
             kBreadthFirstRows, kTimeExpandedRows}) {
      joined.insert(joined.end(), rows.begin(), rows.end());
    }
    return joined;
  }();
  return all;
}

const SearchedAlgorithm* find_searched(Collective collective, const std::string& name) {
  for (const SearchedAlgorithm& algorithm : searched_algorithms()) {
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace espalier::searched
