#pragma once
// The limit of a file's size (ulimit -f). A write beyond it ends the process by SIGXFSZ, unless the
// signal is handled; memory that processes share counts as a file. Host only.

#include <cstdint>
#include <string>

namespace espalier {

// Returns the largest size that this process may give a file, in bytes; UINT64_MAX: any.
[[nodiscard]] std::uint64_t max_file_bytes();

// "a file-size limit of 1024000 bytes (ulimit -f)"
[[nodiscard]] std::string file_limit_text();

// For programs: lets a write beyond the limit fail with EFBIG. Programs that this one executes get
// the signal as before.
void fail_beyond_file_limit();

}  // namespace espalier
