#pragma once
// crossbar:AxB: a hierarchical crossbar of A modules with B ranks each. Within a module every rank
// has a link to every other. All ranks of a module share its few channels to other modules.
// [Sanders03], section 4 ("Hierarchies of Crossbars").

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Routers only forward. They are one port per module, whose links to the switch are the module's
// channels, and the switch, which connects any outgoing channel with any incoming one. Nodes: the
// ranks, module by module, then the modules' ports, then the switch. Rank m*B + i is in module m.
class Crossbar : public Topology {
 public:
  Crossbar(std::uint32_t modules, std::uint32_t size, std::uint32_t in, std::uint32_t out)
      : modules_(modules), size_(size), in_(in), out_(out) {}

  [[nodiscard]] std::string spec() const override;
  [[nodiscard]] std::uint32_t ranks() const final { return modules_ * size_; }
  [[nodiscard]] std::uint32_t nodes() const final { return ranks() + modules_ + 1; }
  // A rank has links to the others of its module and to the port; a port has links to the switch.
  [[nodiscard]] std::uint64_t link_count() const final {
    return std::uint64_t{ranks()} * (size_ - 1) + 2 * (std::uint64_t{ranks()} + modules_);
  }
  [[nodiscard]] std::vector<Link> links() const final;
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const final;
  // Direct within a module, otherwise through the two ports and the switch.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to) const final;
  // Modules are in a row, each a square of ranks below its port; the switch is above the middle.
  [[nodiscard]] Position position(std::uint32_t node) const final;
  [[nodiscard]] Shape shape() const override;
  [[nodiscard]] std::string node_name(std::uint32_t node) const final;

 protected:
  [[nodiscard]] std::uint32_t modules() const { return modules_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t hub() const { return ranks() + modules_; }
  // The word for a module in names.
  [[nodiscard]] virtual const char* module_word() const { return "module"; }

 private:
  // The port of the node's module. A port or the hub maps to itself.
  [[nodiscard]] std::uint32_t port(std::uint32_t node) const {
    return node < ranks() ? ranks() + node / size_ : node;
  }

  std::uint32_t modules_, size_, in_, out_;
};

// Parses the text after "crossbar:". AxB: two channels into and two out of each module, enough for
// both embeddings of [Sanders03]; AxB,in=I,out=O: I channels in and O out.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_crossbar(std::string_view text);

}  // namespace espalier::topology
