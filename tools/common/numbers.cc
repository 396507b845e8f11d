#include "tools/common/numbers.h"

#include <algorithm>
#include <charconv>

#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {

std::uint64_t whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || number < least || number > most) {
    bad_input(option + " '" + one_line(text) + "' is no whole number from " +
              std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

std::uint64_t byte_count(const std::string& option, const std::string& text, std::uint64_t most) {
  std::uint64_t unit = 1;
  std::string digits = text;
  for (const char* suffix : {"KiB", "MiB", "GiB"}) {
    unit *= 1024;
    if (!text.ends_with(suffix)) continue;
    digits.resize(digits.size() - 3);
    return unit * whole_number(option, digits, 0, most / unit);
  }
  return whole_number(option, digits, 0, most);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace espalier::tools
