#include "hal/sim/large_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace espalier::sim {
namespace {

struct alignas(256) Wide {
  std::uint8_t bytes[256] = {};
};

TEST(LargeMemory, IsAlignedAsItsValuesAre) {
  std::vector<LargeVector<Wide>> all;
  for (std::size_t length = 1; length < 64; ++length) {
    all.emplace_back(length);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().data()) % alignof(Wide), 0u) << length;
  }
}

}  // namespace
}  // namespace espalier::sim
