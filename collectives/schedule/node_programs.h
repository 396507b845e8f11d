#pragma once
// The programs of a node, and which of them serves a call. Freestanding.

#include <cstdint>

#include "espalier/base/limits.h"
#include "espalier/collectives/schedule/selection.h"

namespace espalier {

#if ESPALIER_MAX_SELECTIONS > 0
// A selection of a node, and which of the node's programs it chooses from.
struct NodeSelection : Selected {
  std::uint32_t first_program = 0;  // of schedule 0; the others follow
};
#endif

// A node's programs and selections, each decoded once. The memory belongs to the node.
struct NodePrograms {
  DecodedProgram* programs = nullptr;
  std::uint32_t count = 0;  // of `programs`
#if ESPALIER_MAX_SELECTIONS > 0
  NodeSelection* selections = nullptr;
  std::uint32_t selections_count = 0;
#endif
};

}  // namespace espalier
