#pragma once
// The loss of a link or a node, without which a cluster continues. Freestanding; docs/spares.md.

#include <cstdint>

namespace espalier {

// A link, or a node with all its links.
struct Loss {
  // kNothing: no loss; kLink: the link between two nodes; kNode: a node. Images hold these numbers.
  enum class Kind : std::uint8_t { kNothing = 0, kLink = 1, kNode = 2 };
  Kind kind = Kind::kNothing;  // what is lost
  std::uint32_t a = 0;         // the link's lower end, or the node
  std::uint32_t b = 0;         // the link's higher end; of a node 0

  // link() returns the loss of the link between the two nodes, in either order; node() the loss of
  // a node.
  [[nodiscard]] static constexpr Loss link(std::uint32_t from, std::uint32_t to) {
    return from < to ? Loss{Kind::kLink, from, to} : Loss{Kind::kLink, to, from};
  }
  [[nodiscard]] static constexpr Loss node(std::uint32_t lost) { return {Kind::kNode, lost, 0}; }
  // Whether both are the same loss.
  [[nodiscard]] bool operator==(const Loss& other) const = default;

  // Whether a link between the two nodes is lost.
  [[nodiscard]] constexpr bool closes(std::uint32_t from, std::uint32_t to) const {
    if (kind == Kind::kNode) return from == a || to == a;
    const Loss between = link(from, to);
    return kind == Kind::kLink && between.a == a && between.b == b;
  }
  // Returns the number of a node in the programs for what is left: they count the nodes without the
  // lost one. real() is the opposite.
  [[nodiscard]] constexpr std::uint32_t dense(std::uint32_t node) const {
    return kind == Kind::kNode && node > a ? node - 1 : node;
  }
  [[nodiscard]] constexpr std::uint32_t real(std::uint32_t node) const {
    return kind == Kind::kNode && node >= a ? node + 1 : node;
  }
};

}  // namespace espalier
