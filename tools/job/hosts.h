#pragma once
// The hosts of a job and the ranks that each one gets. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::job {

struct Host {
  std::string name;         // empty: this host
  std::uint32_t slots = 0;  // ranks that it may get; 0: no limit
  std::uint32_t first = 0;  // its ranks are first .. first + count - 1
  std::uint32_t count = 0;
};

// Reads a file of lines `HOST [slots=N]`; without slots one. # begins a comment.
// Errors: the system's reason; file and line of the first malformed line.
[[nodiscard]] Result<std::vector<Host>> read_hostfile(const std::string& path);

// Gives `ranks` ranks to the hosts: by slots, in the order of the hosts; to hosts without limits in
// blocks whose sizes differ by at most one. Hosts without a rank are removed.
// Errors: a name that is malformed or repeated; too few slots.
[[nodiscard]] Result<std::vector<Host>> place(std::vector<Host> hosts, std::uint32_t ranks);

}  // namespace espalier::job
