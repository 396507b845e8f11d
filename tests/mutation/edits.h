#pragma once
// Every single-field change of a program, from the schema's own list of fields.

#include <cstddef>
#include <string>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::mutation {

// One change. Each integer goes by +1, -1 and to 0, each enum to each other value. Each bool and
// each optional part is flipped. The first letter of each text changes. Each row of a table is
// removed, doubled, and swapped with the next. Each entry that terms look up goes by +1 and -1, and
// the first and the last of them are cut.
struct Edit {
  std::string field;   // "actions.after"
  std::string change;  // "row 2: 1 -> 2"
};

// The fields that are rank-local (all of them), or those that all ranks must agree on: the header,
// the block table, the phases and the claims.
enum class Scope { kRank, kShared };

// How many edits a program has; some change nothing (0 to 0).
[[nodiscard]] std::size_t count_edits(const Program& program, Scope scope);
// Makes edit `at` of `program`, at < count_edits. False if it changes nothing.
[[nodiscard]] bool make_edit(OwnedProgram& program, Scope scope, std::size_t at, Edit& edit);

}  // namespace espalier::mutation
