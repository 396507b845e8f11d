#pragma once
// The programs of a node, and which of them serves a call. Freestanding.

#include <cstdint>

#include "collectives/schedule/selection.h"
#include "espalier/internal/base/limits.h"

namespace espalier {

#if ESPALIER_MAX_SELECTIONS > 0
// A selection of a node, and which of the node's programs it chooses from.
struct NodeSelection : Selected {
  std::uint32_t first_program = 0;  // of schedule 0; the others follow
};
#endif

// A node's programs and selections, each decoded once, in memory of the node.
struct NodePrograms {
  DecodedProgram* programs = nullptr;
  std::uint32_t count = 0;  // of `programs`
#if ESPALIER_MAX_SELECTIONS > 0
  NodeSelection* selections = nullptr;
  std::uint32_t selections_count = 0;
#endif
#if ESPALIER_SPARES
  // The digests by which calls name the programs, also after spares took their places; null: those
  // of the programs.
  const std::uint64_t* schedules = nullptr;
#endif
};

// The operator and the size of a call.
struct CallSize {
  bool commutes = true;  // the operator
#if ESPALIER_MAX_SELECTIONS > 0
  ElementCounts counts = 0;
  std::uint32_t element_bytes = 0;
#endif
};
// A call names its programs in one of two ways. By the digest of a schedule or of a selection:
struct CallBySchedule : CallSize {
  std::uint64_t schedule = 0;
  [[nodiscard]] bool is_for(const Program&, std::uint64_t digest) const {
    return digest == schedule;
  }
};
// By collective and root, which is 0 if the collective has none:
struct CallByRoot : CallSize {
  std::uint32_t collective = 0;  // its number, or any other one
  std::uint32_t root = 0;
  [[nodiscard]] bool is_for(const Program& program, std::uint64_t) const {
    return static_cast<std::uint32_t>(program.collective) == collective && program.root == root;
  }
};

// Whether the program needs an operator that commutes, and this one does not.
[[nodiscard]] inline bool breaks_order(const Program& program, bool commutes) {
  return program.needs_commutative && !commutes;
}

// Finds the program that serves a call. All nodes that have programs of the same schedules give the
// same answer, also those that combine nothing:
//  * A selection that is for the call decides alone, by its row for the size and the operator.
//  * Otherwise it is the first program that is for the call. If the operator does not commute, it
//    is the first of those that keep the order of ranks.
// kBadArgument: nothing is for the call. kBadOperator: the operator does not commute, and nothing
// that is for the call keeps the order of ranks.
template <typename Call>
[[nodiscard]] inline Status find_program(const NodePrograms& node, const Call& call,
                                         const DecodedProgram*& found) {
#if ESPALIER_MAX_SELECTIONS > 0
  for (std::uint32_t i = 0; i < node.selections_count; ++i) {
    const NodeSelection& selection = node.selections[i];
    if (!call.is_for(node.programs[selection.first_program], selection.digest)) continue;
    const std::uint64_t bytes = started_bytes(call.counts, call.element_bytes);
    const SelectionRow* const row = find_row(selection.table, bytes, call.commutes);
    if (row == nullptr) return Status::kBadOperator;
    found = node.programs + selection.first_program + row->program;
    return Status::kOk;
  }
#endif
  Status status = Status::kBadArgument;
  const DecodedProgram* program = node.programs;
  for (std::uint32_t i = 0; i < node.count; ++i, ++program) {
    std::uint64_t digest = program->schedule_digest;
#if ESPALIER_SPARES
    if (node.schedules != nullptr) digest = node.schedules[i];
#endif
    if (!call.is_for(*program, digest)) continue;
    if (!breaks_order(*program, call.commutes)) {
      found = program;
      return Status::kOk;
    }
    status = Status::kBadOperator;
  }
  return status;
}

}  // namespace espalier
