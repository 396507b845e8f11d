#include "tools/select/schedule_set.h"

#include <memory>

#include "espalier/collectives/schedule/selection_file.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

[[noreturn]] void refuse_selection(const std::string& name, Status status) {
  const char* why = status_name(status);
  switch (status) {
    case Status::kTruncated: why = "truncated: the file ends before its contents do"; break;
    case Status::kCorrupt: why = "corrupt: a checksum does not match"; break;
    case Status::kMalformed:
      why = "a selection whose table breaks the format's rules, or does not fit its schedules";
      break;
    default: break;
  }
  bad_input("'" + one_line(name) + "': " + why + "; 'espalier compile' writes schedule files");
}

// Checks every node's program of a member with the table. Returns the algorithm's name.
std::string check_member(const std::string& name, const SelectionFile& file, std::uint32_t index) {
  const auto program = std::make_unique<DecodedProgram>();
  std::string algorithm;
  const std::uint32_t nodes = file.schedule(index).nodes();
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Status status = file.program(index, node, *program);
    if (status != Status::kOk) refuse_selection(name, status);
    if (node == 0) algorithm = program->algorithm;
  }
  return algorithm;
}

std::string row_text(const ScheduleSet& set, const SelectionRow& row) {
  const SelectionTable& table = set.selected->table;
  return set.members.at(row.program).algorithm + " (from " + counted(row.from_bytes, "byte") +
         (counts_per_rank(Collective(table.collective)) ? " a rank" : "") +
         (row.needs_commutative ? ", for operators that commute)" : ")");
}

}  // namespace

ScheduleSet read_schedules(std::string name, std::vector<std::uint8_t> bytes) {
  ScheduleSet set;
  set.name = std::move(name);
  if (!is_selection_file(bytes.data(), bytes.size())) {
    set.members.push_back({set.name, "", std::move(bytes)});
    return set;
  }
  set.bytes = std::move(bytes);
  const auto file = std::make_unique<SelectionFile>();
  const Status status = file->open(set.bytes.data(), set.bytes.size());
  if (status != Status::kOk) refuse_selection(set.name, status);
  set.selected = file->selected();
  std::size_t encoded = 0;
  const std::uint8_t* selection = file->selection(encoded);
  set.encoded.assign(selection, selection + encoded);
  Progress progress("loading");
  for (std::uint32_t i = 0; i < file->schedules(); ++i) {
    std::size_t size = 0;
    const std::uint8_t* begin = file->bytes(i, size);
    set.members.push_back({"schedule " + std::to_string(i) + " of " + set.name,
                           check_member(set.name, *file, i),
                           std::vector<std::uint8_t>(begin, begin + size)});
    progress.show(static_cast<double>(i) / file->schedules());
  }
  return set;
}

ScheduleSet read_schedules(const std::string& path) {
  const std::string text = read_given(path, FileKind::kSchedule);
  return read_schedules(path, std::vector<std::uint8_t>(text.begin(), text.end()));
}

ChosenMember choose_member(const ScheduleSet& set, const reference::ReferenceInput& what) {
  if (!set.selected) return {};
  const SelectionTable& table = set.selected->table;
  const bool commutes = what.op.op != Op::kCustom || what.op.commutes;
  const SelectionRow* row = find_row(table, what.bytes, commutes);
  if (row == nullptr) {
    bad_input("'" + one_line(set.name) +
              "': no schedule of the selection keeps the order of ranks, and the operator does "
              "not commute; expected one that commutes");
  }
  return {row->program, counted(what.bytes, "byte") + ": " + row_text(set, *row)};
}

const ScheduleSet::Member& first_member(const ScheduleSet& set) {
  return set.members.at(set.selected ? set.selected->table.rows[0].program : 0);
}

void add_schedule_option(Command command, std::string& number) {
  command.text("--schedule", number, "Of a selection: this schedule, by its number in the table");
}

std::optional<std::size_t> given_member(const ScheduleSet& set, const std::string& number) {
  if (!number.empty()) {
    return static_cast<std::size_t>(whole_number("--schedule", number, 0, set.members.size() - 1));
  }
  if (set.selected) return std::nullopt;
  return 0;
}

const ScheduleSet::Member& need_member(const ScheduleSet& set, std::string_view number,
                                       std::string_view what) {
  const auto member = given_member(set, std::string(number));
  if (member) return set.members[*member];
  bad_input(std::string(what) + " is of one schedule, and '" + one_line(set.name) + "' has " +
            std::to_string(set.members.size()) + "; expected --schedule 0 to " +
            std::to_string(set.members.size() - 1));
}

bool serves_all(const ScheduleSet& set) { return !set.selected->table.rows[0].needs_commutative; }

std::string rows_text(const ScheduleSet& set) {
  std::string text;
  const SelectionTable& table = set.selected->table;
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    const SelectionRow& row = table.rows[i];
    text += "  schedule " + std::to_string(row.program) + ": " + row_text(set, row) + "\n";
  }
  return text;
}

std::string selection_text(const ScheduleSet& set) {
  const SelectionTable& table = set.selected->table;
  const Collective collective(table.collective);
  return std::string(collective_name(collective)) + " by " +
         counted(table.schedules_count, "schedule") +
         (has_root(collective) ? ", root " + std::to_string(table.root) : "") + ", model " +
         hex(table.model_digest) + ", selection " + hex(set.selected->digest);
}

Json selection_json(const ScheduleSet& set) {
  const SelectionTable& table = set.selected->table;
  Json json = {{"digest", hex(set.selected->digest)},
               {"model_digest", hex(table.model_digest)},
               {"rows", Json::array()}};
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    const SelectionRow& row = table.rows[i];
    json["rows"].push_back({{"from_bytes", row.from_bytes},
                            {"needs_commutative", row.needs_commutative},
                            {"schedule", row.program},
                            {"algorithm", set.members.at(row.program).algorithm}});
  }
  return json;
}

}  // namespace espalier::tools
