#pragma once
// What simulation says of the programs in node-R.img. Made by make.sh.

#include <cstdint>

namespace espalier::golden {
struct Digests {
  std::uint64_t results, events;
};
inline constexpr Digests kDigests[] = {
    {0x1ee5fdec9f98a6d5, 0x943310ad3f427995},  // 8444
    {0x4bc18d11d900df2d, 0x2b71a0d49f81827d},  // 8448
};
}  // namespace espalier::golden
