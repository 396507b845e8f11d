#pragma once
// The routes of a custom topology: for every pair of nodes, the next node of a message.

#include <cstdint>
#include <vector>

#include "topology/custom_content.h"

namespace espalier::topology {

class CustomRoutes {
 public:
  // Fills the tables and follows every route: every node must reach every other over links,
  // visiting no node twice. `content` must outlive this object.
  [[nodiscard]] Result<void, ParseError> build(const CustomContent& content);
  // The nodes from `from` to `to`, both included.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to) const;

 private:
  static constexpr std::uint16_t kNowhere = 0xffff;

  [[nodiscard]] Result<void, ParseError> all_joined() const;
  // Whether every node can be reached from node 0 along the links, or against them. `first` is set
  // to a node that cannot.
  [[nodiscard]] bool reached(bool along, std::uint32_t& first) const;
  void fill_shortest();
  void fill_xy();
  // Follows the table from every node to `to`.
  [[nodiscard]] Result<void, ParseError> follow(std::uint32_t to) const;
  [[nodiscard]] Result<void, ParseError> stops(std::uint32_t from, std::uint32_t node,
                                               std::uint32_t to) const;
  [[nodiscard]] Result<void, ParseError> loops(std::uint32_t first, std::uint32_t to) const;
  [[nodiscard]] const CustomContent::Route* explicit_route(std::uint32_t from,
                                                           std::uint32_t to) const;
  [[nodiscard]] std::uint16_t next(std::uint32_t node, std::uint32_t to) const {
    return next_[to * count_ + node];
  }

  const CustomContent* content_ = nullptr;
  std::size_t count_ = 0;            // nodes
  std::vector<std::uint16_t> next_;  // indexed by (to, node)
};

}  // namespace espalier::topology
