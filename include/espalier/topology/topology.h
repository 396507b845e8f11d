#pragma once
// Topologies: nodes, directed links with capacities, routes, digest. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"

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
  std::vector<std::uint32_t> arities;     // fat tree: children of a router of level 1 .. height
  std::vector<std::uint32_t> capacities;  // fat tree: lanes of the branches of level 1 .. height
  std::uint32_t rows = 0, columns = 0;    // mesh:RxC
  // mesh, torus, ring: the ranks in each dimension, the one with the greatest strides first; wraps:
  // the lines along each dimension are rings
  std::vector<std::uint32_t> grid;
  bool wraps = false;
  std::uint32_t hypercube = 0;  // its dimensions
  // hierarchical crossbar: the modules, the modules of each, ..., the ranks of each innermost one;
  // the channels into and out of the modules of each level, outermost first
  std::vector<std::uint32_t> crossbar, channels_in, channels_out;
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

}  // namespace espalier::topology
