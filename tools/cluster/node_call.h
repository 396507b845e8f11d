#pragma once
// Asking espalier-node, which alone is linked with libfabric: that is slow to start. Host only.

#include <string>

#include "hal/fabric/provider_list.h"

namespace espalier::tools {

// Returns the espalier-node to start: `given`, or if `given` is empty the node of this program
// (beside it when installed, in firmware/node in a build directory). Throws Failure (bad input) if
// there is none.
[[nodiscard]] std::string find_node_binary(const std::string& given);

// Returns why `espalier-node --check` refuses this provider; empty if it takes it.
[[nodiscard]] std::string node_refusal(const std::string& node_binary, const std::string& provider);

// Returns what `espalier-node --providers` prints. Throws Failure (negative) if it fails.
[[nodiscard]] ofi::ProviderList node_providers(const std::string& node_binary);

}  // namespace espalier::tools
