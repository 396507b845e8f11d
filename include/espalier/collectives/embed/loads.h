#pragma once
// What the links of a topology carry, slot by slot, while ranks move about: the inner loop of the
// searches. Host only.

#include <cstdint>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::embed {

// More ranks than this have too many pairs to keep a route for each.
inline constexpr std::uint32_t kMostPlaced = 1024;

// The routes of all pairs of ranks, as numbers of links.
class Routes {
 public:
  // At most kMostPlaced ranks.
  explicit Routes(const topology::Topology& topology);

  struct Links {
    const std::uint32_t *first, *last;
    [[nodiscard]] const std::uint32_t* begin() const { return first; }
    [[nodiscard]] const std::uint32_t* end() const { return last; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(last - first); }
  };
  [[nodiscard]] Links links(std::uint32_t from, std::uint32_t to) const {
    const std::size_t pair = std::size_t{from} * ranks_ + to;
    return {links_.data() + starts_[pair], links_.data() + starts_[pair + 1]};
  }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  // The other ranks by the length of the route to them, the nearest first: index < ranks - 1.
  [[nodiscard]] std::uint32_t near(std::uint32_t rank, std::uint32_t index) const {
    return near_[std::size_t{rank} * (ranks_ - 1) + index];
  }
  [[nodiscard]] const std::vector<std::uint32_t>& capacities() const { return capacities_; }

 private:
  std::uint32_t ranks_;
  std::vector<std::uint32_t> capacities_;  // lanes of each link
  std::vector<std::uint32_t> starts_;      // ranks^2 + 1
  std::vector<std::uint32_t> links_, near_;
};

// Sums of what links carry in each of several bins, and by how much that is too much.
class Loads {
 public:
  // A link may carry its lanes times `widths[bin]` in a bin. `routes` outlives this.
  Loads(const Routes& routes, const std::vector<std::uint32_t>& widths);

  void add(std::uint32_t from, std::uint32_t to, std::uint32_t bin) {
    std::uint32_t* const loads = loads_.data() + bin * stride_;
    const std::uint32_t* const most = most_.data() + bin * stride_;
    for (const std::uint32_t link : routes_.links(from, to)) over_ += loads[link]++ >= most[link];
    hops_ += routes_.links(from, to).size();
  }
  void remove(std::uint32_t from, std::uint32_t to, std::uint32_t bin) {
    std::uint32_t* const loads = loads_.data() + bin * stride_;
    const std::uint32_t* const most = most_.data() + bin * stride_;
    for (const std::uint32_t link : routes_.links(from, to)) over_ -= --loads[link] >= most[link];
    hops_ -= routes_.links(from, to).size();
  }
  // Transfers too many, over all links and bins.
  [[nodiscard]] std::int64_t over() const { return over_; }
  // Links crossed by all transfers together.
  [[nodiscard]] std::int64_t hops() const { return hops_; }

 private:
  const Routes& routes_;
  std::size_t stride_;
  std::vector<std::uint32_t> loads_, most_;
  std::int64_t over_ = 0, hops_ = 0;
};

}  // namespace espalier::embed
