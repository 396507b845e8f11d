#pragma once
// How a block crosses the links of its route. Freestanding.

#include <cstdint>

namespace espalier {

enum class Switching : std::uint8_t {
  kCutThrough,       // a block holds its whole path for one step
  kStoreAndForward,  // each hop is its own step, taken when there is room
};

}  // namespace espalier
