#pragma once
// Maximum flows for the packing of trees. Host only.

#include <cstdint>
#include <vector>

namespace espalier::searched {

// Dinic's algorithm: the shortest augmenting paths, level graph by level graph.
class MaxFlow {
 public:
  // Removes all arcs.
  void clear(std::uint32_t vertices);
  void add_arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity);
  // Returns the maximum flow, or `enough` if it is at least that. Uses up the capacities.
  [[nodiscard]] std::int64_t max_flow(std::uint32_t source, std::uint32_t sink,
                                      std::int64_t enough);
  // Whether the vertex is on the source's side of a minimum cut. Requires a flow below `enough`.
  [[nodiscard]] bool on_source_side(std::uint32_t vertex) const { return level_[vertex] >= 0; }

 private:
  struct Arc {
    std::uint32_t to;
    std::int32_t next;  // the next arc out of the same vertex; -1: none
    std::int64_t left;
  };
  bool find_levels(std::uint32_t source, std::uint32_t sink);
  std::int64_t push_along(std::uint32_t source, std::uint32_t sink, std::int64_t most);

  std::vector<Arc> arcs_;            // arc 2k + 1 is the reverse of arc 2k
  std::vector<std::int32_t> first_;  // by vertex: its first arc
  std::vector<std::int32_t> level_;  // by vertex: distance from the source; -1: not reached
  std::vector<std::int32_t> next_;   // by vertex: the first arc that may still lead to the sink
  std::vector<std::uint32_t> queue_;
  std::vector<std::int32_t> path_;
};

}  // namespace espalier::searched
