// Breaks each rule of check_program, one at a time.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/limits.h"

namespace espalier {
namespace {

struct Break {
  const char* what;
  std::function<void(Program&)> apply;
  Status expected = Status::kMalformed;
};

// Breaks `valid` in each way alone.
void expect_each(const OwnedProgram& valid, const std::vector<Break>& breaks) {
  for (const Break& broken : breaks) {
    OwnedProgram program = valid;
    broken.apply(program);
    EXPECT_EQ(check_program(program), broken.expected) << broken.what;
  }
}

// Returns an enumerator with any value, as decoding may produce it.
template <typename Enum>
void force(Enum& value, std::uint8_t number) {
  std::memcpy(&value, &number, sizeof number);
}

std::vector<Break> header_breaks() {
  return {
      {"version", [](Program& p) { p.format_version = 2; }, Status::kBadVersion},
      {"no version", [](Program& p) { p.format_version = 0; }, Status::kBadVersion},
      {"feature", [](Program& p) { p.required_features = 4; }, Status::kUnknownFeature},
      {"producer", [](Program& p) { std::memset(p.producer, 'x', sizeof p.producer); }},
      {"algorithm", [](Program& p) { std::memset(p.algorithm, 'x', sizeof p.algorithm); }},
      {"control character", [](Program& p) { p.algorithm[1] = '\n'; }},
      {"no collective", [](Program& p) { force(p.collective, 0); }},
      {"collective", [](Program& p) { force(p.collective, 12); }},
      {"no port model", [](Program& p) { force(p.port_model, 0); }},
      {"port model", [](Program& p) { force(p.port_model, 5); }},
      {"no contention guarantee", [](Program& p) { force(p.contention, 0); }},
      {"contention guarantee", [](Program& p) { force(p.contention, 255); }},
      {"no ranks", [](Program& p) { p.ranks = 0; }},
      {"ranks", [](Program& p) { p.ranks = kMaxNodes + 1; }},
      {"node", [](Program& p) { p.node = 3; }},
      {"router", [](Program& p) { p.nodes = p.node = 5; }},
      {"fewer nodes than ranks", [](Program& p) { p.nodes = 2; }},
      {"nodes", [](Program& p) { p.nodes = kMaxNodes + 1; }},
      {"root", [](Program& p) { p.root = 3; }},
      {"no window", [](Program& p) { p.window = 0; }},
      {"window", [](Program& p) { p.window = kMaxFieldWindow + 1; }},
      {"scratch", [](Program& p) { p.scratch_blocks = kMaxScratchBlocks + 1; }},
      {"send ticks above latency", [](Program& p) { p.send_ticks = 2; }},
      {"latency ticks", [](Program& p) { p.latency_ticks = kMaxTicks + 1; }},
      {"no segments", [](Program& p) { p.segments = 0; }},
      {"segments", [](Program& p) { p.segments = kMaxField + 1u; }},
      {"segments are not the ranks", [](Program& p) { p.collective = Collective::kAllgather; }},
      {"steps", [](Program& p) { p.steps_ref = 5; }},
      {"bound", [](Program& p) { p.bound_ref = 255; }},
      {"residue", [](Program& p) { p.residue = 3; }},
      {"residue without mod", [](Program& p) { p.residue_mod = 0; }},
      {"residue mod", [](Program& p) { p.residue_mod = kMaxField + 1u; }},
      {"no block rule", [](Program& p) { p.blocks_count = 0; }},
      {"first block rule", [](Program& p) { p.blocks[0].from_bytes = 1; }},
      {"block rules equal", [](Program& p) { p.blocks[1].from_bytes = 0; }},
      {"peer is the node", [](Program& p) { p.peers[0] = 1; }},
      {"peers equal", [](Program& p) { p.peers[1] = 0; }},
      {"peer", [](Program& p) { p.peers[1] = kMaxNodes; }},
      {"peers both ways", [](Program& p) { p.ring_peers = 2; }},
      {"peers around, of a router",
       [](Program& p) { p.peers_count = 0, p.ring_peers = 2, p.nodes = 5, p.node = 4; }},
      {"peers around, itself too", [](Program& p) { p.peers_count = 0, p.ring_peers = 3; }},
      {"link beyond those around", [](Program& p) { p.peers_count = 0, p.ring_peers = 1; }},
  };
}

std::vector<Break> table_breaks() {
  return {
      {"blocks", [](Program& p) { p.blocks_count = 13; }},
      {"peers", [](Program& p) { p.peers_count = 129; }},
      {"counts", [](Program& p) { p.counts_count = 65; }},
      {"terms", [](Program& p) { p.terms_count = std::size(p.terms) + 1; }},
      {"indices", [](Program& p) { p.indices_count = std::size(p.indices) + 1; }},
      {"actions", [](Program& p) { p.actions_count = 65; }},
      {"phases", [](Program& p) { p.phases_count = 5; }},
      {"count a", [](Program& p) { p.counts[1].a = kMaxField + 1; }},
      {"count b", [](Program& p) { p.counts[1].b = -kMaxSlope - 1; }},
      {"count c", [](Program& p) { p.counts[1].c = kMaxSlope + 1; }},
      {"count d", [](Program& p) { p.counts[1].d = std::numeric_limits<std::int32_t>::min(); }},
      {"count e", [](Program& p) { p.counts[1].e = 0xffffffffu; }},
      {"term coef", [](Program& p) { p.terms[0].coef = kMaxField + 1; }},
      {"term mul", [](Program& p) { p.terms[0].mul = -kMaxField - 1; }},
      {"term add", [](Program& p) { p.terms[0].add = kMaxField + 1; }},
      {"term div", [](Program& p) { p.terms[0].div = kMaxField + 1u; }},
      {"term mod", [](Program& p) { p.terms[0].mod = 3; }},
      {"term base", [](Program& p) { p.terms[0].base = 1; }},
      {"term digits", [](Program& p) { p.terms[0].digits = 3; }},
      {"term many digits", [](Program& p) { p.terms[0].digits = 0xffffffffu; }},
      {"term base alone", [](Program& p) { p.terms[0].digits = 0; }},
      {"index base", [](Program& p) { p.indices[2].base = kMaxField + 1; }},
      {"index coef", [](Program& p) { p.indices[2].coef = kMaxField + 1; }},
      {"index off", [](Program& p) { p.indices[2].off = -kMaxField - 1; }},
      {"index div", [](Program& p) { p.indices[2].div = kMaxField + 1u; }},
      {"index mod", [](Program& p) { p.indices[2].mod = 0xffffffffu; }},
      {"index terms", [](Program& p) { p.indices[4].terms = 2; }},
      {"index first term", [](Program& p) { p.indices[4].first_term = 1; }},
      {"index sum of both", [](Program& p) { p.indices[4] = {0, 0, 0, 0, 0, 255, 255}; }},
      {"phase period", [](Program& p) { p.phases[0].period = 0; }},
      {"phase long period", [](Program& p) { p.phases[0].period = kMaxField + 1u; }},
      {"phase steps", [](Program& p) { p.phases[0].steps_ref = 5; }},
      {"phase too many actions", [](Program& p) { p.phases[0].actions = 4; }},
      {"phase too few actions", [](Program& p) { p.phases[1].actions = 0; }},
      {"phase missing", [](Program& p) { p.phases_count = 1; }},
  };
}

std::vector<Break> action_breaks() {
  return {
      {"no kind", [](Program& p) { force(p.actions[0].kind, 0); }},
      {"kind", [](Program& p) { force(p.actions[0].kind, 5); }},
      {"t0", [](Program& p) { p.actions[0].t0_ref = 5; }},
      {"instances", [](Program& p) { p.actions[0].instances_ref = 5; }},
      {"pace", [](Program& p) { p.actions[2].pace_ref = 6; }},
      {"pace falls", [](Program& p) { p.actions[2].pace_ref = 2, p.indices[2].coef = -1; }},
      {"pace of a copy", [](Program& p) { p.actions[3].pace_ref = 6; }},
      {"pace of a copy falls",
       [](Program& p) { p.actions[3].pace_ref = 2, p.indices[2].coef = -1; }},
      {"link", [](Program& p) { p.actions[0].link_ref = 6; }},
      {"link beyond peers", [](Program& p) { p.indices[1].base = 2; }},
      {"negative link", [](Program& p) { p.indices[1].base = -1; }},
      {"receive without into", [](Program& p) { p.actions[0].has_into = false; }},
      {"receive with a", [](Program& p) { p.actions[0].has_a = true; }},
      {"receive into input", [](Program& p) { p.actions[0].into.buffer = Buffer::kInput; }},
      {"combine without b", [](Program& p) { p.actions[1].has_b = false; }},
      {"combine without a", [](Program& p) { p.actions[1].has_a = false; }},
      {"send with into", [](Program& p) { p.actions[2].has_into = true; }},
      {"send without a", [](Program& p) { p.actions[2].has_a = false; }},
      {"copy with b", [](Program& p) { p.actions[3].has_b = true; }},
      {"copy into input", [](Program& p) { p.actions[3].into.buffer = Buffer::kInput; }},
      {"no buffer", [](Program& p) { force(p.actions[0].into.buffer, 0); }},
      {"buffer", [](Program& p) { force(p.actions[0].into.buffer, 4); }},
      {"segment", [](Program& p) { p.actions[0].into.segment_ref = 6; }},
      {"segment beyond segments",
       [](Program& p) {
         p.segments = 1;
         p.actions[0].into.segment_ref = 1;
       }},
      {"block", [](Program& p) { p.actions[0].into.block_ref = 6; }},
      {"slot", [](Program& p) { p.actions[0].into.slot_ref = 6; }},
      {"slot beyond scratch",
       [](Program& p) {
         p.scratch_blocks = 1;
         p.actions[0].into.slot_ref = 1;
       }},
      {"segment count", [](Program& p) { p.actions[0].into.segment_count = 2; }},
  };
}

// Returns a program that always has one block, with two segments in every operand.
OwnedProgram program_with_runs() {
  OwnedProgram program = sample_program();
  program.blocks_count = 1;
  program.blocks[0] = {0, 0};
  program.residue_mod = program.residue = 0;
  for (Action& action : program.actions) {
    for (Operand* operand : {&action.into, &action.a, &action.b}) {
      if (operand->buffer != Buffer::kNone) operand->segment_count = 2;
    }
  }
  program.actions[3].into.segment_ref = 0;
  return program;
}

TEST(CheckProgram, TakesRunsWhereAMessageIsOneBlock) {
  ASSERT_EQ(check_program(program_with_runs()), Status::kOk);
  const std::vector<Break> breaks = {
      {"a block rule", [](Program& p) { p.blocks[0].block_bytes = 1 << 30; }},
      {"two rules",
       [](Program& p) {
         p.blocks_count = 2, p.blocks[1] = {4096, 0};
       }},
      {"a residue", [](Program& p) { p.residue_mod = p.residue = 1, p.residue = 0; }},
      {"operands of other lengths", [](Program& p) { p.actions[1].b.segment_count = 1; }},
      {"a source of another length", [](Program& p) { p.actions[3].a.segment_count = 0; }},
      {"past the segments", [](Program& p) { p.actions[0].into.segment_ref = 1; }},
      {"past the slots",
       [](Program& p) {
         p.scratch_blocks = 2;
         p.actions[0].into.slot_ref = 1;
       }},
  };
  expect_each(program_with_runs(), breaks);
}

// A run may pass the last segment, in scratch. Without a block each per segment and rank there is
// no order that begins with the node's own segment.
TEST(CheckProgram, RotatedScratchIsForOneBlockPerSegmentAndRank) {
  OwnedProgram valid = program_with_runs();
  valid.segments = 3;
  valid.actions[0].into.segment_ref = 3;
  valid.indices[3] = {2, 0, 0, 0, 0, 0, 0};
  ASSERT_EQ(check_program(valid), Status::kMalformed);
  valid.required_features = kRotatedScratch;
  ASSERT_EQ(check_program(valid), Status::kOk);
  const std::vector<Break> breaks = {
      {"past the segments of the input", [](Program& p) { p.actions[3].a.segment_ref = 3; }},
      {"a segment that does not exist", [](Program& p) { p.indices[3].base = 3; }},
      {"a segment below 0", [](Program& p) { p.indices[3].base = -1; }},
      {"fewer segments than ranks", [](Program& p) { p.ranks = 4; }},
      {"more segments than ranks", [](Program& p) { p.segments = 4; }},
      {"a block rule", [](Program& p) { p.blocks[0].block_bytes = 1 << 30; }},
      {"a residue", [](Program& p) { p.residue_mod = 1; }},
      {"a router",
       [](Program& p) {
         p.nodes = 5;
         p.node = 4;
         p.actions_count = 1;
         p.phases_count = 1;
         p.phases[0].actions = 1;
       }},
  };
  expect_each(valid, breaks);
  // The router's one action uses scratch only.
  OwnedProgram router = valid;
  breaks[7].apply(router);
  router.required_features = 0;
  router.actions[0].into.segment_ref = 0;
  EXPECT_EQ(check_program(router), Status::kOk);
}

TEST(CheckProgram, ARoutersProgramNamesScratchOnly) {
  OwnedProgram program = sample_program();
  program.nodes = 5;
  EXPECT_EQ(check_program(program), Status::kOk);
  program.node = 4;
  EXPECT_EQ(check_program(program), Status::kMalformed) << "it reads INPUT";
  for (Operand* operand : {&program.actions[1].b, &program.actions[3].a}) {
    *operand = program.actions[0].into;
  }
  EXPECT_EQ(check_program(program), Status::kOk);
  program.actions[0].into.buffer = Buffer::kOutput;
  EXPECT_EQ(check_program(program), Status::kMalformed);
}

TEST(CheckProgram, CountsPerRankGoWithOneSegmentARank) {
  for (int collective = 1; collective <= _espalier_Collective_MAX; ++collective) {
    OwnedProgram program = sample_program();
    program.collective = static_cast<Collective>(collective);
    const bool per_rank = counts_per_rank(program.collective);
    EXPECT_EQ(check_program(program), per_rank ? Status::kMalformed : Status::kOk) << collective;
    program.segments = 3;
    EXPECT_EQ(check_program(program), Status::kOk) << collective;
  }
}

TEST(CheckProgram, LinksAround) {
  OwnedProgram program = sample_program();
  program.peers_count = 0;
  program.ring_peers = 2;
  ASSERT_EQ(check_program(program), Status::kOk);
  EXPECT_EQ(links_count(program), 2u);
  EXPECT_EQ(peer_of(program, 0), 2u);
  EXPECT_EQ(peer_of(program, 1), 0u);
}

TEST(CheckProgram, TablesLieInTheirEntries) {
  const std::vector<Break> breaks = {
      {"odd size", [](Program& p) { p.table.size = 11; }},
      {"no bytes", [](Program& p) { p.table.bytes = nullptr; }},
      {"too long", [](Program& p) { p.table.size = kMaxTableBytes + 2; }},
      {"no entries", [](Program& p) { p.table.size = 0; }},
      {"no mod", [](Program& p) { p.terms[0].mod = 0; }},
      {"beyond", [](Program& p) { p.terms[0].table = 7; }},
      {"runs beyond", [](Program& p) { p.terms[0].mod = 6; }},
      {"far", [](Program& p) { p.terms[0].table = 0xffffffffu; }},
      {"long", [](Program& p) { p.terms[0].mod = kMaxField; }},
      {"and digits", [](Program& p) { p.terms[0].base = 3, p.terms[0].digits = 1; }},
      {"and base", [](Program& p) { p.terms[0].base = 3; }},
      {"to the end", [](Program& p) { p.terms[0].mod = 5; }, Status::kOk},
      {"all", [](Program& p) { p.terms[0].table = 1, p.terms[0].mod = 6; }, Status::kOk},
  };
  expect_each(sample_program_with_table(), breaks);
}

// The tables that a pace reads.
TEST(CheckProgram, PacesNeverFallWithinTheirTables) {
  static constexpr std::uint8_t kEntries[] = {0, 0, 2, 0, 2, 0, 5, 0, 1, 0};
  const auto status_of = [](std::uint32_t action, std::uint32_t first, std::uint32_t entries) {
    OwnedProgram program = sample_program_with_table();
    program.table = {kEntries, sizeof kEntries};
    program.indices_count = 7;
    program.indices[6] = {0, 0, 0, 0, 0, 1, 2};  // 9 * floor(i / entries) + entry
    program.terms_count = 3;
    program.terms[0].table = 1;
    program.terms[1] = {9, 1, 0, entries, 0, 0, 0, 0};
    program.terms[2] = {1, 1, 0, 0, entries, 0, 0, first + 1};
    program.actions[action].pace_ref = 6;
    return check_program(program);
  };
  for (const std::uint32_t action : {1u, 2u, 3u}) {
    EXPECT_EQ(status_of(action, 2, 2), Status::kOk);
    EXPECT_EQ(status_of(action, 0, 4), Status::kOk);         // 0, 2, 2, 5
    EXPECT_EQ(status_of(action, 0, 5), Status::kMalformed);  // ..., 5, 1
  }
}

TEST(CheckProgram, AcceptsTheSample) {
  EXPECT_EQ(check_program(sample_program()), Status::kOk);
  EXPECT_EQ(check_program(sample_program_with_table()), Status::kOk);
  OwnedProgram bounds = sample_program();
  bounds.counts[1] = {kMaxField, -kMaxSlope, kMaxSlope, -kMaxField, kMaxField};
  bounds.indices[5] = {kMaxField, -kMaxField, kMaxField, kMaxField, kMaxField, 0, 0};
  EXPECT_EQ(check_program(bounds), Status::kOk);
}

TEST(CheckProgram, RefusesEveryBrokenRule) {
  for (const auto& breaks : {header_breaks(), table_breaks(), action_breaks()}) {
    expect_each(sample_program(), breaks);
  }
}

}  // namespace
}  // namespace espalier
