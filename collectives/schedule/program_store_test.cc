#include "collectives/schedule/program_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "collectives/schedule/testing/sample_program.h"

namespace espalier {
namespace {

// Adds the sample programs of all nodes, node 2 with a table, and keeps only their descriptors.
std::vector<std::vector<std::uint8_t>> fill(ProgramStore& store, std::uint32_t window) {
  std::vector<std::vector<std::uint8_t>> expected;
  const std::uint32_t nodes = sample_program().ranks;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    OwnedProgram program = node == 2 ? sample_program_with_table() : sample_program();
    program.window = window;
    program.node = node;
    for (std::uint32_t peer = 0; peer < program.peers_count; ++peer) {
      program.peers[peer] = (node + 1 + peer) % nodes;
    }
    expected.push_back(encoded(program));
    store.add(program);
  }
  return expected;
}

TEST(ProgramStore, GivesBackWhatItWasGiven) {
  ProgramStore store;
  const auto expected = fill(store, 4);
  const std::uint32_t nodes = store.size();
  EXPECT_EQ(nodes, expected.size());
  EXPECT_EQ(store.bodies(), 2u) << "programs that differ in node and peers only share the rest";
  const auto program = std::make_unique<StoredProgram>();
  for (std::uint32_t round = 0; round < 3 * nodes; ++round) {
    const std::uint32_t node = round * 7 % nodes;
    store.load(node, *program);
    EXPECT_EQ(encoded(*program), expected[node]) << node;
  }
}

// Equal programs share a body even if their tables were at different addresses.
TEST(ProgramStore, ComparesTablesByTheirEntries) {
  ProgramStore store;
  for (int copy = 0; copy < 2; ++copy) {
    OwnedProgram program = sample_program_with_table();
    program.keep_table();
    store.add(program);
  }
  EXPECT_EQ(store.bodies(), 1u);
  OwnedProgram other = sample_program_with_table();
  other.set_table({3, 0, 2, 1, 300, -3});
  store.add(other);
  EXPECT_EQ(store.bodies(), 2u) << "one entry differs";
}

// Like the program of the only rank of complete:1.
TEST(ProgramStore, KeepsAProgramWithoutPeers) {
  ProgramStore store;
  OwnedProgram program = sample_program();
  program.peers_count = 0;
  store.add(program);
  const auto loaded = std::make_unique<StoredProgram>();
  store.load(0, *loaded);
  EXPECT_EQ(loaded->peers_count, 0u);
  EXPECT_EQ(loaded->window, program.window);
}

TEST(ProgramStore, AProgramMayBeLoadedFromAnotherStore) {
  ProgramStore one, other;
  const auto expected_one = fill(one, 4), expected_other = fill(other, 5);
  const auto program = std::make_unique<StoredProgram>();
  for (int round = 0; round < 2; ++round) {
    one.load(2, *program);
    EXPECT_EQ(encoded(*program), expected_one[2]);
    other.load(2, *program);
    EXPECT_EQ(encoded(*program), expected_other[2]);
  }
}

}  // namespace
}  // namespace espalier
