// How many ranks the backbone can lose before the others are not connected.

#include "communicator/backbone.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace espalier::communicator {
namespace {

// A graph with a vertex for the arrivals and one for the departures of each rank, and room for one
// path through each rank.
class Paths {
 public:
  explicit Paths(std::uint32_t size) : size_(size), capacity_(4 * size * size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      room(arrivals(rank), departures(rank)) = 1;
      for (const std::uint32_t peer : backbone_peers(rank, size)) {
        room(departures(rank), arrivals(peer)) = 1;
      }
    }
  }

  // The number of paths from `from` to `to` that share no other rank (Menger's theorem: so many
  // ranks must be lost to separate the two, unless they are neighbours).
  std::uint32_t disjoint(std::uint32_t from, std::uint32_t to) {
    std::uint32_t paths = 0;
    while (augment(departures(from), arrivals(to))) ++paths;
    return paths;
  }

 private:
  static std::uint32_t arrivals(std::uint32_t rank) { return 2 * rank; }
  static std::uint32_t departures(std::uint32_t rank) { return 2 * rank + 1; }
  std::uint8_t& room(std::uint32_t from, std::uint32_t to) {
    return capacity_[std::size_t{from} * 2 * size_ + to];
  }
  bool augment(std::uint32_t from, std::uint32_t to) {
    std::vector<std::uint32_t> before(2 * size_, UINT32_MAX), waiting = {from};
    before[from] = from;
    for (std::size_t i = 0; i < waiting.size() && before[to] == UINT32_MAX; ++i) {
      for (std::uint32_t next = 0; next < 2 * size_; ++next) {
        if (before[next] != UINT32_MAX || room(waiting[i], next) == 0) continue;
        before[next] = waiting[i];
        waiting.push_back(next);
      }
    }
    if (before[to] == UINT32_MAX) return false;
    for (std::uint32_t at = to; at != from; at = before[at]) {
      --room(before[at], at);
      ++room(at, before[at]);
    }
    return true;
  }

  std::uint32_t size_;
  std::vector<std::uint8_t> capacity_;
};

// All ranks are alike, so paths from rank 0 speak for all.
TEST(Backbone, LosesAnySetOfRanksSmallerThanTheLinksOfARank) {
  std::vector<std::uint32_t> sizes = {48, 63, 64, 65, 96, 127, 128, 129};
  for (std::uint32_t size = 2; size <= 33; ++size) sizes.push_back(size);
  for (const std::uint32_t size : sizes) {
    const std::vector<std::uint32_t> peers = backbone_peers(0, size);
    for (std::uint32_t rank = 1; rank < size; ++rank) {
      if (std::find(peers.begin(), peers.end(), rank) != peers.end()) continue;
      EXPECT_EQ(Paths(size).disjoint(0, rank), peers.size()) << size << ", rank " << rank;
    }
  }
}

TEST(Backbone, IsSymmetricAndLogarithmic) {
  EXPECT_TRUE(backbone_peers(0, 1).empty());
  EXPECT_EQ(backbone_peers(1, 2), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(backbone_peers(2, 8), (std::vector<std::uint32_t>{3, 1, 4, 0, 6}));
  EXPECT_EQ(backbone_peers(0, 64).size(), 11u);
  for (std::uint32_t size = 2; size < 40; ++size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      for (const std::uint32_t peer : backbone_peers(rank, size)) {
        const auto back = backbone_peers(peer, size);
        EXPECT_NE(std::find(back.begin(), back.end(), rank), back.end()) << size;
        EXPECT_NE(peer, rank);
      }
    }
  }
}

TEST(Backbone, KnowsItsPeers) {
  for (std::uint32_t size = 2; size <= 40; ++size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const auto peers = backbone_peers(rank, size);
      for (std::uint32_t peer = 0; peer < size; ++peer) {
        const bool is_listed = std::find(peers.begin(), peers.end(), peer) != peers.end();
        EXPECT_EQ(peer != rank && is_backbone_peer(peer, rank, size), is_listed)
            << "rank " << rank << " of " << size << ", " << peer;
      }
    }
  }
}

}  // namespace
}  // namespace espalier::communicator
