#pragma once
// Checks an endpoint's configuration before anything is opened.

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

// Errors: an endpoint of this configuration cannot exist.
[[nodiscard]] Result<void> check_config(const Config& config);

}  // namespace espalier::ofi
