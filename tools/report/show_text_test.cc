#include "tools/report/show_text.h"

#include <gtest/gtest.h>

#include "collectives/schedule/testing/sample_program.h"

namespace espalier::tools {
namespace {

TEST(ShowText, WritesCounts) {
  EXPECT_EQ(count_text(Count{0, 0, 0, 0, 0}), "0");
  EXPECT_EQ(count_text(Count{3, 2, 0, 0, 0}), "2N+3");
  EXPECT_EQ(count_text(Count{-1, 1, 0, 0, 0}), "N-1");
  EXPECT_EQ(count_text(Count{-1, 0, 1, 1, 2}), "ceil((N+1)/2)-1");
  EXPECT_EQ(count_text(Count{5, 1, -3, 0, 4}), "N-3ceil(N/4)+5");
  EXPECT_EQ(count_text(Count{1, 1, 2, 4, 1}), "3N+9");  // e = 1: nothing to round
}

TEST(ShowText, WritesIndices) {
  OwnedProgram program = sample_program();
  EXPECT_EQ(index_text(program, 0), "0");
  EXPECT_EQ(index_text(program, 2), "i");
  EXPECT_EQ(index_text(program, 3), "i mod 4");
  EXPECT_EQ(index_text(program, 4), "reverse_2^2(i mod 4)");
  EXPECT_EQ(index_text(program, 5), "floor((-i+7)/2) mod 2");
  EXPECT_EQ(index_text(program, 63), "?");
  EXPECT_EQ(index_text(sample_program_with_table(), 4), "table[1 + i mod 3]");
  program.indices[2] = Index{3, 2, -1, 0, 5, 0, 0};
  EXPECT_EQ(index_text(program, 2), "3 + (2i-1) mod 5");
  program.indices[2] = Index{3, 2, -1, 0, 0, 0, 0};
  EXPECT_EQ(index_text(program, 2), "2i+2");
}

TEST(ShowText, WritesActionsAndInstances) {
  const OwnedProgram program = sample_program();
  EXPECT_EQ(action_text(program, program.actions[0]), "scratch#(i mod 4)[0, i] from 0");
  EXPECT_EQ(action_text(program, program.actions[1]),
            "scratch#(i mod 4)[0, i] = scratch#(i mod 4)[0, i] (+) input[0, i]");
  EXPECT_EQ(action_text(program, program.actions[2]), "scratch#(i mod 4)[0, i] to 2");
  EXPECT_EQ(instance_text(expand(program, 3).front()), "scratch#0[0, 0] from 0");
}

TEST(ShowText, WritesPeersByTheirRule) {
  OwnedProgram program = sample_program();
  program.peers_count = 0;
  program.ring_peers = 2;
  EXPECT_EQ(action_text(program, program.actions[0]), "scratch#(i mod 4)[0, i] from 2");
}

TEST(ShowText, NamesEveryEnum) {
  for (int kind = 1; kind <= _espalier_ActionKind_MAX; ++kind) {
    EXPECT_STRNE(kind_name(static_cast<ActionKind>(kind)), "none");
  }
  for (int model = 1; model <= _espalier_PortModel_MAX; ++model) {
    EXPECT_STRNE(port_model_name(static_cast<PortModel>(model)), "none");
  }
  for (int contention = 1; contention <= _espalier_ContentionGuarantee_MAX; ++contention) {
    EXPECT_STRNE(contention_name(static_cast<ContentionGuarantee>(contention)), "none");
  }
}

}  // namespace
}  // namespace espalier::tools
