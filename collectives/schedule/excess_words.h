#pragma once
// The words for a program whose tables are too long. Host only.

#include <string>

#include "collectives/schedule/table_limits.h"

namespace espalier {

// Returns "its program needs 66 terms, and boards have room for 24 (more on hosts: --limits host)".
[[nodiscard]] std::string excess_words(const TableExcess& excess);

}  // namespace espalier
