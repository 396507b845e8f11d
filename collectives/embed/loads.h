#pragma once
// The load of a topology's links, slot by slot, while ranks move: the inner loop of the searches.
// Host only.

#include <cstdint>
#include <vector>

#include "espalier/internal/base/assert.h"
#include "espalier/topology/topology.h"

namespace espalier::embed {

// The number of pairs limits the ranks, because a route is stored for each pair.
inline constexpr std::uint32_t kMaxPlaced = 1024;

// The routes of all pairs of ranks, as link numbers.
class Routes {
 public:
  // Requires at most kMaxPlaced ranks.
  explicit Routes(const topology::Topology& topology);

  // The numbers of a route's links, in the order in which a block crosses them: begin() .. end().
  struct Links {
    const std::uint32_t *first, *last;
    // begin() and end() make a route iterable. size() is its number of links.
    [[nodiscard]] const std::uint32_t* begin() const { return first; }
    [[nodiscard]] const std::uint32_t* end() const { return last; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(last - first); }
  };
  // Returns the route from rank `from` to rank `to`, both below ranks(). Valid as long as this
  // object.
  [[nodiscard]] Links links(std::uint32_t from, std::uint32_t to) const {
    ESPALIER_ASSERT(from < ranks_ && to < ranks_);
    const std::size_t pair = std::size_t{from} * ranks_ + to;
    return {links_.data() + starts_[pair], links_.data() + starts_[pair + 1]};
  }
  // Returns the number of ranks.
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  // The other ranks in order of the length of the route to them, nearest first; index < ranks - 1.
  [[nodiscard]] std::uint32_t near(std::uint32_t rank, std::uint32_t index) const {
    ESPALIER_ASSERT(rank < ranks_ && index < ranks_ - 1);
    return near_[std::size_t{rank} * (ranks_ - 1) + index];
  }
  // Returns the lanes of each link, by the number that links() gives it.
  [[nodiscard]] const std::vector<std::uint32_t>& capacities() const { return capacities_; }

 private:
  std::uint32_t ranks_;
  std::vector<std::uint32_t> capacities_;  // lanes of each link
  std::vector<std::uint32_t> starts_;      // ranks^2 + 1
  std::vector<std::uint32_t> links_, near_;
};

// The load of each link in each of several bins, and the excess over the limits.
class Loads {
 public:
  // The limit of a link is its lanes times `widths[bin]` in each bin. `routes` must outlive this
  // object.
  Loads(const Routes& routes, const std::vector<std::uint32_t>& widths);

  // Adds a transfer from rank `from` to rank `to` to a bin.
  void add(std::uint32_t from, std::uint32_t to, std::uint32_t bin) {
    std::uint32_t* const loads = loads_.data() + bin * stride_;
    const std::uint32_t* const most = most_.data() + bin * stride_;
    for (const std::uint32_t link : routes_.links(from, to)) over_ += loads[link]++ >= most[link];
    hops_ += routes_.links(from, to).size();
  }
  // Removes a transfer that was added to this bin.
  void remove(std::uint32_t from, std::uint32_t to, std::uint32_t bin) {
    std::uint32_t* const loads = loads_.data() + bin * stride_;
    const std::uint32_t* const most = most_.data() + bin * stride_;
    for (const std::uint32_t link : routes_.links(from, to)) over_ -= --loads[link] >= most[link];
    hops_ -= routes_.links(from, to).size();
  }
  // Number of transfers beyond the limits, over all links and bins.
  [[nodiscard]] std::int64_t over() const { return over_; }
  // Number of link crossings of all transfers.
  [[nodiscard]] std::int64_t hops() const { return hops_; }

 private:
  const Routes& routes_;
  std::size_t stride_;
  std::vector<std::uint32_t> loads_, most_;
  std::int64_t over_ = 0, hops_ = 0;
};

}  // namespace espalier::embed
