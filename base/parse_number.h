#pragma once
// Numbers in text. Host only.

#include <charconv>
#include <string_view>
#include <system_error>

namespace espalier {

// Whether all of the text is a number. It is then in `value`.
template <typename T>
[[nodiscard]] bool parse_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace espalier
