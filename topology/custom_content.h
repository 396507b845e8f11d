#pragma once
// The parsed and checked content of a topology file: nodes, links and routing overrides.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// A custom topology stores the next node for every pair of nodes. Its limit is therefore lower than
// for other topologies.
inline constexpr std::uint32_t kMaxCustomNodes = 1024;

// A position in the source text, counted from 0.
struct SourcePosition {
  int line = 0, column = 0;
};

// A parse error: the error, the correct form, and the position.
struct ParseError {
  SourcePosition source;
  std::string what;
};

// A cable between two interfaces.
struct Cable {
  struct End {
    std::uint32_t node = 0;
    std::string interface = {};
  };
  std::array<End, 2> ends = {};
  std::uint32_t rate_mbits = 0;  // Mbit/s per direction; 0: not known
  std::uint32_t mtu = 0;         // bytes; 0: any
};

struct CustomContent {
  struct NodeEntry {
    std::string name;  // may be empty
    std::string host;  // the same
    bool placed = false;
    Topology::Position position;
  };
  struct NextHop {
    std::uint32_t at = 0, to = 0, next = 0;
    SourcePosition source;
  };
  struct Route {
    std::vector<std::uint32_t> nodes;  // at least two
    SourcePosition source;
  };

  std::string name;
  std::uint32_t ranks = 0;
  bool xy = false;
  std::vector<NodeEntry> nodes;  // one per node; either all have a position or none
  std::vector<Link> links;       // sorted by from, then to; no duplicates
  std::vector<NextHop> hops;     // sorted by (at, next, to); each (at, to) at most once
  std::vector<Route> routes;     // sorted by first, then last node; each pair at most once
  std::vector<Cable> cables;     // as in the file; canonical_text() has their links only
  SourcePosition ranks_source, routing_source;

  // Lanes of the link from -> to; 0 if there is none.
  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const;
  // The links that leave node, by the number of their other end.
  [[nodiscard]] std::vector<Link>::const_iterator first_link(std::uint32_t node) const;
  // "rank 3" or "router 17"
  [[nodiscard]] std::string kind(std::uint32_t node) const;
};

// Parses text format (proto/topology.proto). Checks nodes and links, and that routes are lists of
// links. CustomRoutes checks whether the routes reach their destinations.
[[nodiscard]] Result<CustomContent, ParseError> read_custom(std::string_view text);
// The same of a file. Errors, one line with the path: not readable; those of read_custom().
[[nodiscard]] Result<CustomContent> read_custom_file(const std::string& path);

// Returns one line of text format that parses as the same content. All files with this content give
// the same line: comments, order and explicit defaults have no effect.
[[nodiscard]] std::string canonical_text(const CustomContent& content);

}  // namespace espalier::topology
