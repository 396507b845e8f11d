#pragma once
// Formats text for the console. Freestanding.

#include <cstdint>

#include "espalier/base/status.h"
#include "firmware/bare/board.h"

namespace espalier::bare {

struct Hex {
  std::uint32_t value = 0;  // "0x" and eight digits
};

// Prints each part as it is inserted.
class Text {
 public:
  Text& operator<<(const char* text) {
    board::print(text);
    return *this;
  }
  Text& operator<<(std::uint32_t value) {
    char digits[11] = {};
    char* first = digits + sizeof digits - 1;
    do {
      *--first = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    return *this << first;
  }
  Text& operator<<(Hex hex) {
    char digits[] = "0x00000000";
    for (char* digit = digits + 9; hex.value != 0; hex.value >>= 4) {
      *digit-- = "0123456789abcdef"[hex.value & 15];
    }
    return *this << digits;
  }
  Text& operator<<(Status status) { return *this << static_cast<std::uint32_t>(status); }
  // For the boot report (firmware/boot/boot_report.h).
  void flash() {}
  void name(const char* text) { *this << text; }
  void count(std::uint32_t value, const char* nouns) { *this << value << nouns; }
};

}  // namespace espalier::bare
