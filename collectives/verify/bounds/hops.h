#pragma once
// Lower bounds on the steps of schedules whose every message goes one hop. Internal to
// collectives/verify.

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/verify/bounds/tree.h"

namespace espalier::verify {

// Maximum of links times cuts that are examined.
inline constexpr std::uint64_t kMaxCutWork = std::uint64_t{1} << 24;

// Returns the blocks that must cross from one side to the other, for N = 1 (cuts.cc).
[[nodiscard]] std::int64_t crossing(const Program& common, const Side& from, const Side& to);

// Returns the bounds of schedules whose peers are all neighbours, with S = L = 1. `tree`: the
// topology as a tree, if it is one.
[[nodiscard]] std::vector<LowerBound> hop_bounds(const topology::Topology& topology,
                                                 const Program& common, std::int64_t segment_count,
                                                 const std::optional<Tree>& tree);

}  // namespace espalier::verify
