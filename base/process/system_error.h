#pragma once
// Errors of system calls, with the limit of this process that explains them. Host only.

#include <string>

namespace espalier {

// Returns strerror(error), followed by the limit if this process has one:
// "Cannot allocate memory; an address-space limit of 20480000 bytes (ulimit -v)". EFBIG has
// ulimit -f, EMFILE ulimit -n, ENOMEM ulimit -v. EAGAIN must come from a new process or thread; it
// has ulimit -v, otherwise ulimit -u.
[[nodiscard]] std::string system_error_text(int error);

// Returns only what follows strerror(error): "; an address-space limit ...", or nothing.
[[nodiscard]] std::string limit_suffix(int error);

}  // namespace espalier
