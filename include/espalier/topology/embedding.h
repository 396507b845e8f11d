#pragma once
// Embeddings: where the ranks of a direct schedule stand on a topology, so that its links suffice.
// Host only. Files: proto/embedding.proto, docs/embeddings.md; those under topology/embeddings are
// compiled in.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// How a block passes the nodes on its way.
enum class Hops : std::uint8_t {
  kCutThrough,       // it holds its whole path for the one step
  kStoreAndForward,  // each hop is a step of its own, when there is room
};

struct Embedding {
  // A node of the binary tree of a fractional tree's groups.
  struct Group {
    std::uint32_t parent = 0;
    bool is_right = false;  // the parent's right successor, else the one below
  };

  std::string name;                             // what messages call it
  std::string topology, collective, algorithm;  // as they are specified
  std::uint32_t run = 0;                        // r of a fractional tree; 0: it has none
  Hops hops = Hops::kCutThrough;
  std::vector<std::uint32_t> node_of;  // virtual rank -> rank of the topology; 0 is the root
  std::vector<Group> groups;           // fractional-mesh: parents before children, else empty
  std::string found_by;                // a command
};

// Reads text format. Null and one line in `error`, "NAME:LINE: ...", if it is none: an unknown
// entry, a topology that is none, nodes that are not the topology's ranks once each, groups that
// are no binary tree.
[[nodiscard]] std::optional<Embedding> parse_embedding(std::string_view text,
                                                       const std::string& name, std::string& error);
// The same of the file at `path`.
[[nodiscard]] std::optional<Embedding> read_embedding(const std::string& path, std::string& error);
// Text that reads as the same.
[[nodiscard]] std::string write_embedding(const Embedding& embedding);

// The names of those of topology/embeddings, and one of them; nothing if there is none of the name.
[[nodiscard]] std::vector<std::string> known_embeddings();
[[nodiscard]] std::optional<Embedding> known_embedding(const std::string& name);

// The best known for this (topology, collective, algorithm, root): one for `hops`, else one for the
// other; `run` 0: of any run. On a mesh the mirror images of one known are known. The root does not
// matter where the collective has none. Nothing if none is.
struct Wanted {
  std::string collective, algorithm;
  std::uint32_t run = 0;
  std::optional<std::uint32_t> root;
  Hops hops = Hops::kCutThrough;
};
[[nodiscard]] std::optional<Embedding> best_embedding(const Topology& topology,
                                                      const Wanted& wanted);

// The snake: every rank next to the one before it, from `root` on round a ring of the whole mesh
// where its rows or columns are even in number (or one), else along the rows from a corner. Nothing
// if this is no mesh, or there is no such way from that root. The collective and algorithm are left
// empty: it is for any chain or ring.
[[nodiscard]] std::optional<Embedding> snake(const Topology& topology, std::uint32_t root);

}  // namespace espalier::topology
