#include "base/one_line.h"

#include <cstddef>
#include <cstdint>

namespace espalier {
namespace {

// Returns the size in bytes of the UTF-8 character at the beginning of `text`, which is not empty,
// and sets `character`. 0: these bytes are not UTF-8.
std::size_t decode_utf8(std::string_view text, std::uint32_t& character) {
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<std::uint8_t>(text[0]);
  const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  character = size == 1 ? first : first & (0x7fu >> size);
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<std::uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    character = character << 6 | (next & 0x3fu);
  }
  const bool is_surrogate = character >= 0xd800 && character < 0xe000;
  return character < kLeast[size] || is_surrogate || character > 0x10ffff ? 0 : size;
}

bool is_control(std::uint32_t character) {
  const auto is_in = [character](std::uint32_t first, std::uint32_t last) {
    return character >= first && character <= last;
  };
  return character < ' ' || is_in(0x7f, 0x9f) || character == 0x61c || is_in(0x200e, 0x200f) ||
         is_in(0x2028, 0x202e) || is_in(0x2066, 0x2069);
}

}  // namespace

std::string one_line(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string line;
  while (!text.empty()) {
    std::uint32_t character = 0;
    const std::size_t decoded = decode_utf8(text, character);
    const std::size_t size = decoded == 0 ? 1 : decoded;
    if (decoded != 0 && !is_control(character)) {
      line += text.substr(0, size);
    } else {
      for (const char c : text.substr(0, size)) {
        const auto byte = static_cast<std::uint8_t>(c);
        line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      }
    }
    text.remove_prefix(size);
  }
  return line;
}

}  // namespace espalier
