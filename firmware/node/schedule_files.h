#pragma once
// The programs of a Linux node, loaded from schedule files. Host only.

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "espalier/base/limits.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/programs.h"
#include "firmware/image/image.h"
#include "firmware/node/boot_options.h"

namespace espalier::node {

// The programs of a Linux node, from its image or from schedule files.
struct Programs : NodePrograms {
  Programs() {
    programs = program_room.data();
    selections = selection_room.data();
  }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  std::array<DecodedProgram, kMaxPrograms> program_room;
  std::array<NodeSelection, kMaxSelections> selection_room = {};
  // What the programs read their tables in: a file may be overwritten while its node runs.
  std::deque<std::string> contents;
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
