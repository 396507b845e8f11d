#pragma once
// The file with the job secret. Host only.

#include <string>

#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// Returns the job secret in a file of mode 0600. Errors: it cannot be read, is not a regular file,
// is another user's or can be read by others, or has fewer than 32 or more than 4096 bytes.
[[nodiscard]] Result<JobSecret> read_secret(const std::string& path);

}  // namespace espalier::bootstrap
