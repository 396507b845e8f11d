#pragma once
// The loader of a node's programs from its image. Freestanding.

#include "collectives/schedule/node_programs.h"
#include "espalier/internal/base/assert.h"
#include "firmware/image/image.h"

namespace espalier {

#if ESPALIER_SPARES
// Decodes the programs of all spares, each into the same memory.
inline Status check_spares(const Image& image, DecodedProgram& memory) {
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    for (std::uint32_t which = 0; which <= image.programs; ++which) {
      const Status status = image.load_spare(i, which, memory);
      const bool has_lost_root = which != 0 && status == Status::kUnsupported;
      if (status != Status::kOk && !has_lost_root) return status;
    }
  }
  return Status::kOk;
}
#endif

// Decodes every program, selection and spare of the image. The node has room for all that a checked
// image may have. An image is accepted only if this succeeds; after an error the node has no
// programs.
inline Status load_all(const Image& image, NodePrograms& node) {
  node.count = 0;
#if ESPALIER_SPARES
  const Status checked = check_spares(image, node.programs[0]);
  if (checked != Status::kOk) return checked;
#endif
  ESPALIER_ASSERT(image.programs >= 1 && image.programs <= kMaxPrograms);
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const Status status = image.load(i, node.programs[i]);
    if (status != Status::kOk) return status;
  }
#if ESPALIER_MAX_SELECTIONS > 0
  for (std::uint32_t i = 0; i < image.selections; ++i) {
    const Status status = image.load_selection(i, node.programs, node.selections[i]);
    if (status != Status::kOk) return status;
  }
  node.selections_count = image.selections;
#endif
  node.count = image.programs;
  return Status::kOk;
}

// The same as an Acceptance of slots: `node` is the NodePrograms of the node that boots.
inline Status accept_loaded(void* node, const Image& image) {
  return load_all(image, *static_cast<NodePrograms*>(node));
}

}  // namespace espalier
