#pragma once
// Schedules for what is left after the loss of a link or of a node (docs/spares.md). Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/loss.h"
#include "espalier/base/result.h"
#include "espalier/topology/topology.h"
#include "firmware/image/image_writer.h"
#include "planner/files/loaded_schedule.h"

namespace espalier::tools {

// The schedules for one loss, all proven, hop by hop on the links that are left.
struct Spare {
  Loss loss;
  planner::LoadedSchedule agreement;
  // For each schedule that was given: its own, or one without programs if its root was lost. The
  // spare without a loss has none: its schedules are the given ones.
  std::vector<planner::LoadedSchedule> schedules;
};

// All single losses of the topology: each link between ranks or routers, and each rank.
[[nodiscard]] std::vector<Loss> single_losses(const topology::Topology& topology, bool links,
                                              bool nodes);
// "link 3 - 4", "node 4".
[[nodiscard]] std::string loss_text(const Loss& loss);

// Returns what the loss leaves of the topology: the same nodes and links without it, shortest
// routes. Without a node, the others have the numbers of Loss::dense(). Error: what is left is not
// connected, or has fewer than two ranks.
[[nodiscard]] Result<std::unique_ptr<topology::Topology>> what_is_left(
    const topology::Topology& topology, const Loss& loss);

// Compiles and proves the schedules for the loss, or without one only an agreement of all nodes.
// `schedules` are hop by hop for `topology`. Each spare is by the same algorithm, or, where that is
// only for other topologies, by the collective's simplest one. Throws Failure (bad input): nothing
// does the collective on what is left.
[[nodiscard]] Spare make_spare(const topology::Topology& topology,
                               const std::vector<planner::LoadedSchedule>& schedules,
                               const Loss& loss);

// Returns the descriptor of a schedule's node, as images have it. Throws Failure (bad input): the
// schedule file is corrupt.
[[nodiscard]] ImageContent::Descriptor image_descriptor(const planner::LoadedSchedule& schedule,
                                                        std::uint32_t node);
// Returns what replaces the programs of `schedules` in the image of `node`, which is not the lost
// one, and adds the nodes to which these need links to `peers`. Throws as image_descriptor().
[[nodiscard]] ImageContent::SpareDescriptors image_spare(
    const std::vector<planner::LoadedSchedule>& schedules, const Spare& spare, std::uint32_t node,
    std::vector<std::uint32_t>& peers);

}  // namespace espalier::tools
