#pragma once
// How a node's session in an update of all nodes ended (session.h). Freestanding.

#include <cstdint>

namespace espalier {

enum class UpdateEnd : std::uint32_t {
  kNone = 0,      // a failure
  kSettled = 1,   // all nodes run one release, and no image waits
  kSwitched = 2,  // all nodes have switched to the new release: restart them
  kRestarts = 3,  // nodes of two releases finish the switch: restart them
  kRefused = 4,   // a node refused the update; all run what they ran
  kMixed = 5,     // nodes run several releases, which no update explains
};

}  // namespace espalier
