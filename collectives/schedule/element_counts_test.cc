// Layouts of unequal counts, against a plain list of the message's elements.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier {
namespace {

using Vector = std::vector<std::uint64_t>;

// A program without actions: only its layout matters here.
OwnedProgram program_of(Collective collective, std::uint32_t ranks, std::uint32_t node,
                        std::uint32_t block_bytes) {
  OwnedProgram program;
  program.collective = collective;
  program.ranks = program.segments = ranks;
  program.node = node;
  program.blocks_count = 1;
  program.blocks[0] = {0, block_bytes};
  return program;
}

// The parts of a buffer, one after the other: their elements are 0, 1, 2, ... over all parts.
std::vector<Vector> parts_of(const Vector& counts) {
  std::vector<Vector> parts;
  std::uint64_t next = 0;
  for (const std::uint64_t count : counts) {
    Vector& part = parts.emplace_back(count);
    std::iota(part.begin(), part.end(), next);
    next += count;
  }
  return parts;
}

Vector elements_of(const Span& span, std::uint32_t element_bytes) {
  Vector elements(span.elements);
  std::iota(elements.begin(), elements.end(), span.offset / element_bytes);
  return elements;
}

// Checks every block of a buffer with these parts.
void check_blocks(const Layout& layout, const std::vector<Vector>& parts, Buffer::Value buffer) {
  for (std::uint32_t segment = 0; segment < parts.size(); ++segment) {
    Vector all;
    for (std::uint32_t block = 0; block < layout.blocks; ++block) {
      const Span span = block_span(layout, segment, block, 1, buffer);
      RC_ASSERT(span.bytes == span.elements * layout.element_bytes);
      RC_ASSERT(span.bytes <= slot_bytes(layout));
      RC_ASSERT(span.offset % layout.element_bytes == 0);
      const Vector elements = elements_of(span, layout.element_bytes);
      all.insert(all.end(), elements.begin(), elements.end());
    }
    RC_ASSERT(all == parts[segment]);
    for (std::uint32_t end = segment + 1; layout.blocks == 1 && end <= parts.size(); ++end) {
      Vector several;
      for (std::uint32_t k = segment; k < end; ++k) {
        several.insert(several.end(), parts[k].begin(), parts[k].end());
      }
      RC_ASSERT(several == elements_of(block_span(layout, segment, 0, end - segment, buffer),
                                       layout.element_bytes));
    }
  }
}

Vector random_counts(std::uint64_t entries) {
  Vector counts(entries);
  for (std::uint64_t& count : counts) count = *rc::gen::inRange<std::uint64_t>(0, 12);
  if (*rc::gen::inRange(0, 3) == 0) counts[*rc::gen::inRange<std::size_t>(0, entries)] = 500;
  if (*rc::gen::inRange(0, 8) == 0) counts.assign(entries, 0);
  return counts;
}

TEST(UnequalCounts, EveryElementIsInOneBlock) {
  ASSERT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 7);
    const auto node = *rc::gen::inRange<std::uint32_t>(0, ranks);
    const auto collective =
        *rc::gen::element<Collective::Value>(Collective::kScatter, Collective::kGather,
                                             Collective::kAllgather, Collective::kReduceScatter);
    OwnedProgram program = program_of(collective, ranks, node, *rc::gen::element(0u, 8u, 100u));
    program.residue_mod = *rc::gen::inRange<std::uint32_t>(0, 4);
    program.residue = program.residue_mod == 0 ? 0 : 1 % program.residue_mod;
    program.root = *rc::gen::inRange<std::uint32_t>(0, ranks);
    const auto element_bytes = *rc::gen::inRange<std::uint32_t>(1, 9);
    const Vector counts = random_counts(ranks);
    Vector offsets(unequal_offsets(collective, ranks));
    Layout layout;
    RC_ASSERT(make_layout(program, {counts.data(), counts.size(), offsets.data()}, element_bytes,
                          layout) == Status::kOk);
    Layout equal;
    const std::uint64_t largest = *std::max_element(counts.begin(), counts.end());
    RC_ASSERT(make_layout(program, largest, element_bytes, equal) == Status::kOk);
    RC_ASSERT(layout.blocks == equal.blocks);
    RC_ASSERT(slot_bytes(layout) == slot_bytes(equal));
    check_blocks(layout, parts_of(counts), Buffer::kOutput);
    check_blocks(layout, parts_of(counts), Buffer::kInput);
    check_blocks(layout, parts_of(counts), Buffer::kScratch);
    const std::uint64_t whole = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    for (const Buffer::Value buffer : {espalier_Buffer_INPUT, espalier_Buffer_OUTPUT}) {
      const Span span = buffer_span(program, layout, buffer);
      const Extent extent = buffer_extent(program, buffer);
      const std::uint64_t expected = extent == Extent::kNothing ? 0
                                     : extent == Extent::kOwn   ? counts[node]
                                                                : whole;
      RC_ASSERT(span.bytes == expected * element_bytes);
      if (extent == Extent::kOwn) RC_ASSERT(span.offset == offsets[node] * element_bytes);
    }
  }));
}

// The row of the rank in its input, the column in its output.
TEST(UnequalCounts, OfAnAllToAllAreAMatrix) {
  ASSERT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 6);
    const auto node = *rc::gen::inRange<std::uint32_t>(0, ranks);
    const OwnedProgram program = program_of(Collective::kAllToAll, ranks, node, 16);
    const Vector counts = random_counts(std::uint64_t{ranks} * ranks);
    Vector offsets(unequal_offsets(Collective::kAllToAll, ranks));
    Layout layout;
    RC_ASSERT(make_layout(program, {counts.data(), counts.size(), offsets.data()}, 4, layout) ==
              Status::kOk);
    Vector row, column;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      row.push_back(counts[std::size_t{node} * ranks + rank]);
      column.push_back(counts[std::size_t{rank} * ranks + node]);
    }
    check_blocks(layout, parts_of(row), Buffer::kInput);
    check_blocks(layout, parts_of(column), Buffer::kOutput);
    const auto sum = [](const Vector& all) {
      return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
    };
    RC_ASSERT(buffer_bytes(program, layout, Buffer::kInput) == 4 * sum(row));
    RC_ASSERT(buffer_bytes(program, layout, Buffer::kOutput) == 4 * sum(column));
  }));
}

// The slots of a group hold consecutive segments without gaps, each where every operand that
// contains it expects it, and all of them inside the slots' memory. Other slots are as with equal
// counts.
TEST(UnequalCounts, SlotGroupsHaveNoGaps) {
  ASSERT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 8);
    const auto segment_of_first = *rc::gen::inRange<std::uint32_t>(0, ranks);
    const auto before = *rc::gen::inRange<std::uint32_t>(0, 3);  // slots
    const OwnedProgram program = program_of(Collective::kScatter, ranks, 0, 0);
    const Vector counts = random_counts(ranks);
    Vector offsets(unequal_offsets(Collective::kScatter, ranks));
    Layout layout;
    RC_ASSERT(make_layout(program, {counts.data(), counts.size(), offsets.data()}, 2, layout) ==
              Status::kOk);
    layout.slot_groups.count = 2;
    layout.slot_groups.groups[0] = {before, before + ranks, 1 + segment_of_first};
    layout.slot_groups.groups[1] = {before + ranks, before + ranks + 2, 0};
    std::uint64_t expected = before * slot_bytes(layout);
    for (std::uint32_t slot = 0; slot < before; ++slot) {
      RC_ASSERT(slot_offset(layout, slot % ranks, slot) == slot * slot_bytes(layout));
    }
    for (std::uint32_t position = 0; position < ranks; ++position) {
      const std::uint32_t segment = (segment_of_first + position) % ranks;
      RC_ASSERT(slot_offset(layout, segment, before + position) == expected);
      RC_ASSERT(expected <= (before + position) * slot_bytes(layout));
      expected += 2 * counts[segment];
      RC_ASSERT(slot_offset(layout, segment, before + ranks) ==
                (before + ranks) * slot_bytes(layout));
    }
  }));
}

// Rotated scratch has no gaps either. It needs no groups, whatever its operands are.
TEST(UnequalCounts, RotatedScratchHasNoGaps) {
  ASSERT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 8);
    const auto node = *rc::gen::inRange<std::uint32_t>(0, ranks);
    const auto area = *rc::gen::inRange<std::uint32_t>(0, 3);
    OwnedProgram program = program_of(Collective::kAllgather, ranks, node, 0);
    program.required_features = kRotatedScratch;
    const Vector counts = random_counts(ranks);
    Vector offsets(unequal_offsets(Collective::kAllgather, ranks));
    Layout layout;
    RC_ASSERT(make_layout(program, {counts.data(), counts.size(), offsets.data()}, 2, layout) ==
              Status::kOk);
    std::uint64_t expected = area * slot_bytes(layout);
    for (std::uint32_t position = 0; position < ranks; ++position) {
      const std::uint32_t segment = (node + position) % ranks;
      RC_ASSERT(slot_offset(layout, segment, area + position) == expected);
      std::uint64_t elements = 0;
      for (std::uint32_t run = 1; run <= ranks; ++run) {
        elements += counts[(segment + run - 1) % ranks];
        RC_ASSERT(block_span(layout, segment, 0, run, Buffer::kScratch).elements == elements);
      }
      expected += 2 * counts[segment];
      RC_ASSERT(expected <= (area + position + 1) * slot_bytes(layout));
    }
  }));
}

// A scatter of 8 ranks whose actions copy from and into scratch: (segment, slot, segment count).
struct ScratchCopy {
  std::int32_t segment, slot;
  std::uint32_t segment_count;
};
OwnedProgram copies(const std::vector<ScratchCopy>& all) {
  OwnedProgram program = program_of(Collective::kScatter, 8, 0, 0);
  program.scratch_blocks = 20;
  program.counts_count = 1;
  program.counts[0].a = 1;
  program.indices_count = 1;
  for (const ScratchCopy& one : all) {
    Action& action = program.actions[program.actions_count++];
    action.kind = ActionKind::kReceive;
    action.has_into = true;
    action.into.buffer = Buffer::kScratch;
    action.into.segment_count = static_cast<std::uint16_t>(one.segment_count);
    for (const std::int32_t value : {one.segment, one.slot}) {
      program.indices[program.indices_count++].base = value;
    }
    action.into.segment_ref = static_cast<std::uint8_t>(program.indices_count - 2);
    action.into.slot_ref = static_cast<std::uint8_t>(program.indices_count - 1);
  }
  return program;
}

TEST(UnequalCounts, GroupsAreTheSlotsOfOneOperandAndWhatOverlapsIt) {
  SlotGroups groups;
  // Singles of any segments, and two operands that share a slot, in order.
  ASSERT_TRUE(takes_unequal_counts(copies({{3, 9, 1}, {5, 9, 1}, {2, 0, 3}, {4, 2, 2}}), groups));
  ASSERT_EQ(groups.count, 1u);
  EXPECT_EQ(groups.groups[0].first, 0u);
  EXPECT_EQ(groups.groups[0].end, 4u);
  EXPECT_EQ(groups.groups[0].first_segment, 3u);
  // Neighbours that no operand joins.
  ASSERT_TRUE(takes_unequal_counts(copies({{6, 4, 2}, {0, 6, 2}, {6, 4, 2}, {7, 5, 1}}), groups));
  EXPECT_EQ(groups.count, 2u);
  // Two groups with orders of their own.
  ASSERT_TRUE(takes_unequal_counts(copies({{2, 0, 3}, {4, 10, 2}, {5, 11, 1}}), groups));
  EXPECT_EQ(groups.count, 2u);
  // Without an order, if all operands begin at the same slot.
  ASSERT_TRUE(takes_unequal_counts(copies({{2, 5, 3}, {4, 5, 2}, {0, 5, 1}}), groups));
  ASSERT_EQ(groups.count, 1u);
  EXPECT_EQ(groups.groups[0].first_segment, 0u);
}

TEST(UnequalCounts, OneOperandMayJoinMoreThanTheMaximumNumberOfGroups) {
  SlotGroups groups;
  OwnedProgram joined = copies({{0, 0, 2}, {2, 2, 2}, {4, 4, 2}, {6, 6, 2}, {8, 8, 2}, {0, 0, 10}});
  joined.segments = 10;
  ASSERT_TRUE(takes_unequal_counts(joined, groups));
  ASSERT_EQ(groups.count, 1u);
  EXPECT_EQ(groups.groups[0].end, 10u);
  // From the last one to the first: each joins the one before.
  ASSERT_TRUE(takes_unequal_counts(copies({{5, 5, 2}, {4, 4, 2}, {3, 3, 2}, {2, 2, 2}}), groups));
  ASSERT_EQ(groups.count, 1u);
  EXPECT_EQ(groups.groups[0].first, 2u);
  EXPECT_EQ(groups.groups[0].end, 7u);
}

TEST(UnequalCounts, GroupsWithoutAnOrderAreRefused) {
  SlotGroups groups;
  EXPECT_FALSE(takes_unequal_counts(copies({{2, 0, 3}, {5, 2, 1}}), groups)) << "slot 2 has 4";
  EXPECT_FALSE(takes_unequal_counts(copies({{2, 0, 3}, {3, 0, 2}, {4, 1, 1}}), groups));
  EXPECT_FALSE(takes_unequal_counts(copies({{2, 0, 2}, {2, 1, 2}}), groups));
  EXPECT_FALSE(takes_unequal_counts(copies({{2, 18, 3}}), groups)) << "there are 20 slots";
  EXPECT_FALSE(
      takes_unequal_counts(copies({{0, 0, 2}, {0, 2, 2}, {0, 4, 2}, {0, 6, 2}, {0, 8, 2}}), groups))
      << "five groups";
  OwnedProgram rotated = copies({{0, 0, 2}, {0, 2, 2}, {0, 4, 2}, {0, 6, 2}, {0, 8, 2}});
  rotated.required_features = kRotatedScratch;
  EXPECT_TRUE(takes_unequal_counts(rotated, groups));
  EXPECT_EQ(groups.count, 0u);
}

}  // namespace
}  // namespace espalier
