#pragma once
// The texts of topology/embeddings, compiled in. Host only.

#include <span>
#include <string_view>

namespace espalier::topology {

struct KnownEmbedding {
  std::string_view name;  // of the file, without its extension
  std::string_view text;
};

extern const std::span<const KnownEmbedding> kKnownEmbeddings;
extern const std::span<const std::string_view> kKnownFamilies;  // embedding_family.h reads them

}  // namespace espalier::topology
