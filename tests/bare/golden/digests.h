#pragma once
// What simulation says of the programs in node-R.img. Made by make.sh.

#include <cstdint>

namespace espalier::golden {
struct Digests {
  std::uint64_t results, events;
};
inline constexpr Digests kDigests[] = {
    {0xc8d5b67233bdb725, 0xce062c3c2f707843},  // broadcast
    {0xd5ea50175b739ba9, 0x0af6df83b6331899},  // reduce
    {0xd8c3450a63ccbd75, 0x3f3b779158e9566b},  // allreduce
    {0x9caadb54c858bca6, 0x948236d6c607359d},  // scan
    {0xd8267f8b178e558e, 0x179f6051f75d14ad},  // exscan
    {0x48ae6518a233eedc, 0x3654089d28040314},  // scatter
    {0x0826aa8ad2e29c37, 0x4a5afe4004783a6c},  // gather
    {0x1c8483cc2d52cabd, 0xcc848d51e0e871fd},  // allgather
    {0xd5ea50175b739ba9, 0x25e8e7fa7b70c265},  // reduce-scatter
    {0xb3be06afa81e79df, 0xc17652492cfeac35},  // all-to-all
    {0xcbf29ce484222325, 0xc604e259135f5e35},  // barrier
};
}  // namespace espalier::golden
