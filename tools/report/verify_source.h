#pragma once
// The source of the programs of `espalier verify`: a schedule file, or a generator run again for
// each question, so that schedules of a million ranks need the memory of one program.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/verify/verify.h"
#include "planner/files/loaded_schedule.h"
#include "planner/make/plan.h"

namespace espalier::tools {

class Source {
 public:
  // The bytes of a schedule file, called `name` in messages, which must be for `topology` if that
  // is not empty. Every descriptor is decoded once, and kept if there are few. Throws Failure (bad
  // input).
  Source(std::string name, std::vector<std::uint8_t> bytes, const std::string& topology = "");
  // The programs that compiling it would write. program() throws Failure (bad input).
  explicit Source(planner::PlannedSchedule schedule);

  // The name of the file, or "two-tree, root 3".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const topology::Topology& topology() const { return *topology_; }
  // The program of `node`; valid until the next call.
  [[nodiscard]] const Program& program(std::uint32_t node);
  // Moves the bytes of the file out: must be the last call.
  [[nodiscard]] std::vector<std::uint8_t> take_bytes() { return std::move(loaded_.bytes); }

 private:
  explicit Source(planner::LoadedSchedule loaded);

  planner::LoadedSchedule loaded_;     // of a file
  planner::PlannedSchedule schedule_;  // that is not of a file
  std::string name_;
  const topology::Topology* topology_ = nullptr;
  std::unique_ptr<OwnedProgram> buffer_;
  std::uint32_t in_buffer_ = 0;  // whose program that is
  bool filled_ = false;
};

}  // namespace espalier::tools
