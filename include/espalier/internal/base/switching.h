#pragma once
// Switching, for topologies and simulated networks. Freestanding.

#include <cstdint>

namespace espalier {

// How a block crosses the links of its route.
enum class Switching : std::uint8_t {
  kCutThrough,       // a block holds its whole path for one step
  kStoreAndForward,  // each hop is its own step, taken when there is room
};

}  // namespace espalier
