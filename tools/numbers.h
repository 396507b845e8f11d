#pragma once
// Whole numbers as typed, with an error that says what would be right.

#include <cstdint>
#include <string>

namespace espalier::tools {

// `text` as a number from `least` to `most`. Throws Failure: "--bytes 'x' is not ...".
[[nodiscard]] std::uint64_t whole_number(const std::string& option, const std::string& text,
                                         std::uint64_t least, std::uint64_t most);

// The same with an optional KiB, MiB or GiB behind it: "64KiB".
[[nodiscard]] std::uint64_t byte_count(const std::string& option, const std::string& text,
                                       std::uint64_t most);

}  // namespace espalier::tools
