#pragma once
// Lower bounds on the steps of schedules whose every message goes one hop. Internal to
// collectives/verify.

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/verify/bounds/lower_bounds.h"
#include "collectives/verify/bounds/tree.h"

namespace espalier::verify {

// So many links times cuts are looked at.
inline constexpr std::uint64_t kMaxCutWork = std::uint64_t{1} << 24;

// Blocks that cross from one side to the other, for N = 1 (cuts.cc).
[[nodiscard]] std::int64_t crossing(const Program& common, const Side& from, const Side& to);

// Where all peers of all nodes are neighbours, S = L = 1. `tree`: the topology's, if it is one.
[[nodiscard]] std::vector<LowerBound> hop_bounds(const topology::Topology& topology,
                                                 const Program& common, std::int64_t run,
                                                 const std::optional<Tree>& tree);

}  // namespace espalier::verify
