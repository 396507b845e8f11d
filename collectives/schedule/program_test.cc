#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "collectives/schedule/testing/sample_program.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier {
namespace {

TEST(Divide, EqualsTheProcessors) {
  ASSERT_TRUE(rc::check([](std::uint64_t n, std::uint8_t shift, std::uint32_t any) {
    n >>= shift % 64;
    const std::uint32_t d = std::max<std::uint32_t>(1, any >> shift % 32);
    std::uint64_t quotient = n;
    RC_ASSERT(divide(quotient, d) == n % d);
    RC_ASSERT(quotient == n / d);
    quotient = n;
    RC_ASSERT(divide_bitwise(quotient, d) == n % d);
    RC_ASSERT(quotient == n / d);
    const auto below = -static_cast<std::int64_t>(n / 2);
    std::int64_t floor = below;
    RC_ASSERT(floor_divide(floor, d) == floor_mod(below, d));
    RC_ASSERT(floor == floor_div(below, d));
  }));
  std::uint64_t most = UINT64_MAX;
  EXPECT_EQ(divide_bitwise(most, UINT32_MAX), UINT64_MAX % UINT32_MAX);
  EXPECT_EQ(most, UINT64_MAX / UINT32_MAX);
  std::int64_t same = -7;
  EXPECT_EQ(floor_divide(same, 0), 0u);
  EXPECT_EQ(same, -7);
}

TEST(Count, IsTheFormula) {
  EXPECT_EQ(count_value(Count{3, 2, 0, 0, 0}, 5), 13);
  EXPECT_EQ(count_value(Count{0, 0, 1, 1, 2}, 4), 3);
  EXPECT_EQ(count_value(Count{0, 0, 1, -7, 2}, 4), -1);  // ceil(-3 / 2)
  EXPECT_EQ(count_value(Count{1, -1, 2, 0, 0}, 4), 5);   // e = 0 reads as 1
}

TEST(Count, DoesNotOverflowWithinTheBounds) {
  const Count most{kMaxField, kMaxSlope, kMaxSlope, kMaxField, 1};
  const std::int64_t n = kMaxBlocks;
  EXPECT_EQ(count_value(most, n),
            kMaxField + kMaxSlope * n + kMaxSlope * (n + std::int64_t{kMaxField}));
}

TEST(PhaseSteps, AddsPhasesAndTakesNegativeOnesAsEmpty) {
  OwnedProgram program = sample_program();
  EXPECT_EQ(phase_steps(program, 6), 7 + 4);
  program.phases[1].steps_ref = 3;  // -1
  EXPECT_EQ(phase_steps(program, 6), 7);
}

// The sample for any number of blocks.
OwnedProgram any_blocks() {
  OwnedProgram program = sample_program();
  program.residue_mod = program.residue = 0;
  return program;
}

TEST(Layout, TakesTheLastRuleThatBegins) {
  OwnedProgram program = any_blocks();
  Layout layout;
  ASSERT_EQ(make_layout(program, 4095, 1, layout), Status::kOk);
  EXPECT_EQ(layout.segment_elements, 2048u);
  EXPECT_EQ(layout.blocks, 32u);
  ASSERT_EQ(make_layout(program, 4096, 1, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, 2u);
  // 4096 bytes, 256 elements per block
  ASSERT_EQ(make_layout(program, 1024, 4, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, 2u);
  EXPECT_EQ(layout.block_elements, 256u);
  EXPECT_EQ(slot_bytes(layout), 1024u);
}

TEST(Layout, OfNothingIsOneEmptyBlockASegment) {
  OwnedProgram program = any_blocks();
  Layout layout;
  ASSERT_EQ(make_layout(program, 0, 8, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, 1u);
  EXPECT_EQ(block_span(layout, 1, 0).bytes, 0u);
  EXPECT_EQ(slot_bytes(layout), 0u);
}

TEST(Layout, BlockBytesZeroIsOneBlock) {
  OwnedProgram program = any_blocks();
  program.blocks_count = 1;
  program.blocks[0].block_bytes = 0;
  Layout layout;
  ASSERT_EQ(make_layout(program, 1u << 30, 8, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, 1u);
}

TEST(Layout, ElementsLongerThanABlockTravelAlone) {
  OwnedProgram program = any_blocks();
  Layout layout;
  ASSERT_EQ(make_layout(program, 4, 100, layout), Status::kOk);  // blocks of 64 bytes
  EXPECT_EQ(layout.blocks, 2u);
  EXPECT_EQ(layout.block_elements, 1u);
}

TEST(Layout, RefusesWhatItCannotCut) {
  OwnedProgram program = sample_program();
  Layout layout;
  EXPECT_EQ(make_layout(program, 1, 0, layout), Status::kBadArgument);
  EXPECT_EQ(make_layout(program, kMaxMessageBytes + 1, 1, layout), Status::kTooLarge);
  EXPECT_EQ(make_layout(program, ~0ull, 8, layout), Status::kTooLarge);
  program.blocks_count = 1;
  program.blocks[0].block_bytes = 1;  // N = 2^39
  EXPECT_EQ(make_layout(program, kMaxMessageBytes, 1, layout), Status::kTooLarge);
  program.segments = 0;
  EXPECT_EQ(make_layout(program, 1, 1, layout), Status::kMalformed);
}

OwnedProgram any_cut() {
  OwnedProgram program = sample_program();
  program.segments = *rc::gen::inRange(1u, 9u);
  program.residue_mod = *rc::gen::inRange(0u, 7u);
  program.residue = program.residue_mod == 0 ? 0 : *rc::gen::inRange(0u, program.residue_mod);
  program.blocks[0].block_bytes = *rc::gen::inRange(0u, 40u);
  program.blocks_count = 1;
  return program;
}

// The spans of all blocks, in order, cover the message without gap or overlap. None is longer than
// a slot.
TEST(Layout, BlocksPartitionTheMessage) {
  EXPECT_TRUE(rc::check("blocks partition the message", [] {
    const OwnedProgram program = any_cut();
    const auto count = *rc::gen::inRange<std::uint64_t>(0, 400);
    const auto element_bytes = *rc::gen::inRange(1u, 17u);
    Layout layout;
    RC_ASSERT(make_layout(program, count, element_bytes, layout) == Status::kOk);
    if (program.residue_mod != 0) {
      RC_ASSERT(layout.blocks % program.residue_mod == program.residue);
    }
    std::uint64_t next = 0;
    for (std::uint32_t segment = 0; segment < layout.segments; ++segment) {
      for (std::uint32_t block = 0; block < layout.blocks; ++block) {
        const Span span = block_span(layout, segment, block);
        RC_ASSERT(span.bytes <= slot_bytes(layout));
        RC_ASSERT(span.offset + span.bytes <= count * element_bytes);
        RC_ASSERT(span.elements * element_bytes == span.bytes);
        if (span.bytes == 0) continue;
        RC_ASSERT(span.offset == next);
        next += span.bytes;
      }
    }
    RC_ASSERT(next == count * element_bytes);
  }));
}

// A slot has the length of the longest block, so consecutive slots are one piece of memory.
TEST(Layout, SlotsArePacked) {
  OwnedProgram program = any_blocks();
  Layout layout;
  ASSERT_EQ(make_layout(program, 5, 3, layout), Status::kOk);  // two segments, of 3 and 2 elements
  EXPECT_EQ(slot_bytes(layout), 9u);
}

TEST(Layout, ARunIsAllItsSegments) {
  OwnedProgram program = any_blocks();
  program.blocks_count = 1;
  program.blocks[0].block_bytes = 0;
  program.segments = 4;
  Layout layout;
  ASSERT_EQ(make_layout(program, 10, 2, layout), Status::kOk);  // of 3, 3, 3, 1
  EXPECT_EQ(block_span(layout, 1, 0, 2).offset, 6u);
  EXPECT_EQ(block_span(layout, 1, 0, 2).bytes, 12u);
  EXPECT_EQ(block_span(layout, 0, 0, 4).bytes, 20u);
  EXPECT_EQ(block_span(layout, 2, 0, 2).elements, 4u);
  EXPECT_EQ(block_span(layout, 3, 0, 2).bytes, 0u) << "past the last segment";
  ASSERT_EQ(make_layout(program, 5, 2, layout), Status::kOk);  // of 2, 2, 1, 0
  EXPECT_EQ(block_span(layout, 2, 0, 2).bytes, 2u);
  EXPECT_EQ(block_span(layout, 3, 0, 1).bytes, 0u);
  program.blocks[0].block_bytes = 2;
  ASSERT_EQ(make_layout(program, 10, 2, layout), Status::kOk);
  EXPECT_EQ(block_span(layout, 0, 0, 2).bytes, 0u) << "several blocks a segment";
}

// Areas begin with the node's own segment and have no gaps, wherever the short segments are.
TEST(Layout, AreasOfRotatedScratchArePacked) {
  ASSERT_TRUE(rc::check([] {
    OwnedProgram program;
    program.required_features = kRotatedScratch;
    program.collective = Collective::kAllreduce;
    program.ranks = program.segments = *rc::gen::inRange<std::uint32_t>(1, 9);
    program.node = *rc::gen::inRange<std::uint32_t>(0, program.ranks);
    program.blocks_count = 1;
    const auto count = *rc::gen::inRange<std::uint64_t>(0, 30);
    const auto area = *rc::gen::inRange<std::uint32_t>(0, 20);
    Layout layout;
    RC_ASSERT(make_layout(program, count, 3, layout) == Status::kOk);
    std::uint64_t next = area * slot_bytes(layout);
    for (std::uint32_t position = 0; position < program.ranks; ++position) {
      const std::uint32_t segment = (program.node + position) % program.ranks;
      RC_ASSERT(rotated_position(layout, segment) == position);
      RC_ASSERT(slot_offset(layout, segment, area + position) == next);
      std::uint64_t bytes = 0;
      for (std::uint32_t run = 1; run <= program.ranks; ++run) {
        bytes += block_span(layout, (segment + run - 1) % program.ranks, 0).bytes;
        const Span span = block_span(layout, segment, 0, run, Buffer::kScratch);
        RC_ASSERT(span.bytes == bytes);
        RC_ASSERT(span.elements * 3 == bytes);
        const bool passes = segment + run > program.ranks;
        RC_ASSERT(block_span(layout, segment, 0, run, Buffer::kOutput).bytes ==
                  (passes ? 0 : bytes));
      }
      next += block_span(layout, segment, 0).bytes;
      RC_ASSERT(next <= (area + position + 1) * slot_bytes(layout));
    }
  }));
}

TEST(Layout, CountsOfOneRankAreMultiplied) {
  OwnedProgram program = any_blocks();
  program.segments = program.ranks;
  program.collective = Collective::kAllgather;
  Layout layout;
  ASSERT_EQ(make_layout(program, 100, 4, layout), Status::kOk);
  EXPECT_EQ(layout.count, 300u);
  EXPECT_EQ(layout.segment_elements, 100u);
  EXPECT_EQ(layout.blocks, 7u) << "1200 bytes in all: blocks of 64";
  ASSERT_EQ(make_layout(program, 400, 4, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, 2u) << "4800 bytes in all: blocks of 1024";
  EXPECT_EQ(block_span(layout, 2, 1).offset, 2 * 1600u + 800);
  EXPECT_EQ(make_layout(program, kMaxMessageBytes / 3 + 1, 1, layout), Status::kTooLarge);
  EXPECT_EQ(make_layout(program, ~0ull, 1, layout), Status::kTooLarge);
}

TEST(Layout, ABarrierHasNoElements) {
  OwnedProgram program = any_blocks();
  program.collective = Collective::kBarrier;
  Layout layout;
  ASSERT_EQ(make_layout(program, 0, 1, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, 1u);
  EXPECT_EQ(make_layout(program, 1, 1, layout), Status::kBadArgument);
}

struct Extents {
  Collective collective;
  const char* root;   // input and output of the root (of rank 0 in an exscan)
  const char* other;  // the same of any other rank: w whole, o own segment, - nothing
};

TEST(BufferExtent, IsWhatTheTableSays) {
  constexpr Extents kTable[] = {
      {Collective::kBroadcast, "w-", "-w"},     {Collective::kReduce, "ww", "w-"},
      {Collective::kAllreduce, "ww", "ww"},     {Collective::kScan, "ww", "ww"},
      {Collective::kExscan, "w-", "ww"},        {Collective::kScatter, "wo", "-o"},
      {Collective::kGather, "ow", "o-"},        {Collective::kAllgather, "ow", "ow"},
      {Collective::kReduceScatter, "wo", "wo"}, {Collective::kAllToAll, "ww", "ww"},
      {Collective::kBarrier, "--", "--"}};
  for (const Extents& row : kTable) {
    OwnedProgram program = sample_program();
    program.collective = row.collective;
    program.segments = program.ranks;
    program.residue_mod = program.residue = program.root = 0;
    program.nodes = 4;
    Layout layout;
    const std::uint64_t count = row.collective == Collective::kBarrier ? 0 : 7;
    ASSERT_EQ(make_layout(program, count, 2, layout), Status::kOk);
    const std::uint64_t whole = counts_per_rank(row.collective) ? 42 : 14;
    for (program.node = 0; program.node < 4; ++program.node) {
      const char* expected = program.node == 3 ? "--" : program.node == 0 ? row.root : row.other;
      for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput}) {
        const char kind = expected[buffer == Buffer::kOutput];
        const Extent extent = kind == 'w'   ? Extent::kWhole
                              : kind == 'o' ? Extent::kOwn
                                            : Extent::kNothing;
        const std::uint64_t bytes = kind == 'w' ? whole : kind == 'o' ? 14 : 0;
        EXPECT_EQ(buffer_extent(program, buffer), extent) << row.collective << " " << program.node;
        EXPECT_EQ(buffer_bytes(program, layout, buffer), bytes)
            << row.collective << " " << program.node;
        EXPECT_EQ(buffer_span(program, layout, buffer).offset, kind == 'o' ? program.node * 14 : 0);
      }
      EXPECT_EQ(buffer_extent(program, Buffer::kScratch), Extent::kNothing);
    }
  }
}

TEST(Layout, OutsideItThereIsNothing) {
  Layout layout;
  ASSERT_EQ(make_layout(sample_program(), 100, 1, layout), Status::kOk);
  EXPECT_EQ(block_span(layout, 2, 0).bytes, 0u);
  EXPECT_EQ(block_span(layout, 0, layout.blocks).bytes, 0u);
  EXPECT_EQ(block_span(layout, 0xffffffffu, 0xffffffffu).bytes, 0u);
}

}  // namespace
}  // namespace espalier
