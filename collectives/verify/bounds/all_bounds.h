#pragma once
// Lower bounds on the steps of any schedule of a collective: by ports, log p and messages, by
// flows, by hops and by links. Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/verify/bounds/tree.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Lower bounds, and why greater ones may exist that were not searched (empty: the search was
// complete).
struct KnownBounds {
  std::vector<LowerBound> all;
  std::string limited;
};
// Returns all lower bounds that apply, at least one.
[[nodiscard]] KnownBounds all_bounds(const topology::Topology& topology, const Program& common,
                                     const BoundFacts& facts);
// Returns the bounds for a verdict: of several with the same formula only the first.
[[nodiscard]] std::vector<LowerBound> describe(const std::vector<LowerBound>& all);

// The cuts of a topology that limit a collective's rate most, by maximum flows.

// Arcs that all flows of one topology may examine. On mesh:32x32 that is 3 ms; a proof takes 70.
inline constexpr std::int64_t kMaxFlowWork = std::int64_t{1} << 20;

struct FlowCuts {
  std::vector<std::vector<bool>> insides;  // each cut: the nodes from which blocks cross, by node
  bool complete = true;                    // the last cut is the greatest for the rate
};

// Returns cuts, each with a greater rate than the one before. Any cut proves a bound, so nothing
// else relies on the flows. `by_senders`: a node passes on one message per step, as if its links
// were one of capacity 1.
[[nodiscard]] FlowCuts flow_cuts(const topology::Topology& topology, const Program& common,
                                 bool by_senders, std::int64_t work = kMaxFlowWork);

// Lower bounds on the steps of schedules whose every message goes one hop: maximum of links times
// cuts that are examined.
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

// Adds the bounds by links to `known`: blocks that must cross a cut of the topology.
void add_cuts(const topology::Topology& topology, const Program& common, const BoundFacts& facts,
              KnownBounds& known);

}  // namespace espalier::verify
