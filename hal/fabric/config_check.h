#pragma once
// Checks an endpoint's configuration before anything is opened.

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

// Messages per lane and direction, at most.
inline constexpr std::uint32_t kMaxRing = 64;

// Checks that the two parts of "mem+NAME" differ: NAME must be a provider between hosts.
[[nodiscard]] Result<void> check_parts(const std::string& provider);

// Whether the endpoint's links leave by cables, of which it may have none itself.
[[nodiscard]] bool has_cables(const AddedConfig& config);

// Errors: an endpoint of this configuration cannot exist.
[[nodiscard]] Result<void> check_config(const FixedConfig& config);
[[nodiscard]] Result<void> check_config(const AddedConfig& config);

}  // namespace espalier::ofi
