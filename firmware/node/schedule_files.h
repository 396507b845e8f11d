#pragma once
// The programs of a Linux node, loaded from schedule files. Host only.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/limits.h"
#include "espalier/collectives/schedule/programs.h"
#include "firmware/node/boot_options.h"

namespace espalier::node {

// A node's programs, each decoded once.
struct Programs {
  // They own their tables: a file may be overwritten while its node runs.
  std::array<OwnedProgram, kMaxPrograms> programs;
  std::uint32_t count = 0;
  // Every node that any program has a link to, ascending; of an image, the peers of its link table
  // in the table's order.
  std::vector<std::uint32_t> peers;
  std::vector<std::string> sources;  // the file of each program, for messages
};

// Loads the descriptor of `node` from every schedule file of `options`.
// Errors: a file cannot be read, is truncated or corrupt, is for another topology, or has a program
// beyond this node's limits. `programs` must then not be used.
[[nodiscard]] Result<void> load_programs(const BootOptions& options, std::uint32_t node,
                                         Programs& programs);

}  // namespace espalier::node
