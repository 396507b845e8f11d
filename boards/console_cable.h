#pragma once
// The cable of a board with one UART: it carries frames and, between them, the console's text.
// kPut and kGet move one byte; false: the UART has no room, or nothing was received. has_printed:
// text went out since the last frame.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"

namespace espalier::board {

template <bool (*kPut)(std::uint8_t), bool (*kGet)(std::uint8_t&), bool& has_printed>
class ConsoleCable final : public ByteStream {
 public:
  [[nodiscard]] bool put(std::uint8_t byte) override {
    // The gateway takes the console's text for a damaged frame. A zero ends it.
    if (has_printed) {
      if (!kPut(0)) return false;
      has_printed = false;
    }
    return kPut(byte);
  }
  [[nodiscard]] bool get(std::uint8_t& byte) override { return kGet(byte); }

  // The console, which may print before the cable is constructed.
  static void print(const char* text) {
    for (; *text != '\0'; ++text) {
      while (!kPut(static_cast<std::uint8_t>(*text))) {
      }
    }
    has_printed = true;
  }
};

}  // namespace espalier::board
