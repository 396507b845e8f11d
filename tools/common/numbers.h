#pragma once
// Numbers as typed, with an error that says what is expected; and the median. Host only.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::tools {

// Returns `text` as a number from `least` to `most`. Throws Failure (bad input) if it is not one:
// "--rank 'x' is not a whole number from ...".
[[nodiscard]] std::uint64_t whole_number(const std::string& option, const std::string& text,
                                         std::uint64_t least, std::uint64_t most);
// The same for any number, such as 2e-6.
[[nodiscard]] double real_number(const std::string& option, const std::string& text, double least,
                                 double most);
// "2e-06"
[[nodiscard]] std::string real_text(double number);

// Units of bytes, for help texts.
inline constexpr const char* kByteUnits =
    "K, M, G or KiB, MiB, GiB: powers of 1024; KB, MB, GB: of 1000";
// Returns a number of bytes, at most `most`: "4096", "64KiB", "1.5MiB", "1GB". Throws Failure (bad
// input) for another unit or a fraction of a byte.
[[nodiscard]] std::uint64_t byte_count(const std::string& option, const std::string& text,
                                       std::uint64_t most);

// Returns the median: the mean of the two middle values if their number is even, 0 if there is
// none.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace espalier::tools
