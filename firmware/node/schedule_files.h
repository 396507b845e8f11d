#pragma once
// The programs of a Linux node, loaded from schedule files. Host only.

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "collectives/schedule/node_programs.h"
#include "espalier/base/result.h"
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

// Loads the descriptor of `node` from every schedule file of `options`, and all that selections
// have for it. Errors: a file cannot be read, is truncated or corrupt, is for another topology, or
// has a program beyond this node's limits. `programs` must then not be used.
[[nodiscard]] Result<void> load_programs(const BootOptions& options, std::uint32_t node,
                                         Programs& programs);

}  // namespace espalier::node
