#pragma once
// A tree of nodes, as lower bounds need it. Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// The ranks on one side of a cut.
struct Side {
  std::int64_t ranks = 0;
  std::uint32_t lowest = 0, highest = 0;  // by number
  bool root = false;

  void add(const Program& common, std::uint32_t node);  // nothing if it is a router
  void add(const Side& other);
};

// All that lies beyond a link u -> v, seen from v, in hops.
struct Branch {
  Side side;
  std::vector<std::int64_t> at;         // ranks, by distance from v
  std::int64_t root_at = 0;             // distance of the root, if it is there
  std::int64_t nearest = 0, depth = 0;  // to a rank
  // The least steps of a broadcast from v to its ranks, one send a step and node.
  std::int64_t spread = 0;
};

class Tree {
 public:
  // Nothing if the topology is no tree.
  [[nodiscard]] static std::optional<Tree> read(const topology::Topology& topology,
                                                const Program& common);

  struct Edge {
    std::uint32_t from = 0, to = 0, capacity = 1;
    Branch beyond;
  };
  // Both directions of each link; edges 2k and 2k + 1 are one another's reverse.
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }
  [[nodiscard]] const std::vector<std::uint32_t>& edges_from(std::uint32_t node) const {
    return from_[node];
  }

 private:
  void fill(const Program& common, std::uint32_t edge);
  std::vector<Edge> edges_;
  std::vector<std::vector<std::uint32_t>> from_;  // by node: its edges
};

}  // namespace espalier::verify
