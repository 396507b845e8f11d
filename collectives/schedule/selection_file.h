#pragma once
// The file of a selection: its table, and the schedule files of its schedules. The reader is
// freestanding.
//
//   0  8  magic "ESPALIER"             16  4  schedules
//   8  4  file version (2)             20  4  bytes of the selection
//  12  4  CRC-32 of bytes 16 ..        24  8  length of the whole file
//         end of the table
//
//  32     the selection (message Selection), then zeros up to a multiple of 8
//         the table, one row per schedule: 8 offset, 8 length
//         the schedule files (file.h) in the selection's order, up to the end of the file
//
// All numbers are little-endian. Any flipped or missing bit is an error, as in a schedule file.

#include <cstddef>
#include <cstdint>

#include "collectives/schedule/selection.h"
#include "espalier/collectives/schedule/file.h"

namespace espalier {

// The file version of the file of a selection.
inline constexpr std::uint32_t kSelectionFileVersion = 2;

// Whether the bytes begin as the file of a selection, and not as that of one schedule.
[[nodiscard]] bool is_selection_file(const std::uint8_t* bytes, std::size_t size);

// The file of a selection in memory.
class SelectionFile {
 public:
  // Opens the file in `bytes`, which must outlive this object, and checks everything except the
  // descriptors. Errors: those of ScheduleFile::open() and decode_selection(); kMalformed if two
  // schedules are for another topology or number of ranks.
  [[nodiscard]] Status open(const std::uint8_t* bytes, std::size_t size);
  // Returns the table and the digest of the selection.
  [[nodiscard]] const Selected& selected() const { return selected_; }
  // Returns the number of schedules; 0 before open().
  [[nodiscard]] std::uint32_t schedules() const { return selected_.table.schedules_count; }
  // Returns the file of schedule `index` < schedules().
  [[nodiscard]] const ScheduleFile& schedule(std::uint32_t index) const { return files_[index]; }
  // Returns the `size` bytes of that file.
  [[nodiscard]] const std::uint8_t* bytes(std::uint32_t index, std::size_t& size) const;
  // Returns the `size` bytes of the selection, whose digest is selected().digest.
  [[nodiscard]] const std::uint8_t* selection(std::size_t& size) const;
  // Decodes and checks the node's program of a schedule, as ScheduleFile::program(). Also the
  // errors of check_selected().
  [[nodiscard]] Status program(std::uint32_t index, std::uint32_t node, DecodedProgram& out) const;

 private:
  [[nodiscard]] Status open_into(const std::uint8_t* bytes, std::size_t size);

  const std::uint8_t* table_ = nullptr;
  const std::uint8_t* bytes_ = nullptr;
  Selected selected_ = {};
  ScheduleFile files_[kMaxSelected];
};

}  // namespace espalier
