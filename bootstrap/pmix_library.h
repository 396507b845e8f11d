#pragma once
// Where the client library of PMIx is looked for. Host only.

namespace espalier::bootstrap {

// Debian keeps the library in a folder of its own.
inline constexpr const char* kPmixLibraries[] = {
    "libpmix.so.2", "/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so.2",
    "/usr/lib/aarch64-linux-gnu/pmix2/lib/libpmix.so.2"};

}  // namespace espalier::bootstrap
