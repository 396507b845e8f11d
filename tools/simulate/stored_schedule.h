#pragma once
// A schedule file of any number of nodes, its programs kept in little memory. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/schedule/program_store.h"
#include "planner/files/loaded_schedule.h"

namespace espalier::tools {

class StoredSchedule {
 public:
  // Opens a schedule file's bytes and decodes every program once. Throws Failure as load_schedule()
  // does.
  StoredSchedule(std::string name, std::vector<std::uint8_t> bytes, const std::string& topology);

  // Its `programs` are empty until decode_all().
  [[nodiscard]] const planner::LoadedSchedule& loaded() const { return loaded_; }
  void decode_all();

  [[nodiscard]] const ProgramStore& programs() const { return programs_; }
  [[nodiscard]] std::uint32_t nodes() const { return programs_.size(); }
  // node's program; valid until the next call.
  [[nodiscard]] const Program& program(std::uint32_t node) const;
  [[nodiscard]] const Program& first() const { return first_; }
  // The links that the programs name, as sim::Network takes them.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& links() const { return links_; }

 private:
  planner::LoadedSchedule loaded_;
  ProgramStore programs_;
  std::vector<std::vector<std::uint32_t>> links_;
  OwnedProgram first_;
  std::unique_ptr<StoredProgram> buffer_;
};

}  // namespace espalier::tools
