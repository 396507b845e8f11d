#pragma once
// Text of other processes, hosts and boards, made fit for a terminal. Host only.

#include <string>
#include <string_view>

namespace espalier {

// Returns the text for one line on a terminal. Bytes that could control the terminal or reorder the
// line become \xNN: control characters (also U+0080 to U+009F), line separators, marks of the
// writing direction, and bytes that are not UTF-8. The result is UTF-8.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace espalier
