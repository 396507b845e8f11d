#pragma once
// Embeddings: placements of a routed schedule's ranks on a topology under which its links suffice.
// Host only. Files: proto/embedding.proto, docs/embeddings.md. The files in topology/embeddings are
// compiled in.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/switching.h"
#include "espalier/topology/topology.h"

namespace espalier::topology {

// A placement for one topology, collective and algorithm: the content of an embedding file.
struct Embedding {
  // A node of the binary tree that the groups of a fractional tree form.
  struct TreeGroup {
    std::uint32_t parent = 0;
    bool is_right = false;  // right successor of the parent, otherwise its down successor
  };

  std::string name;                             // used in messages
  std::string topology, collective, algorithm;  // the specifications
  std::uint32_t run_length = 0;  // run length r of a fractional tree; 0: not a fractional tree
  Switching switching = Switching::kCutThrough;
  // Virtual rank -> rank of the topology; virtual rank 0 is the root.
  std::vector<std::uint32_t> node_of;
  std::vector<TreeGroup> groups;  // only for fractional-mesh; parents before children
  std::string found_by;           // the command that found it
};

// Parses text format. An error is "NAME:LINE: ...".
// Errors: an unknown entry, an invalid topology, nodes that do not list each rank exactly once, or
// groups that do not form a binary tree.
[[nodiscard]] Result<Embedding> parse_embedding(std::string_view text, const std::string& name);
// Reads and parses the file at `path`.
[[nodiscard]] Result<Embedding> read_embedding(const std::string& path);
// Returns text that parses as an equal embedding.
[[nodiscard]] std::string write_embedding(const Embedding& embedding);

// Returns the embedding of `collective`, which is the own one reversed in time, on the mesh with
// rows and columns exchanged. Reversed XY routes are YX routes, which the exchange makes XY routes
// again, so the links carry as much per slot as before. Requires a mesh. The name stays as it is.
[[nodiscard]] Embedding reversed(Embedding embedding, const std::string& collective);

// known_embeddings() returns the names of the files in topology/embeddings, and of the embeddings
// that follow from them by reversed(). known_embedding() returns one of them, or nothing if none
// has this name.
[[nodiscard]] std::vector<std::string> known_embeddings();
[[nodiscard]] std::optional<Embedding> known_embedding(const std::string& name);

// A request for the best known embedding of this topology, collective, algorithm and root.
// `run_length` 0 accepts any run length. An empty `root` accepts any root (collectives without
// one). `switching` is a preference.
struct Wanted {
  std::string collective, algorithm;
  std::uint32_t run_length = 0;
  std::optional<std::uint32_t> root;
  Switching switching = Switching::kCutThrough;
};
// Returns the best known embedding, preferably one for wanted.switching, otherwise one for the
// other kind of switching. On a mesh the mirror images of each known embedding are candidates too.
// Nothing if none fits.
[[nodiscard]] std::optional<Embedding> best_embedding(const Topology& topology,
                                                      const Wanted& wanted);

// Returns the snake: an order of the ranks in which consecutive ranks are neighbours on the mesh,
// beginning at `root`. If the number of rows or columns is even and the mesh has at least two of
// each, the snake is a ring around the whole mesh. Otherwise it winds along the rows from a corner.
// Nothing if the topology is not a mesh, or the root admits no such order. collective and algorithm
// are left empty, because the snake serves any chain or ring.
[[nodiscard]] std::optional<Embedding> snake(const Topology& topology, std::uint32_t root);

// Returns the Z-order (Morton order) of a mesh whose rows and columns are powers of two: the binary
// digits of a rank are those of its column and its row in turn, lowest first. Partners of a
// butterfly are then adjacent in the first two steps, two apart in the next two, and so on. Nothing
// for other topologies. collective and algorithm are left empty.
[[nodiscard]] std::optional<Embedding> z_order(const Topology& topology);

}  // namespace espalier::topology
