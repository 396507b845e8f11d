#pragma once
// The versions of the libraries that this process has, and which are newer than those tested. Host
// only.

#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/host.h"

namespace espalier::tools::doctor {

// A library and its version, for example "libfabric" and "2.1.0".
struct LibraryVersion {
  std::string name, version;
};

// Returns whether `version` comes after `other`: numbers between dots, compared one by one; what
// is missing counts as 0, and what follows the numbers does not count.
[[nodiscard]] bool is_newer(std::string_view version, std::string_view other);

// Returns one row with the versions. Its problem names those that are newer than the newest of the
// same name in `tested`; a name that is not there is not judged.
[[nodiscard]] HostFact versions_fact(const std::vector<LibraryVersion>& libraries,
                                     const std::vector<LibraryVersion>& tested);

// Returns the versions of the libraries that this process has loaded or can load, beside libfabric,
// whose version the node says.
[[nodiscard]] std::vector<LibraryVersion> library_versions();

// Returns the newest versions that all tests passed with (docs/results/releases.md).
[[nodiscard]] std::vector<LibraryVersion> newest_tested();

}  // namespace espalier::tools::doctor
