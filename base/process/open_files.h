#pragma once
// The limit of open files. Host only.

#include <cstdint>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

// Files of a program itself that starts others, with some to spare.
inline constexpr std::uint64_t kOwnFiles = 16;

// Raises the limit of open files to `needed`, if it is lower. `what` needs them, e.g. "8 nodes".
// Error: the system allows fewer.
[[nodiscard]] Result<void> allow_open_files(std::uint64_t needed, const std::string& what);

// For libraries, which change no limit of their program: checks that this process can open `needed`
// more files. `what` needs them, e.g. "an endpoint over tcp".
// Error: the limit leaves fewer.
[[nodiscard]] Result<void> check_free_files(std::uint64_t needed, const std::string& what);

}  // namespace espalier
