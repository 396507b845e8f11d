#pragma once
// A selection: several schedules of one collective, and the table that says which of them serves a
// message (proto/schedule.proto, docs/descriptor.md). Freestanding.

#include <cstddef>
#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// A row of a selection (message SelectionRow of proto/schedule.proto, which explains its fields).
using SelectionRow = espalier_SelectionRow;
// A selection as the schema has it (message Selection).
using SelectionTable = espalier_Selection;

inline constexpr std::uint32_t kSelectionVersion = 1;  // the only format_version that is accepted
// The largest number of schedules of a selection.
inline constexpr std::uint32_t kMaxSelected =
    sizeof(SelectionTable::schedules) / sizeof(SelectionTable::schedules[0]);
// The largest number of rows of a selection.
inline constexpr std::uint32_t kMaxSelectionRows =
    sizeof(SelectionTable::rows) / sizeof(SelectionTable::rows[0]);
// No selection encodes to more bytes than this.
inline constexpr std::size_t kMaxSelectionBytes = espalier_Selection_size;

// A selection of a node or a file.
struct Selected {
  SelectionTable table;
  std::uint64_t digest = 0;  // the same on all nodes
};

// Whether operands of the collective are combined, so that it matters whether an operator commutes.
[[nodiscard]] constexpr bool combines_operands(Collective collective) {
  return (collective >= Collective::kReduce && collective <= Collective::kExscan) ||
         collective == Collective::kReduceScatter;
}

// The loader's checks of the table alone. kBadVersion: another format version. kUnknownFeature: an
// unknown required feature. kMalformed unless all of these hold:
//  * The collective is known; the root is 0 if it has none.
//  * There are schedules, whose digests differ, and each is in a row.
//  * Rows with needs_commutative come last, and occur only if operands are combined. In each class
//    from_bytes ascends from 0 to at most kMaxMessageBytes, and neighbours name different
//    schedules.
[[nodiscard]] Status check_selection_table(const SelectionTable& table);

// Decodes and checks a selection. Accepts any bytes. Errors, on which `out` is zeros: kTruncated,
// kTooLarge and kWrongTopology as decode_program(), and those of check_selection_table().
[[nodiscard]] Status decode_selection(const std::uint8_t* bytes, std::size_t size,
                                      std::uint64_t topology_digest, Selected& out);
// Encodes `table`; `written` is its size, 0 on error. kTooLarge: `capacity` is too small;
// kMaxSelectionBytes never are. check_selection_table's errors.
[[nodiscard]] Status encode_selection(const SelectionTable& table, std::uint8_t* bytes,
                                      std::size_t capacity, std::size_t& written);

// The digest of a selection with these bytes; never 0.
[[nodiscard]] std::uint64_t selection_digest(const std::uint8_t* bytes, std::size_t size);
// The digest that a schedule has inside of a selection; `alone`: outside of it.
[[nodiscard]] std::uint64_t digest_in_selection(std::uint64_t selection, std::uint64_t alone);

// Checks a node's program of schedule `index` < schedules_count. kMalformed unless all of these
// hold:
//  * Collective, root and topology are the table's.
//  * The schedule's digest is that of this schedule in this selection. So a table that was changed
//    is refused with every program.
//  * A program of a row without needs_commutative has no needs_commutative.
[[nodiscard]] Status check_selected(const Selected& selected, std::uint32_t index,
                                    const Program& program);

// Returns the row for a message of `bytes`: of the whole message, or of one rank's part where
// counts are per rank (if these differ, of the largest). Null: no row is for an operator that does
// not commute, and this one does not.
[[nodiscard]] const SelectionRow* find_row(const SelectionTable& table, std::uint64_t bytes,
                                           bool commutes);

// Returns the bytes of a collective started with `counts`, for find_row(). At most
// kMaxMessageBytes: longer messages are not possible.
[[nodiscard]] std::uint64_t started_bytes(ElementCounts counts, std::uint32_t element_bytes);

}  // namespace espalier
