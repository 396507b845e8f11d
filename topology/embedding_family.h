#pragma once
// Families of embeddings, and the texts of topology/embeddings, compiled in. Host only.

#include <span>
#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses a family of embeddings, one schedule's placements on many meshes, from an EmbeddingFamily
// (proto/embedding.proto) in text format. Returns its embeddings: one
// per mesh, and one per mesh for the reversed collective.
// Errors: an unknown entry, or nodes that are not all nodes of the mesh, each once.
[[nodiscard]] Result<std::vector<Embedding>> parse_family(std::string_view text);

struct KnownEmbedding {
  std::string_view name;  // of the file, without its extension
  std::string_view text;
};

extern const std::span<const KnownEmbedding> kKnownEmbeddings;
extern const std::span<const std::string_view> kKnownFamilies;  // for parse_family()

}  // namespace espalier::topology
