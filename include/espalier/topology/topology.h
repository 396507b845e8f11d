#pragma once
// Topologies: nodes, directed links with capacities, routes, digest. Embeddings: placements of the
// ranks of a routed schedule on a topology under which its links suffice. The format of embedding
// files is in proto/embedding.proto; those in topology/embeddings are compiled in. Host only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/internal/base/switching.h"

namespace espalier::topology {

// What a link is made of: a model (collectives/predict) has a cost for each class.
enum class LinkClass : std::uint8_t {
  kFabric = 0,  // a network between hosts
  kOnChip = 1,  // a network on a chip, or wires between neighbouring chips
  kMemory = 2,  // memory that both ends map
  kSerial = 3,  // framed messages over a serial line
};
// kLinkClasses: the number of classes. link_class_name() returns "fabric", "on-chip", "memory" or
// "serial".
inline constexpr std::uint32_t kLinkClasses = 4;
[[nodiscard]] const char* link_class_name(LinkClass link_class);

// A directed link from one node to another.
struct Link {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t capacity = 1;  // lanes: blocks per step
};

// The parameters of the built-in families, for algorithms made for one of them. Parameters of
// other families are 0 and empty.
struct Shape {
  // fat tree: arity is the number of children of every router, 0 if it differs between levels
  std::uint32_t arity = 0, height = 0;
  // fat tree: children of a router, and lanes of its branches, of level 1 .. height
  std::vector<std::uint32_t> arities = {}, capacities = {};
  std::uint32_t rows = 0, columns = 0;  // mesh:RxC
  // mesh, torus, ring: the ranks in each dimension, the one with the greatest strides first; wraps:
  // the lines along each dimension are rings
  std::vector<std::uint32_t> grid = {};
  bool wraps = false;
  std::uint32_t hypercube = 0;  // its dimensions
  // hierarchical crossbar: the modules, the modules of each, ..., the ranks of each innermost one;
  // the channels into and out of the modules of each level, outermost first
  std::vector<std::uint32_t> crossbar = {}, channels_in = {}, channels_out = {};
  std::uint32_t hosts = 0, host_ranks = 0;  // hosts, and the ranks of each
};

// Nodes 0 .. ranks-1 are ranks, ranks .. nodes-1 are routers.
class Topology {
 public:
  virtual ~Topology() = default;
  // The canonical specification, e.g. "mesh:4x4": parse(spec()) gives the same topology.
  [[nodiscard]] virtual std::string spec() const = 0;
  // The name in messages and pictures: the specification, or a custom topology's name.
  [[nodiscard]] virtual std::string title() const { return spec(); }
  // ranks() returns the number of ranks, nodes() the number of ranks and routers.
  [[nodiscard]] virtual std::uint32_t ranks() const = 0;
  [[nodiscard]] virtual std::uint32_t nodes() const = 0;
  // All directed links, in a fixed order. link_count() returns their number without building the
  // list.
  [[nodiscard]] virtual std::vector<Link> links() const = 0;
  [[nodiscard]] virtual std::uint64_t link_count() const = 0;
  // Lanes of the link from -> to; 0 if there is none.
  [[nodiscard]] virtual std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const = 0;
  // link_class() returns the class of the link from -> to, which must exist; link_classes() the
  // classes that the topology's links have, each once.
  [[nodiscard]] virtual LinkClass link_class(std::uint32_t /*from*/, std::uint32_t /*to*/) const {
    return LinkClass::kFabric;
  }
  [[nodiscard]] virtual std::vector<LinkClass> link_classes() const { return {LinkClass::kFabric}; }
  // The nodes on the route from `from` to `to`, both included: the link on a complete graph,
  // dimension order on grids (XY on a mesh), up and down in a tree.
  [[nodiscard]] virtual std::vector<std::uint32_t> route(std::uint32_t from,
                                                         std::uint32_t to) const = 0;
  // Where a node is drawn; the unit is the distance between neighbours.
  struct Position {
    double x = 0, y = 0;
  };
  // Returns where the node is drawn.
  [[nodiscard]] virtual Position position(std::uint32_t node) const = 0;
  // How far, in the same unit, a link is drawn beside the straight line between its ends, to its
  // left on the way to the node of the larger number; 0: straight.
  [[nodiscard]] virtual double bend(std::uint32_t /*from*/, std::uint32_t /*to*/) const {
    return 0;
  }
  // The node's name in messages: "rank 3", "rank 3 (row 0, column 3)", "router 17 (level 1)".
  [[nodiscard]] virtual std::string node_name(std::uint32_t node) const = 0;
  // Returns the parameters of a mesh, torus, ring, hypercube, fat tree, crossbar or hosts; all 0
  // for other topologies.
  [[nodiscard]] virtual Shape shape() const { return {}; }
  // 64-bit digest of the canonical specification; never 0.
  [[nodiscard]] std::uint64_t digest() const;
};

// The forms of specifications that read() takes, for messages and help texts.
inline constexpr const char* kSpecificationForms =
    "complete:N, mesh:RxC, mesh:AxBxC, torus:RxC, torus:AxBxC, ring:P, hypercube:D, "
    "hyperx:AxB[xC], "
    "dragonfly:GxAxP, crossbar:AxB[xC..], hosts:HxR, fattree:k=K,h=H,c=1|k|c1,..,cH, "
    "fattree:k=K1x..xKH,c=.. or file:PATH";

// Parses each of kSpecificationForms except file:PATH, or "custom:" and a topology file's text in
// one line (docs/topologies.md). The error has its position and the correct form.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse(std::string_view spec);

// Parses the same, and "file:PATH", a topology file (docs/topologies.md). Use it for user input.
// parse() never opens a file, so a specification inside a schedule file cannot make the program
// read another file.
[[nodiscard]] Result<std::unique_ptr<Topology>> read(std::string_view spec);

// A self-contained SVG picture of nodes and links.
[[nodiscard]] std::string draw_svg(const Topology& topology);

// A placement for one topology, collective and algorithm: the content of an embedding file.
struct Embedding {
  // A node of the binary tree that the groups of a fractional tree form.
  struct TreeGroup {
    std::uint32_t parent = 0;
    bool is_right = false;  // right successor of the parent, otherwise its down successor
  };

  std::string name = {};                                       // used in messages
  std::string topology = {}, collective = {}, algorithm = {};  // the specifications
  std::uint32_t run_length = 0;  // run length r of a fractional tree; 0: not a fractional tree
  Switching switching = Switching::kCutThrough;
  // Virtual rank -> rank of the topology; virtual rank 0 is the root.
  std::vector<std::uint32_t> node_of = {};
  std::vector<TreeGroup> groups = {};  // only for fractional-mesh; parents before children
  std::string found_by = {};           // the command that found it
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
