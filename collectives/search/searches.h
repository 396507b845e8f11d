#pragma once
// The rows of the searches: each stands at the end of its search's file, which has steps, cost and
// source at its top. searched.cc joins them; within a collective, `espalier list` and `auto` keep
// the order in which it does.

#include <cstdint>

#include "espalier/collectives/search.h"

namespace espalier::searched {

// A row: the fields that each row has, and by their names in `rest` those that only some have.
constexpr SearchedAlgorithm row(const char* name, Collective collective, Search* searcher,
                                const char* summary, SearchedAlgorithm rest = {}) {
  rest.name = name, rest.collective = collective;
  rest.searcher = searcher, rest.summary = summary;
  return rest;
}

extern const SearchedAlgorithm kDoubleFibonacciRows[2], kFractionalDirectRows[2],
    kFractionalMeshRows[2], kCrossbarRows[4], kMeshBalancedRows[1], kAllPortRows[3],
    kLeafOverlappedRows[1], kLeafSingleRows[1], kLeafFloodRows[1], kLeafMultinodeRows[1],
    kInNetworkRows[6], kPackedTreesRows[5], kPackedPathsRows[1], kBreadthFirstRows[4],
    kTimeExpandedRows[2];

inline bool on_mesh(const topology::Topology& topology) { return topology.shape().rows > 0; }
inline bool on_fat_tree(const topology::Topology& topology) { return topology.shape().height > 0; }

// packed_trees.cc: any topology of at most kMaxPackedNodes nodes, or kMaxPackedRoots if every rank
// is a root, with at most kMaxPackedLinks links per node (more have no room in programs).
inline constexpr std::uint32_t kMaxPackedNodes = 256, kMaxPackedRoots = 64;
inline constexpr std::uint32_t kMaxPackedLinks = 16;
[[nodiscard]] bool can_pack_one_root(const topology::Topology& topology);
[[nodiscard]] bool can_pack_all_roots(const topology::Topology& topology);

}  // namespace espalier::searched
