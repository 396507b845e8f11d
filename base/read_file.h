#pragma once
// Reads whole files. Host only.

#include <cstddef>
#include <limits>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

// Returns the bytes of the file at `path`, or of the pipe or device. Reads at most
// max_bytes + 1 bytes.
// Errors, "cannot read 'PATH': REASON": no such file, no permission, a folder, more than max_bytes.
[[nodiscard]] Result<std::string> read_file(
    const std::string& path, std::size_t max_bytes = std::numeric_limits<std::size_t>::max() - 1);

}  // namespace espalier
