#pragma once
// The programs of a Linux node, loaded from schedule files. Host only.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/limits.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/programs.h"
#include "firmware/image/image.h"
#include "firmware/node/boot_options.h"

namespace espalier::node {

// A node's programs, each decoded once.
struct Programs {
  // They own their tables: a file may be overwritten while its node runs.
  std::array<OwnedProgram, kMaxPrograms> programs;
  std::uint32_t count = 0;
  std::vector<NodeSelection> selections;
  // Every node that any program has a link to, ascending; of an image, the peers of its link table
  // in the table's order.
  std::vector<std::uint32_t> peers;
  std::vector<std::string> sources;  // the file of each program, for messages
};

// Finds the program for a collective of `counts` elements: of the schedule with this digest, or, if
// it is the digest of a selection, of the schedule that the selection chooses. `index` is the
// program's. kBadArgument: there is none. kBadOperator: the selection has no row for the operator.
[[nodiscard]] Status find_program(const Programs& programs, std::uint64_t digest,
                                  ElementCounts counts, const Operator& op, std::uint32_t& index);

// Loads the descriptor of `node` from every schedule file of `options`, and all that selections
// have for it. Errors: a file cannot be read, is truncated or corrupt, is for another topology, or
// has a program beyond this node's limits. `programs` must then not be used.
[[nodiscard]] Result<void> load_programs(const BootOptions& options, std::uint32_t node,
                                         Programs& programs);

}  // namespace espalier::node
