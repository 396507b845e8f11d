#pragma once
// Connects the launcher to a Linux node on another host by a byte stream (firmware/node/stream.h).
// Host only.

#include "firmware/gateway/options.h"

namespace espalier::gateway {

// Runs options.node_command, and carries packets between the launcher and the node that the command
// starts. Returns the exit status: 0 the launcher ended the node; 1 a failure, which was reported
// to the launcher.
[[nodiscard]] int serve_remote(const GatewayOptions& options);

}  // namespace espalier::gateway
