#pragma once
// The messages and operations of trees, as hops. Host only.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collectives/lower/hops.h"
#include "collectives/search/packing/packing_graph.h"
#include "collectives/search/packing/tree_packing.h"

namespace espalier::searched {

// The steps of an edge's hops; empty: any.
using EdgeSteps = std::vector<std::int32_t>;

class TreeHops {
 public:
  // `graph` must outlive this. `blocks`: of a round.
  TreeHops(const PackingGraph& graph, std::int32_t blocks);

  // Adds the sends of a block from the root to all ranks. `held` is the root's value. steps[i]: the
  // steps of edge i; empty: any. Returns the first hop of each edge.
  std::vector<std::int32_t> broadcast(const PackedTree& tree, std::int32_t block,
                                      std::int32_t segment, lower::TaskInput held,
                                      const std::vector<EdgeSteps>& steps = {});

  // Adds the sums of a block from all ranks to the root: the tree backwards. steps[i]: the steps of
  // edge i, the root's end first. A node adds the sums of its children in the order in which they
  // come. Returns the whole sum, which is in the root's OUTPUT.
  lower::TaskInput reduce(const PackedTree& tree, std::int32_t block, std::int32_t segment,
                          const std::vector<EdgeSteps>& steps);

  lower::TaskInput copy(std::uint32_t rank, std::int32_t block, std::int32_t segment);

  // Input and output of an allreduce may be the same memory: a block is not received before the
  // node has read its own.
  void keep_in_place();

  [[nodiscard]] const lower::HopGraph& hops() const { return hops_; }

 private:
  lower::TaskInput send(std::uint32_t from, std::uint32_t to, std::int32_t block,
                        std::int32_t segment, bool output, lower::TaskInput value,
                        std::int32_t step);
  lower::TaskInput combine(std::uint32_t node, std::int32_t block, std::int32_t segment,
                           bool output, lower::TaskInput a, lower::TaskInput b);
  // A task is one hop.
  lower::TaskInput add(const lower::Task& task, std::int32_t port, std::int32_t step);

  const PackingGraph& graph_;
  lower::HopGraph hops_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> ports_;
  // By rank and block: the hop that receives it into OUTPUT.
  std::map<std::pair<std::uint32_t, std::int32_t>, std::int32_t> written_;
};

}  // namespace espalier::searched
