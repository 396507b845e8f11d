#pragma once
// Limits of a program's steps that hold on every node, regardless of how its software was compiled.

#include <cstdint>

#include "espalier/internal/base/limits.h"

namespace espalier {

// Messages of one link and direction in one step. A node compiled with a smaller kMaxWindow, or
// whose endpoint has a smaller window, takes fewer.
inline constexpr std::uint32_t kMaxLinkMessages = 64;
// Sends of one node in one step; also receives. A step has 8-bit counters of both.
inline constexpr std::uint32_t kMaxStepMessages = 255;
// Instances of one action in one step.
inline constexpr std::uint32_t kMaxStepInstances = 255;
static_assert(kMaxWindow <= kMaxLinkMessages);

}  // namespace espalier
