#include "collectives/schedule/program_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "collectives/schedule/sample_program.h"

namespace espalier {
namespace {

std::vector<std::uint8_t> encoded(const Program& program) {
  std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  std::size_t written = 0;
  EXPECT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
  bytes.resize(written);
  return bytes;
}

TEST(ProgramStore, GivesBackWhatItWasGiven) {
  ProgramStore store;
  std::vector<std::vector<std::uint8_t>> expected;
  auto program = std::make_unique<Program>(sample_program());
  const std::uint32_t nodes = program->ranks;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    *program = node == 2 ? sample_program_with_table() : sample_program();
    program->node = node;
    for (std::uint32_t peer = 0; peer < program->peers_count; ++peer) {
      program->peers[peer] = (node + 1 + peer) % nodes;
    }
    expected.push_back(encoded(*program));
    store.add(*program);
  }
  EXPECT_EQ(store.size(), nodes);
  EXPECT_EQ(store.bodies(), 2u) << "programs that differ in node and peers only share the rest";
  ProgramStore::Body body = ProgramStore::kNoBody;
  *program = Program();
  for (std::uint32_t round = 0; round < 3 * nodes; ++round) {
    const std::uint32_t node = round * 7 % nodes;
    store.load(node, *program, body);
    EXPECT_EQ(encoded(*program), expected[node]) << node;
  }
}

}  // namespace
}  // namespace espalier
