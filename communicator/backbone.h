#pragma once
// The links that every rank of a communicator has once it called a collective, whatever that is.
// Host only.

#include <cstdint>
#include <vector>

namespace espalier::communicator {

// Returns the ranks at distance 1, 2, 4, ... in both directions, modulo `size`. Their links carry
// the cause of a failure to ranks that have no other link to those that found it. If fewer ranks
// die than one rank has of these links, the others stay connected (backbone_test.cc).
[[nodiscard]] std::vector<std::uint32_t> backbone_peers(std::uint32_t rank, std::uint32_t size);

// Whether `peer` is one of them.
[[nodiscard]] bool is_backbone_peer(std::uint32_t peer, std::uint32_t rank, std::uint32_t size);

}  // namespace espalier::communicator
