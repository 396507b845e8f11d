#pragma once
// crossbar:AxB: a hierarchical crossbar of A modules with B ranks each. Within a module every rank
// has a link to every other. All ranks of a module share its few channels to other modules.
// crossbar:AxBxC...: modules of modules, up to 8 levels; only the innermost ones have ranks.
// [Sanders03], section 4 ("Hierarchies of Crossbars").

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Routers only forward. They are one port per innermost module, one switch per module around
// others, and the switch around all. A module's channels are the links between its router and the
// router around it. Nodes: the ranks, module by module, then the ports, then the switches from the
// innermost level outward. Rank m*B + i is in module m of crossbar:AxB.
class Crossbar : public Topology {
 public:
  // The number of levels, the ranks' one included.
  static constexpr std::size_t kMaxLevels = 8;

  // `sizes`: A, B, ...; in, out: channels into and out of the modules of each level, outermost
  // first, one fewer than `sizes`.
  Crossbar(std::vector<std::uint32_t> sizes, std::vector<std::uint32_t> in,
           std::vector<std::uint32_t> out);

  [[nodiscard]] std::string spec() const override;
  [[nodiscard]] std::uint32_t ranks() const final { return first_[1]; }
  [[nodiscard]] std::uint32_t nodes() const final { return first_.back(); }
  // A rank has links to the others of its module and to the port; a router has links to the router
  // around it.
  [[nodiscard]] std::uint64_t link_count() const final {
    return std::uint64_t{ranks()} * (size() - 1) + 2 * (std::uint64_t{nodes()} - 1);
  }
  [[nodiscard]] std::vector<Link> links() const final;
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const final;
  // Direct within an innermost module, otherwise up to the first common router and down.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to) const final;
  // Innermost modules are in a row, each a square of ranks below its port; a switch is above the
  // middle of its modules.
  [[nodiscard]] Position position(std::uint32_t node) const final;
  [[nodiscard]] Shape shape() const override;
  [[nodiscard]] std::string node_name(std::uint32_t node) const final;

 protected:
  [[nodiscard]] std::uint32_t modules() const { return sizes_.front(); }
  // The ranks of an innermost module.
  [[nodiscard]] std::uint32_t size() const { return sizes_.back(); }
  [[nodiscard]] std::uint32_t hub() const { return nodes() - 1; }
  // The word for a module in names.
  [[nodiscard]] virtual const char* module_word() const { return "module"; }

 private:
  // Level 0 are the ranks, level 1 the ports; the hub's level is the number of `sizes_`.
  [[nodiscard]] std::size_t level(std::uint32_t node) const;
  // The router around the node, which must not be the hub.
  [[nodiscard]] std::uint32_t around(std::uint32_t node) const;
  // Whether both nodes are ranks of one innermost module.
  [[nodiscard]] bool are_linked_ranks(std::uint32_t a, std::uint32_t b) const {
    return a < ranks() && b < ranks() && a / size() == b / size();
  }

  std::vector<std::uint32_t> sizes_, in_, out_;
  std::vector<std::uint32_t> first_;  // by level: the first node; then the number of nodes
};

// Parses the text after "crossbar:". AxB: two channels into and two out of each module, enough for
// both embeddings of [Sanders03]; AxB,in=I,out=O: I channels in and O out. AxBxC...: the same on
// every level, or I1/I2/... and O1/O2/..., outermost first.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_crossbar(std::string_view text);

}  // namespace espalier::topology
