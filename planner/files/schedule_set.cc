#include "planner/files/schedule_set.h"

#include <memory>

#include "base/one_line.h"
#include "base/read_file.h"
#include "base/try.h"
#include "collectives/schedule/selection_file.h"
#include "espalier/internal/base/assert.h"

namespace espalier::planner {
namespace {

tl::unexpected<Error> refuse_selection(const std::string& name, Status status) {
  const char* why = status_name(status);
  switch (status) {
    case Status::kTruncated: why = "truncated: the file ends before its contents do"; break;
    case Status::kCorrupt: why = "corrupt: a checksum does not match"; break;
    case Status::kMalformed:
      why = "a selection whose table breaks the format's rules, or does not fit its schedules";
      break;
    default: break;
  }
  return fail("'" + one_line(name) + "': " + why + "; 'espalier compile' writes schedule files");
}

// Checks every node's program of a member with the table. Returns the algorithm's name.
Result<std::string> check_member(const std::string& name, const SelectionFile& file,
                                 std::uint32_t index) {
  const auto program = std::make_unique<DecodedProgram>();
  std::string algorithm;
  const std::uint32_t nodes = file.schedule(index).nodes();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Status status = file.program(index, node, *program);
    if (status != Status::kOk) return refuse_selection(name, status);
    if (node == 0) algorithm = program->algorithm;
  }
  return algorithm;
}

}  // namespace

Result<ScheduleSet> read_schedules(std::string name, std::vector<std::uint8_t> bytes,
                                   const ShowProgress& progress) {
  ScheduleSet set;
  set.name = std::move(name);
  if (!is_selection_file(bytes.data(), bytes.size())) {
    set.members.push_back({set.name, "", std::move(bytes)});
    return set;
  }
  set.bytes = std::move(bytes);
  const auto file = std::make_unique<SelectionFile>();
  const Status status = file->open(set.bytes.data(), set.bytes.size());
  if (status != Status::kOk) return refuse_selection(set.name, status);
  set.selected = file->selected();
  std::size_t encoded = 0;
  const std::uint8_t* selection = file->selection(encoded);
  set.encoded.assign(selection, selection + encoded);
  for (std::uint32_t i = 0; i < file->schedules(); ++i) {
    ESPALIER_TRY_TO(auto algorithm, check_member(set.name, *file, i));
    std::size_t size = 0;
    const std::uint8_t* begin = file->bytes(i, size);
    set.members.push_back({"schedule " + std::to_string(i) + " of " + set.name,
                           std::move(algorithm), std::vector<std::uint8_t>(begin, begin + size)});
    show(progress, static_cast<double>(i) / file->schedules());
  }
  return set;
}

Result<ScheduleSet> read_schedules(const std::string& path, const ShowProgress& progress) {
  ESPALIER_TRY_TO(const auto text, read_file(path, FileKind::kSchedule));
  return read_schedules(path, std::vector<std::uint8_t>(text.begin(), text.end()), progress);
}

Result<ChosenMember> choose_member(const ScheduleSet& set, const reference::ReferenceInput& what) {
  if (!set.selected) return ChosenMember{};
  const SelectionRow* row = find_row(set.selected->table, what.bytes, commutes(what.op));
  if (row == nullptr) {
    return fail("'" + one_line(set.name) +
                "': no schedule of the selection keeps the order of ranks, and the operator does "
                "not commute; expected one that commutes");
  }
  ESPALIER_ASSERT(row->program < set.members.size());
  return ChosenMember{row->program, row};
}

const ScheduleSet::Member& first_member(const ScheduleSet& set) {
  return set.members.at(set.selected ? set.selected->table.rows[0].program : 0);
}

bool serves_all(const ScheduleSet& set) {
  ESPALIER_ASSERT(set.selected && set.selected->table.rows_count > 0);
  return !set.selected->table.rows[0].needs_commutative;
}

}  // namespace espalier::planner
