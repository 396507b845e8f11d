#pragma once
// A topology that is a tree, with the distances that lower bounds need. Internal to
// collectives/verify.

#include <cstdint>
#include <optional>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// The ranks on one side of a cut.
struct Side {
  std::int64_t ranks = 0;
  std::uint32_t lowest = 0, highest = 0;  // rank numbers
  bool root = false;                      // whether the root is among them

  void add(const Program& common, std::uint32_t node);  // no effect for a router
  void add(const Side& other);
};

// Everything beyond a link u -> v. Distances are hops from v.
struct Branch {
  Side side;
  std::vector<std::int64_t> ranks_at;   // number of ranks, by distance
  std::int64_t root_at = 0;             // distance of the root, if it is among them
  std::int64_t nearest = 0, depth = 0;  // distances of the nearest and the furthest rank
  // Minimum steps of a broadcast from v to these ranks, with one send per step and node.
  std::int64_t spread = 0;
};

class Tree {
 public:
  // Returns nothing if the topology is not a tree.
  [[nodiscard]] static std::optional<Tree> read(const topology::Topology& topology,
                                                const Program& common);

  struct Edge {
    std::uint32_t from = 0, to = 0, capacity = 1;
    Branch beyond;
  };
  // Both directions of each link: edge 2k + 1 is the reverse of edge 2k.
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
