#pragma once
// Numbers as typed, and the median. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "base/numbers.h"

namespace espalier::tools {

using espalier::kByteUnits;
using espalier::real_text;
// base/numbers.h. Throw Failure (bad input) with its errors.
[[nodiscard]] std::uint64_t whole_number(const std::string& option, const std::string& text,
                                         std::uint64_t least, std::uint64_t most);
[[nodiscard]] double real_number(const std::string& option, const std::string& text, double least,
                                 double most);
[[nodiscard]] std::uint64_t byte_count(const std::string& option, const std::string& text,
                                       std::uint64_t most);

// Returns the median: the mean of the two middle values if their number is even, 0 if there is
// none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace espalier::tools
