#pragma once
// Whole numbers as typed, with an error that says what would be right; and the middle of several.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::tools {

// `text` as a number from `least` to `most`. Throws Failure: "--bytes 'x' is not ...".
[[nodiscard]] std::uint64_t whole_number(const std::string& option, const std::string& text,
                                         std::uint64_t least, std::uint64_t most);

// The same with an optional KiB, MiB or GiB behind it: "64KiB".
[[nodiscard]] std::uint64_t byte_count(const std::string& option, const std::string& text,
                                       std::uint64_t most);

// The middle one, or the mean of the two in the middle; 0 of none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace espalier::tools
