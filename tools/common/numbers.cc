#include "tools/common/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "base/parse_number.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {

std::uint64_t whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t number = 0;
  if (!parse_number(text, number) || number < least || number > most) {
    bad_input(option + " '" + one_line(text) + "' is not a whole number from " +
              std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

double real_number(const std::string& option, const std::string& text, double least, double most) {
  double number = 0;
  if (!parse_number(text, number) || !(number >= least && number <= most)) {
    bad_input(option + " '" + one_line(text) + "' is not a number from " + real_text(least) +
              " to " + real_text(most));
  }
  return number;
}

std::string real_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::uint64_t byte_count(const std::string& option, const std::string& text, std::uint64_t most) {
  struct Unit {
    const char* suffix;
    std::uint64_t bytes;
  };
  constexpr std::uint64_t kKibi = 1024, kKilo = 1000;
  constexpr Unit kUnits[] = {{"KiB", kKibi},
                             {"MiB", kKibi * kKibi},
                             {"GiB", kKibi * kKibi * kKibi},
                             {"KB", kKilo},
                             {"kB", kKilo},
                             {"MB", kKilo * kKilo},
                             {"GB", kKilo * kKilo * kKilo},
                             {"K", kKibi},
                             {"M", kKibi * kKibi},
                             {"G", kKibi * kKibi * kKibi},
                             {"", 1}};
  const Unit* unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&text](const Unit& known) {
    return text.ends_with(known.suffix);
  });
  const std::string digits = text.substr(0, text.size() - std::string_view(unit->suffix).size());
  const auto refuse = [&](const std::string& why) {
    bad_input(option + " '" + one_line(text) + "' is not " + why + " (" + kByteUnits + ")");
  };
  // Without a fraction exactly; with one as far as a double is exact.
  std::uint64_t whole = 0;
  if (parse_number(digits, whole) && whole <= most / unit->bytes) return whole * unit->bytes;
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto [behind, wrong] =
      std::from_chars(digits.data(), end, number, std::chars_format::fixed);
  const double bytes = number * static_cast<double>(unit->bytes);
  if (wrong != std::errc() || behind != end || digits.front() == '-' ||
      !(bytes <= static_cast<double>(most))) {
    refuse("a number of bytes from 0 to " + std::to_string(most));
  }
  if (bytes > 0x1p53 || bytes != std::floor(bytes)) refuse("a whole number of bytes");
  return static_cast<std::uint64_t>(bytes);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace espalier::tools
