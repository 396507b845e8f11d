#pragma once
// The memory of a bare-metal node for messages. Freestanding.

#include <cstdint>

#include "espalier/internal/collectives/machine/event_log.h"

namespace espalier::bare {

// Memory for the messages of collectives, aligned to 16 bytes.
struct Rooms {
  std::uint8_t* input = nullptr;
  std::uint8_t* output = nullptr;
  std::uint8_t* scratch = nullptr;
  Event* events = nullptr;
  std::uint32_t input_bytes = 0;
  std::uint32_t output_bytes = 0;
  std::uint32_t scratch_bytes = 0;
  std::uint32_t events_count = 0;
};

}  // namespace espalier::bare
