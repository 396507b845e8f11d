#pragma once
// Chooses a libfabric provider by what it offers, and says why one cannot serve.

#include <rdma/fabric.h>

#include <string>

#include "espalier/base/result.h"

namespace espalier::ofi {

// Finds the provider that users call `name`, able to bind `local_address` (empty: the provider's
// default), with everything that this back end needs. The caller frees the value (fi_freeinfo).
// Error: the reason in one line, without the name.
[[nodiscard]] Result<fi_info*> find_provider(const std::string& name,
                                             const std::string& local_address);

}  // namespace espalier::ofi
