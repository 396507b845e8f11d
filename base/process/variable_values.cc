// The values of environment variables, and what is wrong with them.

#include <algorithm>

#include "base/one_line.h"
#include "base/process/variables.h"

namespace espalier {
namespace {

bool is_digit(char character) { return character >= '0' && character <= '9'; }

bool is_control_code(char character) {
  const auto code = static_cast<unsigned char>(character);
  return code < 0x20 || code == 0x7f;
}

}  // namespace

Error wrong_value(Variable variable, const std::string& expected) {
  const char* const value = raw_value(variable);
  constexpr std::size_t kMaxShown = 200;
  std::string text = value == nullptr ? "" : value;
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return {std::string(row_of(variable).name) + "='" + one_line(text) + "'; expected " + expected};
}

Result<std::optional<std::string>> read_text(Variable variable) {
  const char* const value = raw_value(variable);
  if (value == nullptr) return std::nullopt;
  const std::string text = value;
  if (text.empty() || std::any_of(text.begin(), text.end(), is_control_code)) {
    return fail(wrong_value(variable, row_of(variable).expected));
  }
  return text;
}

Result<std::optional<std::uint32_t>> read_number(Variable variable, std::uint32_t min,
                                                 std::uint32_t max) {
  const char* const value = raw_value(variable);
  if (value == nullptr) return std::nullopt;
  const std::string text = value;
  const bool is_number =
      !text.empty() && text.size() <= 10 && std::all_of(text.begin(), text.end(), is_digit);
  const unsigned long long number = is_number ? std::stoull(text) : 0;
  if (!is_number || number < min || number > max) {
    return fail(wrong_value(
        variable, "a whole number from " + std::to_string(min) + " to " + std::to_string(max)));
  }
  return static_cast<std::uint32_t>(number);
}

}  // namespace espalier
