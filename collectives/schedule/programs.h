#pragma once
// All nodes' programs of a schedule, by node, and the tables that they look up. Host only.

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "collectives/schedule/program.h"

namespace espalier {

// Owns the tables of its programs; copies of a program point at the same ones. It moves and does
// not copy, as a copy would not outlive its tables.
class Programs : public std::vector<Program> {
 public:
  Programs() = default;
  // Programs without tables, or whose tables somebody else keeps.
  explicit Programs(std::vector<Program> programs) : vector(std::move(programs)) {}
  Programs(Programs&&) = default;
  Programs& operator=(Programs&&) = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  ~Programs() = default;

  // Gives `program` a table of these entries, kept as long as this object.
  void set_table(Program& program, const std::vector<std::int16_t>& entries) {
    std::vector<std::uint8_t>& bytes = tables_.emplace_back();
    for (const std::int16_t entry : entries) {
      bytes.push_back(static_cast<std::uint8_t>(entry & 255));
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint16_t>(entry) >> 8));
    }
    program.table.bytes = bytes.data();
    program.table.size = static_cast<std::uint32_t>(bytes.size());
  }

 private:
  std::deque<std::vector<std::uint8_t>> tables_;
};

}  // namespace espalier
