#pragma once
// Reads whole files. Host only.

#include <cstddef>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

// More than any input has: schedules, images, models, traces. A file without an end, such as
// /dev/zero, is refused there.
inline constexpr std::size_t kMaxFileBytes = std::size_t{512} << 20;

// Returns the bytes of the file at `path`, or of the pipe or device. Reads at most
// max_bytes + 1 bytes.
// Errors, "cannot read 'PATH': REASON": no such file, no permission, a folder, more than max_bytes,
// a pipe that no process writes to within 10 s.
[[nodiscard]] Result<std::string> read_file(const std::string& path,
                                            std::size_t max_bytes = kMaxFileBytes);

}  // namespace espalier
