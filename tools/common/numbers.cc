#include "tools/common/numbers.h"

#include <algorithm>

#include "tools/common/failure.h"

namespace espalier::tools {

std::uint64_t whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  return or_bad_input(espalier::whole_number(option, text, least, most));
}

double real_number(const std::string& option, const std::string& text, double least, double most) {
  return or_bad_input(espalier::real_number(option, text, least, most));
}

std::uint64_t byte_count(const std::string& option, const std::string& text, std::uint64_t most) {
  return or_bad_input(espalier::byte_count(option, text, most));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace espalier::tools
