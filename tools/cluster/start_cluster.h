#pragma once
// Starting nodes, for every command that does. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cluster/launcher.h"
#include "tools/common/command_line.h"

namespace espalier::tools {

// Adds --provider, --deadline and --node-binary. Empties options.provider: find_node() sets it if
// the user does not.
void add_node_options(Command command, cluster::LaunchOptions& options);
// Adds --launch-prefix and --address.
void add_place_options(Command command, cluster::LaunchOptions& options);

// Completes `options.node_binary` (find_node_binary()) and `options.provider`
// (ofi::choose_provider() with FI_PROVIDER). Throws Failure (bad input) if there is no such node,
// if FI_PROVIDER contradicts the provider, or if the provider cannot serve; only providers other
// than tcp and mem are tried.
void find_node(cluster::LaunchOptions& options);

// Throws Failure (bad input) if options.address, expanded for each node, is not a numeric IP, or if
// processes start on this host (no prefix and no commands) and it is not an address of the host.
void check_addresses(const cluster::LaunchOptions& options);

// Adds "NODE@MS" to launch.disturbances. False: it is not that, or there is no such node.
[[nodiscard]] bool parse_disturbance(const std::string& text, int signal,
                                     cluster::LaunchOptions& launch);

// Starts the cluster with the bytes of these schedule files. The nodes inherit them as files in
// memory. Throws Failure if a node does not start; bad input if this system refuses
// (NodeProcesses::is_refused()).
void start_cluster(cluster::LaunchOptions options,
                   const std::vector<std::vector<std::uint8_t>>& schedules,
                   cluster::NodeProcesses& cluster);

}  // namespace espalier::tools
