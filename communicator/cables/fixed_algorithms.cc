#include "communicator/cables/fixed_algorithms.h"

#include <algorithm>
#include <span>

#include "espalier/internal/base/assert.h"

namespace espalier::communicator {
namespace {

constexpr FixedAlgorithms kRouted[] = {
    {Collective::kBroadcast, "circulant", "circulant", ""},
    {Collective::kReduce, "circulant", "rabenseifner", ""},
    {Collective::kAllreduce, "circulant", "two-tree", ""},
    {Collective::kScan, "recursive-doubling", "recursive-doubling", ""},
    {Collective::kExscan, "recursive-doubling", "recursive-doubling", ""},
    {Collective::kScatter, "binomial", "binomial", "linear"},
    {Collective::kGather, "binomial", "binomial", "linear"},
    {Collective::kAllgather, "circulant", "circulant", "ring"},
    {Collective::kReduceScatter, "circulant", "recursive-halving", "ring"},
    {Collective::kAllToAll, "bruck", "bruck", "pairwise"},
    {Collective::kBarrier, "dissemination", "dissemination", ""},
};

constexpr FixedAlgorithms kOnGraphs[] = {
    {Collective::kBroadcast, "breadth-first", "breadth-first", ""},
    {Collective::kReduce, "breadth-first", "binomial", ""},
    {Collective::kAllreduce, "breadth-first", "recursive-doubling", ""},
    {Collective::kScan, "recursive-doubling", "recursive-doubling", ""},
    {Collective::kExscan, "recursive-doubling", "recursive-doubling", ""},
    {Collective::kScatter, "linear", "linear", "linear"},
    {Collective::kGather, "linear", "linear", "linear"},
    {Collective::kAllgather, "time-expanded", "time-expanded", "ring"},
    {Collective::kReduceScatter, "time-expanded", "recursive-halving", "ring"},
    {Collective::kAllToAll, "packed-paths", "packed-paths", "pairwise"},
    {Collective::kBarrier, "breadth-first", "breadth-first", ""},
};

}  // namespace

const FixedAlgorithms& fixed_algorithms(Collective collective, bool is_graph) {
  const std::span<const FixedAlgorithms> table = is_graph ? kOnGraphs : kRouted;
  const auto row = std::find_if(table.begin(), table.end(), [collective](const auto& each) {
    return each.collective == collective;
  });
  ESPALIER_ASSERT(row != table.end());
  return *row;
}

}  // namespace espalier::communicator
