#pragma once
// Programs on a host: values that own the tables they look up, and the writer of their schedule
// file (file.h). Host only.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// A program with its own table. Copies from any program are deep, so an OwnedProgram may outlive
// the generator, file or schedule that it came from.
class OwnedProgram : public Program {
 public:
  // An empty program: every field is 0.
  OwnedProgram() { clear(); }
  // A deep copy. Moving takes the table instead and clears the other program.
  OwnedProgram(const Program& program) { copy(program); }
  OwnedProgram(const OwnedProgram& program) : Program() { copy(program); }
  OwnedProgram(OwnedProgram&& program) noexcept { take(program); }
  // Assigns a deep copy. Moving takes the table instead and clears the other program.
  OwnedProgram& operator=(const Program& program) {
    if (this != &program) copy(program);
    return *this;
  }
  OwnedProgram& operator=(const OwnedProgram& program) {
    return *this = static_cast<const Program&>(program);
  }
  OwnedProgram& operator=(OwnedProgram&& program) noexcept {
    if (this != &program) take(program);
    return *this;
  }
  ~OwnedProgram() = default;

  // Sets the program's table to these entries.
  void set_table(const std::vector<std::int16_t>& entries) {
    std::vector<std::uint8_t> bytes;
    bytes.reserve(2 * entries.size());
    for (const std::int16_t entry : entries) {
      bytes.push_back(static_cast<std::uint8_t>(entry & 255));
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint16_t>(entry) >> 8));
    }
    own(std::move(bytes));
  }
  // Copies the entries that `table` points to, unless this object owns them already.
  void keep_table() {
    if (!owns_table()) own(table_bytes(*this));
  }

 private:
  static std::vector<std::uint8_t> table_bytes(const Program& program) {
    if (program.table.size == 0) return {};
    return {program.table.bytes, program.table.bytes + program.table.size};
  }
  [[nodiscard]] bool owns_table() const {
    return table.size == table_.size() && (table_.empty() || table.bytes == table_.data());
  }
  void copy(const Program& program) {
    std::vector<std::uint8_t> bytes = table_bytes(program);
    static_cast<espalier_Program&>(*this) = program;
    own(std::move(bytes));
  }
  void take(OwnedProgram& program) noexcept {
    program.keep_table();
    static_cast<espalier_Program&>(*this) = program;
    own(std::move(program.table_));
    program.clear();
  }
  void own(std::vector<std::uint8_t> bytes) noexcept {
    table_ = std::move(bytes);
    table.bytes = table_.empty() ? nullptr : table_.data();
    table.size = static_cast<std::uint32_t>(table_.size());
  }

  std::vector<std::uint8_t> table_;
};

// The programs of all nodes of a schedule, by node.
using Programs = std::vector<OwnedProgram>;

// Collects the descriptors of one schedule in node order; finish() returns the file's bytes.
class ScheduleFileWriter {
 public:
  // spec: the topology's canonical specification; digest: its digest.
  ScheduleFileWriter(std::string_view spec, std::uint64_t topology_digest, std::uint32_t ranks,
                     std::uint32_t nodes);
  // Adds the next node's program. On error nothing was added:
  //   kBadArgument  all nodes have been added; or the program is for another node than the next,
  //                 for another topology, or for another number of ranks or nodes
  //   and encode_program's errors
  [[nodiscard]] Status add(const Program& program);
  // Writes the whole file to `file`. kBadArgument: nodes are missing.
  [[nodiscard]] Status finish(std::vector<std::uint8_t>& file) const;

 private:
  std::string spec_;
  std::uint64_t topology_digest_;
  std::uint32_t ranks_;
  std::uint32_t nodes_;
  std::vector<std::uint8_t> descriptors_;
  std::vector<std::uint32_t> lengths_;
};

}  // namespace espalier
