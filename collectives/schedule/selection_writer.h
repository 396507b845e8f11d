#pragma once
// Writes the file of a selection. Host only. The format: selection_file.h.

#include <cstdint>
#include <vector>

#include "collectives/schedule/selection.h"

namespace espalier {

// Writes the selection, in the encoding whose digest its schedules have, and the bytes of their
// schedule files, in the table's order, to `file`. encode_selection's errors; kBadArgument: another
// number of schedule files. Does not look into the schedule files.
[[nodiscard]] Status write_selection_file(const SelectionTable& table,
                                          const std::vector<std::vector<std::uint8_t>>& schedules,
                                          std::vector<std::uint8_t>& file);

// The bytes of a selection; none if check_selection_table() refuses it.
[[nodiscard]] std::vector<std::uint8_t> selection_bytes(const SelectionTable& table);

}  // namespace espalier
