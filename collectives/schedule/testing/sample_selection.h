#pragma once
// For tests: a selection of sample programs, and its file.

#include <gtest/gtest.h>

#include <vector>

#include "collectives/schedule/selection_writer.h"
#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier {

// Returns a table of three schedules: any operator is served by 0, from 4096 bytes on by 1; one
// that commutes by 2, from 1000 bytes on by 1.
inline SelectionTable sample_table() {
  SelectionTable table = {};
  table.format_version = kSelectionVersion;
  table.topology_digest = sample_program().topology_digest;
  table.model_digest = 99;
  table.collective = Collective::kReduce;
  table.root = 2;
  table.schedules_count = 3;
  for (std::uint32_t i = 0; i < 3; ++i) table.schedules[i] = 0x1000 + i;
  table.rows_count = 4;
  table.rows[0] = {0, false, 0};
  table.rows[1] = {4096, false, 1};
  table.rows[2] = {0, true, 2};
  table.rows[3] = {1000, true, 1};
  return table;
}

// Returns the selection that `bytes` encode, unchecked.
inline Selected selected_of(const SelectionTable& table) {
  const std::vector<std::uint8_t> bytes = selection_bytes(table);
  return {table, selection_digest(bytes.data(), bytes.size())};
}

// Returns a node's program of schedule `index`, as it is in this selection. Only schedule 2 needs
// an operator that commutes.
inline OwnedProgram selected_program(const Selected& selected, std::uint32_t index,
                                     std::uint32_t node) {
  OwnedProgram program = sample_program();
  program.node = node;
  program.peers[0] = (node + 1) % 3;
  program.peers[1] = (node + 2) % 3;
  program.needs_commutative = index == 2;
  program.schedule_digest = digest_in_selection(selected.digest, selected.table.schedules[index]);
  return program;
}

// Returns the file of a schedule of three nodes.
inline std::vector<std::uint8_t> selected_file(const Selected& selected, std::uint32_t index) {
  ScheduleFileWriter writer("complete:3", selected.table.topology_digest, 3, 3);
  for (std::uint32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(writer.add(selected_program(selected, index, node)), Status::kOk);
  }
  std::vector<std::uint8_t> file;
  EXPECT_EQ(writer.finish(file), Status::kOk);
  return file;
}

// Returns the file of a selection whose schedules are as `programs` has them, which is the same
// selection unless a forger is at work.
inline std::vector<std::uint8_t> sample_selection_file(const SelectionTable& table,
                                                       const Selected& programs) {
  std::vector<std::vector<std::uint8_t>> files;
  for (std::uint32_t i = 0; i < programs.table.schedules_count; ++i) {
    files.push_back(selected_file(programs, i));
  }
  std::vector<std::uint8_t> file;
  EXPECT_EQ(write_selection_file(table, files, file), Status::kOk);
  return file;
}

}  // namespace espalier
