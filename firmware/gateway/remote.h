#pragma once
// A Linux node of another host, reached by a byte stream (firmware/node/stream.h). Host only.

#include "firmware/gateway/options.h"

namespace espalier::gateway {

// Runs options.node_command and carries the launcher's packets to the node that it starts and back.
// The exit status: 0 told to end, 1 a failure, of which the launcher was told.
[[nodiscard]] int join_remote(const Options& options);

}  // namespace espalier::gateway
