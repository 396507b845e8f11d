#pragma once
// Rounds the flow of an all-to-all to whole blocks on paths. Integers only. Host only.

#include <cstdint>
#include <vector>

#include "collectives/search/packing/exchange_flow.h"
#include "collectives/search/packing/packing_graph.h"
#include "collectives/search/packing/tree_packing.h"

namespace espalier::searched {

// The way of one block: the nodes from `origin` to `target`. All in between may be ranks.
struct PackedPath {
  std::uint32_t origin = 0, target = 0;
  std::uint32_t number = 0;  // among the paths of this pair
  std::vector<std::uint32_t> nodes;
};

struct PathPacking {
  PackingRate rate;  // every pair has rate.blocks paths; a link is in at most lanes * rate.steps
  std::vector<PackedPath> paths;  // by origin and target
};

// Returns paths whose rate is near that of the flow: the first number of blocks per pair for which
// it is at most 1 % slower than the flow, or the best of those tried. The same flow gives the same
// paths. Every origin in turn takes the cheapest flow of whole blocks beside those of all others,
// which are fractions at first. A block costs one per link, and more on a link that would then be
// busy for longer than rate.steps. While there are such links they get dearer, and all origins
// choose again. Requires ranks >= 2.
[[nodiscard]] PathPacking pack_paths(const PackingGraph& graph, const ExchangeFlow& flow);

}  // namespace espalier::searched
