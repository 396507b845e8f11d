#pragma once
// Families of embeddings: one schedule's placements on many meshes. Host only.

#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses an EmbeddingFamily (proto/embedding.proto) in text format, and returns its embeddings: one
// per mesh, and one per mesh for the reversed collective.
// Errors: an unknown entry, or nodes that are not all nodes of the mesh, each once.
[[nodiscard]] Result<std::vector<Embedding>> parse_family(std::string_view text);

}  // namespace espalier::topology
