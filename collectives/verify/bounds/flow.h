#pragma once
// Maximum flows and minimum cuts of a network of arcs, within a limited number of operations: for
// bounds, and for the packing of trees (collectives/search).

#include <cstdint>
#include <limits>
#include <vector>

namespace espalier::verify {

class FlowNetwork {
 public:
  FlowNetwork() = default;
  explicit FlowNetwork(std::uint32_t vertices) : arcs_from_(vertices) {}

  // Removes all arcs.
  void clear(std::uint32_t vertices);
  // Adds an arc of capacity >= 0. Returns its number.
  std::size_t add_arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity);
  // Changes an arc's capacity, from the next flow onward.
  void set_capacity(std::size_t arc, std::int64_t capacity) { arcs_[2 * arc].capacity = capacity; }

  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  // Returns the maximum flow from source to sink, or `enough` if it is at least that. Subtracts the
  // arcs that it examines from `work`, and returns -1 if that falls below 0.
  [[nodiscard]] std::int64_t max_flow(std::uint32_t source, std::uint32_t sink, std::int64_t enough,
                                      std::int64_t& work);
  [[nodiscard]] std::int64_t max_flow(std::uint32_t source, std::uint32_t sink,
                                      std::int64_t enough) {
    std::int64_t work = kNoLimit;
    return max_flow(source, sink, enough, work);
  }
  // Whether the vertex is on the source's side of the minimum cut of the last flow, which was below
  // `enough`.
  [[nodiscard]] bool on_source_side(std::uint32_t vertex) const { return level_[vertex] >= 0; }

 private:
  struct Arc {
    std::uint32_t to = 0;
    std::int64_t capacity = 0, left = 0;
  };
  [[nodiscard]] bool find_levels(std::uint32_t source, std::uint32_t sink, std::int64_t& work);
  [[nodiscard]] std::int64_t push_along(std::uint32_t source, std::uint32_t sink, std::int64_t most,
                                        std::int64_t& work);

  std::vector<Arc> arcs_;  // arc 2k + 1 is the reverse of arc 2k
  std::vector<std::vector<std::uint32_t>> arcs_from_;
  std::vector<std::int32_t> level_;  // by vertex: distance from the source, -1: not reached
  std::vector<std::size_t> next_;    // by vertex: its first arc that may still lead to the sink
  std::vector<std::uint32_t> path_, queue_;
};

}  // namespace espalier::verify
