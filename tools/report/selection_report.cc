#include "tools/report/selection_report.h"

#include "tools/common/output.h"

namespace espalier::tools {
namespace {

std::string row_text(const planner::ScheduleSet& set, const SelectionRow& row) {
  return set.members.at(row.program).algorithm + " (from " + counted(row.from_bytes, "byte") +
         (counts_per_rank(Collective(set.selected->table.collective)) ? " a rank" : "") +
         (row.needs_commutative ? ", for operators that commute)" : ")");
}

}  // namespace

std::string reason_text(const planner::ScheduleSet& set, const planner::ChosenMember& chosen,
                        std::uint64_t bytes) {
  if (chosen.row == nullptr) return "";
  return counted(bytes, "byte") + ": " + row_text(set, *chosen.row);
}

std::string rows_text(const planner::ScheduleSet& set) {
  std::string text;
  const SelectionTable& table = set.selected->table;
  for (std::uint32_t i = 0; i < table.rows_count; ++i) {
    const SelectionRow& row = table.rows[i];
    text += "  schedule " + std::to_string(row.program) + ": " + row_text(set, row) + "\n";
  }
  return text;
}

std::string selection_text(const planner::ScheduleSet& set) {
  const SelectionTable& table = set.selected->table;
  const Collective collective(table.collective);
  return std::string(collective_name(collective)) + " by " +
         counted(table.schedules_count, "schedule") +
         (has_root(collective) ? ", root " + std::to_string(table.root) : "") + ", model " +
         hex(table.model_digest) + ", selection " + hex(set.selected->digest);
}

Json selection_json(const planner::ScheduleSet& set) {
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
