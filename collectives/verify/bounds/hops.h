#pragma once
// Lower bounds on the steps of schedules whose every message goes one hop. Internal to
// collectives/verify.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/verify/bounds/tree.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// Maximum of links times cuts that are examined.
inline constexpr std::uint64_t kMaxCutWork = std::uint64_t{1} << 24;

// Returns the blocks that must cross from one side to the other, for N = 1 (cuts.cc).
[[nodiscard]] std::int64_t crossing(const Program& common, const Side& from, const Side& to);

// Returns the cut from the nodes `inside` to the others (cuts.cc).
[[nodiscard]] Witness cut_of(const std::vector<bool>& inside);
// Whether flows can find greater cuts than those of single ports, nodes and links (cuts.cc).
[[nodiscard]] bool profits_from_flows(const Program& common);
inline constexpr char kFlowsEnded[] =
    "the flows for the greatest cut need more operations than a proof may take; the cuts found "
    "before are taken";

// Returns the bounds of schedules whose peers are all neighbours, with S = L = 1. `tree`: the
// topology as a tree, if it is one. Sets `limited` if the search ended early.
[[nodiscard]] std::vector<LowerBound> hop_bounds(const topology::Topology& topology,
                                                 const Program& common, std::int64_t segment_count,
                                                 const std::optional<Tree>& tree,
                                                 std::string& limited);
// Adds to `found` the greatest distance of two ranks one of which needs data of the other, for any
// ticks (distances.cc).
void add_distances(const topology::Topology& topology, const Program& common, std::string& limited,
                   std::vector<LowerBound>& found);

}  // namespace espalier::verify
