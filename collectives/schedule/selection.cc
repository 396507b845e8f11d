// Checks selections, and chooses by them.

#include "collectives/schedule/selection.h"

#include "base/digest.h"
#include "collectives/schedule/raw_enumerator.h"

#if ESPALIER_MAX_SELECTIONS > 0
namespace espalier {
namespace {

bool schedules_differ(const SelectionTable& table) {
  for (std::uint32_t i = 0; i < table.schedules_count; ++i) {
    for (std::uint32_t k = 0; k < i; ++k) {
      if (table.schedules[i] == table.schedules[k]) return false;
    }
  }
  return table.schedules_count > 0;
}

// Whether the rows are as selection.h says.
bool rows_fit(const SelectionTable& table) {
  std::uint32_t named = 0;  // bit i: schedule i is in a row
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    const SelectionRow& row = table.rows[i];
    if (row.program >= table.schedules_count || row.from_bytes > kMaxMessageBytes) return false;
    const bool begins = i == 0 || row.needs_commutative != table.rows[i - 1].needs_commutative;
    if (begins) {
      // Rows for all operators come first, so a class begins again only after the wrong one.
      if (row.from_bytes != 0 || (i > 0 && !row.needs_commutative)) return false;
    } else if (row.from_bytes <= table.rows[i - 1].from_bytes ||
               row.program == table.rows[i - 1].program) {
      return false;
    }
    if (row.needs_commutative && !combines_operands(Collective(table.collective))) return false;
    named |= 1u << row.program;
  }
  static_assert(kMaxSelected <= 31);
  return table.rows_count > 0 && named == (1u << table.schedules_count) - 1;
}

bool has_commuting_rows(const SelectionTable& table) {
  return table.rows_count > 0 && table.rows[table.rows_count - 1].needs_commutative;
}

}  // namespace

Status check_selection_table(const SelectionTable& table) {
  if (table.format_version != kSelectionVersion) return Status::kBadVersion;
  if (table.required_features != 0) return Status::kUnknownFeature;
  const std::uint32_t collective = raw_enumerator(table.collective);
  if (collective == 0 || collective > Collective::kBarrier) return Status::kMalformed;
  const bool rooted = has_root(Collective(table.collective)) || table.root == 0;
  const bool fits =
      rooted && table.topology_digest != kAnyTopology && schedules_differ(table) && rows_fit(table);
  return fits ? Status::kOk : Status::kMalformed;
}

std::uint64_t selection_digest(const std::uint8_t* bytes, std::size_t size) {
  const std::uint64_t digest = digest_bytes(kDigestSeed, bytes, size);
  return digest == 0 ? 1 : digest;
}

std::uint64_t digest_in_selection(std::uint64_t selection, std::uint64_t alone) {
  return digest_u64(selection, alone);
}

Status check_selected(const Selected& selected, std::uint32_t index, const Program& program) {
  const SelectionTable& table = selected.table;
  if (index >= table.schedules_count || program.collective != table.collective ||
      program.root != table.root || program.topology_digest != table.topology_digest ||
      program.schedule_digest != digest_in_selection(selected.digest, table.schedules[index])) {
    return Status::kMalformed;
  }
  for (std::uint32_t i = 0; program.needs_commutative && i < table.rows_count; ++i) {
    const SelectionRow& row = table.rows[i];
    if (row.program == index && !row.needs_commutative) return Status::kMalformed;
  }
  return Status::kOk;
}

const SelectionRow* find_row(const SelectionTable& table, std::uint64_t bytes, bool commutes) {
  const bool of_commuting = commutes && has_commuting_rows(table);
  const SelectionRow* found = nullptr;
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    const SelectionRow& row = table.rows[i];
    if (row.needs_commutative == of_commuting && row.from_bytes <= bytes) found = &row;
  }
  return found;
}

std::uint64_t started_bytes(ElementCounts counts, std::uint32_t element_bytes) {
#if ESPALIER_UNEQUAL_COUNTS
  std::uint64_t count = counts.count;
  for (std::uint64_t k = 0; k < counts.entries; ++k) {
    if (counts.elements[k] > count) count = counts.elements[k];
  }
#else
  const std::uint64_t count = counts;
#endif
  if (count >= kMaxMessageBytes) return kMaxMessageBytes;
  const std::uint64_t bytes = count * element_bytes;
  return bytes < kMaxMessageBytes ? bytes : kMaxMessageBytes;
}

}  // namespace espalier
#endif
