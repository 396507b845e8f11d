#pragma once
// What a topology file says, read and checked, without its words: nodes, links, and what overrides
// the routing.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// A custom topology has a table of next nodes for every pair, so it has fewer nodes than others
// may.
inline constexpr std::uint32_t kMaxCustomNodes = 1024;

// Where something stands in the text, from 0.
struct Spot {
  int line = 0, column = 0;
};

// What is wrong and what would be right, and where. Empty: nothing.
struct Complaint {
  Spot spot;
  std::string what;
};

struct CustomContent {
  struct Node {
    std::string name;  // may be empty
    bool placed = false;
    Topology::Point at;
  };
  struct NextHop {
    std::uint32_t at = 0, to = 0, next = 0;
    Spot spot;
  };
  struct Route {
    std::vector<std::uint32_t> nodes;  // at least two
    Spot spot;
  };

  std::string name;
  std::uint32_t ranks = 0;
  bool xy = false;
  std::vector<Node> nodes;    // one a node; all placed or none
  std::vector<Link> links;    // sorted by from, then to; none twice
  std::vector<NextHop> hops;  // sorted by (at, next, to); no (at, to) twice
  std::vector<Route> routes;  // sorted by first, then last node; no such pair twice
  Spot ranks_spot, routing_spot;

  // Lanes of the link from -> to; 0 if there is none.
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const;
  // The links that leave node, by the number of their other end.
  [[nodiscard]] std::vector<Link>::const_iterator first_link(std::uint32_t node) const;
  // "rank 3" or "router 17"
  [[nodiscard]] std::string kind(std::uint32_t node) const;
};

// Reads text format (proto/topology.proto). Links and nodes are checked, routes as far as they are
// lists of links; whether they lead anywhere is for CustomRoutes to say.
[[nodiscard]] Complaint read_custom(std::string_view text, CustomContent& content);

// One line of text format that reads as the same content, in the one order and form that all files
// of this content share: comments, order, and defaults written out do not show.
[[nodiscard]] std::string canonical_text(const CustomContent& content);

}  // namespace espalier::topology
