#pragma once
// Starting nodes, for every command that does. Host only.

#include <cstdint>
#include <vector>

#include "tools/launch/launcher.h"

namespace espalier::tools {

// Completes `options.node_binary`, the espalier-node to start: where it is empty the one that
// belongs to this program (beside it when installed, in firmware/node in a build directory). Throws
// Failure (bad input), also where that one knows no such provider as `options` name: tcp and shm it
// does.
void find_node(launch::LaunchOptions& options);

// Throws Failure (bad input) if options.address, expanded for each node, is not a numeric IP, or if
// processes start on this host (no prefix and no commands) and it is not an address of the host.
void check_addresses(const launch::LaunchOptions& options);

// Starts the cluster with the bytes of these schedule files. The nodes inherit them as files in
// memory. Throws Failure if a node does not start.
void start_cluster(launch::LaunchOptions options,
                   const std::vector<std::vector<std::uint8_t>>& schedules,
                   launch::NodeProcesses& cluster);

}  // namespace espalier::tools
