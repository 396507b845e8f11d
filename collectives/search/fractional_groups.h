#pragma once
// Fractional trees laid out group by group, for networks that are not complete graphs. Host only.
// The tree is described in [Sanders03], section 3; fractional_tree.h computes the same tree one
// rank at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/search/streams.h"

namespace espalier::searched {

inline constexpr std::uint32_t kNoGroup = 0xffffffffu;

struct FractionalGroup {
  std::vector<std::uint32_t> ranks;  // the chain, head first; only a full group has successors
  std::int32_t arrival = -1;         // step in which the head gets block 0; -1: it is the source
  std::uint32_t down = kNoGroup, right = kNoGroup;  // indices of groups in the forest
};

struct FractionalForest {
  std::uint32_t run_length = 1;  // r
  std::vector<FractionalGroup> groups;

  // Adds a group without successors; returns its index.
  std::uint32_t add_group(std::span<const std::uint32_t> ranks, std::int32_t arrival);
  // Adds the fractional tree of least depth for all these ranks, at least one; the first is its
  // head. Returns the index of its first group.
  std::uint32_t add_tree(std::span<const std::uint32_t> ranks, std::int32_t arrival);
  // Make group `position` the down (right) successor of a full group.
  void set_down(std::uint32_t group, std::uint32_t position) { groups[group].down = position; }
  void set_right(std::uint32_t group, std::uint32_t position) { groups[group].right = position; }
  // The step in which the head of a group's down (right) successor gets block 0.
  [[nodiscard]] std::int32_t down_arrival(std::uint32_t group) const {
    return groups[group].arrival + static_cast<std::int32_t>(run_length);
  }
  [[nodiscard]] std::int32_t right_arrival(std::uint32_t group) const {
    return down_arrival(group) + 1;
  }

  // 1 + the step in which the last rank gets block 0.
  [[nodiscard]] std::uint32_t depth() const;
  // Returns the broadcast down the forest, which must be one tree: depth() - 1 + N + ceil(N/r) - 1
  // steps. Reversed in time it has the same number of steps. A rank whose block 0 arrives in step A
  // gets block j of a run in step A + j. It therefore sends block j of the reversed run j steps
  // after block 0.
  [[nodiscard]] Broadcast broadcast(const Outline& outline) const;
};

}  // namespace espalier::searched
