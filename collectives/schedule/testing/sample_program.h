#pragma once
// For tests: a small program with at least one entry in every table.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier {

// Returns the program of node 1 of a pipeline over three ranks that combines on the way. It has a
// ring index, a digit reversal, two phases, and rules of every kind. It passes check_program; its
// result has no meaning.
inline OwnedProgram sample_program() {
  Program program{};
  program.format_version = kFormatVersion;
  program.topology_digest = 0x0123456789abcdefull;
  program.schedule_digest = 0xfedcba9876543210ull;
  std::strcpy(program.producer, "sample");
  std::strcpy(program.algorithm, "pipeline");
  program.collective = Collective::kReduce;
  program.ranks = 3;
  program.node = 1;
  program.root = 2;
  program.needs_commutative = true;
  program.window = 4;
  program.scratch_blocks = 4;
  program.port_model = PortModel::kOnePortDuplex;
  program.contention = ContentionGuarantee::kAsync;
  program.steps_ref = 1;
  program.bound_ref = 2;
  program.segments = 2;
  program.residue_mod = 3;
  program.residue = 1;
  program.blocks_count = 2;
  program.blocks[0] = {0, 64};
  program.blocks[1] = {4096, 1024};
  program.peers_count = 2;
  program.peers[0] = 0;
  program.peers[1] = 2;
  program.counts_count = 5;
  program.counts[0] = {0, 1, 0, 0, 0};   // N
  program.counts[1] = {3, 2, 0, 0, 0};   // 2N+3
  program.counts[2] = {0, 0, 1, 1, 2};   // ceil((N+1)/2)
  program.counts[3] = {-1, 0, 0, 0, 0};  // -1
  program.counts[4] = {1, 1, 0, 0, 0};   // N+1
  program.terms_count = 1;
  program.terms[0] = {1, 1, 0, 0, 4, 2, 2, 0};
  program.indices_count = 6;
  program.indices[0] = {0, 0, 0, 0, 0, 0, 0};   // 0
  program.indices[1] = {1, 0, 0, 0, 0, 0, 0};   // 1
  program.indices[2] = {0, 1, 0, 0, 0, 0, 0};   // i
  program.indices[3] = {0, 1, 0, 0, 4, 0, 0};   // i mod 4
  program.indices[4] = {0, 0, 0, 0, 0, 0, 1};   // the reversal
  program.indices[5] = {0, -1, 7, 2, 2, 0, 0};  // floor((7-i)/2) mod 2
  const Operand input{Buffer::kInput, 0, 2, 0, 0};
  const Operand slot{Buffer::kScratch, 0, 2, 3, 0};
  program.actions_count = 4;
  program.actions[0] = {
      ActionKind::kReceive, 0, 0, 0, 0, false, true, slot, false, {}, false, {}, 0};
  program.actions[1] = {
      ActionKind::kCombine, 0, 0, 0, 0, false, true, slot, true, slot, true, input, 0};
  program.actions[2] = {ActionKind::kSend, 4, 0, 1, 1, true, false, {}, true, slot, false, {}, 0};
  program.actions[3] = {
      ActionKind::kCopy, 3, 0, 0, 0, false, true, slot, true, input, false, {}, 0};
  program.actions[3].into.slot_ref = 4;
  program.actions[3].into.segment_ref = 5;
  program.phases_count = 2;
  program.phases[0] = {1, 4, 3};
  program.phases[1] = {2, 2, 1};
  return program;
}

// Returns the same program with a table lookup instead of the digit reversal: 0, 2, 1, which are
// entries 1 to 3 of 3, 0, 2, 1, 300, -2.
inline OwnedProgram sample_program_with_table() {
  static constexpr std::uint8_t kEntries[] = {3, 0, 0, 0, 2, 0, 1, 0, 0x2c, 1, 0xfe, 0xff};
  OwnedProgram program = sample_program();
  program.terms[0] = {1, 1, 0, 0, 3, 0, 0, 2};
  program.table.bytes = kEntries;
  program.table.size = sizeof kEntries;
  return program;
}

// Returns the descriptor of `program`.
inline std::vector<std::uint8_t> encoded(const Program& program) {
  std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  std::size_t written = 0;
  EXPECT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
  bytes.resize(written);
  return bytes;
}

}  // namespace espalier
