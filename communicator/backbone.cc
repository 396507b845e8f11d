#include "communicator/backbone.h"

#include <algorithm>
#include <bit>

#include "espalier/internal/base/assert.h"

namespace espalier::communicator {

std::vector<std::uint32_t> backbone_peers(std::uint32_t rank, std::uint32_t size) {
  ESPALIER_ASSERT(rank < size);
  std::vector<std::uint32_t> peers;
  for (std::uint32_t distance = 1; distance < size; distance *= 2) {
    for (const std::uint32_t peer : {(rank + distance) % size, (rank + size - distance) % size}) {
      if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
    }
  }
  return peers;
}

bool is_backbone_peer(std::uint32_t peer, std::uint32_t rank, std::uint32_t size) {
  ESPALIER_ASSERT(rank < size && peer < size);
  const std::uint32_t distance = (peer + size - rank) % size;
  return std::has_single_bit(distance) || std::has_single_bit(size - distance);
}

}  // namespace espalier::communicator
