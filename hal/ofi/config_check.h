#pragma once
// Checks an endpoint's configuration before anything is opened.

#include <string>

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

// False and one line in `error` if an endpoint of this configuration cannot exist.
[[nodiscard]] bool check_config(const Config& config, std::string& error);

}  // namespace espalier::ofi
