#include "espalier/collectives/schedule/program.h"

#include <algorithm>

#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/collectives/schedule/index_cursor.h"

namespace espalier {

std::int64_t count_value(const Count& count, std::int64_t blocks) {
  const std::int64_t line = wrapping_add(count.a, wrapping_mul(count.b, blocks));
  if (count.c == 0) return line;
  std::int64_t parts = wrapping_add(blocks, count.d);
  if (floor_divide(parts, count.e) != 0) ++parts;
  return wrapping_add(line, wrapping_mul(count.c, parts));
}

std::int64_t finish_index(const Index& index, std::int64_t sum) {
  floor_divide(sum, index.div);
  return index.mod == 0 ? sum : std::int64_t{floor_divide(sum, index.mod)};
}

std::int64_t term_value(const Program& program, const Term& term, std::int64_t i) {
  std::int64_t value = wrapping_add(wrapping_mul(term.mul, i), term.add);
  floor_divide(value, term.div);
  if (term.mod != 0) value = floor_divide(value, term.mod);
  if (term.table != 0) value = table_entry(table_entries(program, term), value);
  if (term.digits != 0) {
    // 0 <= value < mod <= 2^30.
    ESPALIER_ASSERT(0 <= value && value < term.mod && term.mod <= 1u << 30);
    const auto digits = static_cast<std::uint32_t>(value);
    value = reverse_digits<std::uint32_t>(digits, term.base, term.digits);
  }
  return wrapping_mul(term.coef, value);
}

std::int64_t index_value(const Program& program, std::uint32_t ref, std::int64_t i) {
  ESPALIER_ASSERT(ref < program.indices_count);
  const Index& index = program.indices[ref];
  ESPALIER_ASSERT(index.terms == 0 || index.first_term + index.terms <= program.terms_count);
  std::int64_t sum = wrapping_add(index.off, wrapping_mul(index.coef, i));
  for (std::uint32_t term = 0; term < index.terms; ++term) {
    sum = wrapping_add(sum, term_value(program, program.terms[index.first_term + term], i));
  }
  return wrapping_add(index.base, finish_index(index, sum));
}

std::int64_t phase_steps(const Program& program, std::int64_t blocks) {
  std::int64_t steps = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    steps += std::max<std::int64_t>(
        0, count_value(program.counts[program.phases[phase].steps_ref], blocks));
  }
  return steps;
}

Extent buffer_extent(const Program& program, Buffer::Value buffer) {
  if (is_router(program)) return Extent::kNothing;
  const bool input = buffer == Buffer::kInput;
  if (!input && buffer != Buffer::kOutput) return Extent::kNothing;
  const bool root = program.node == program.root;
  const auto if_true = [](bool holds) { return holds ? Extent::kWhole : Extent::kNothing; };
  switch (Collective(program.collective).value()) {
    case Collective::kBroadcast: return if_true(input == root);
    case Collective::kReduce: return if_true(input || root);
    case Collective::kExscan: return if_true(input || program.node != 0);
    case Collective::kScatter: return input ? if_true(root) : Extent::kOwn;
    case Collective::kGather: return input ? Extent::kOwn : if_true(root);
    case Collective::kAllgather: return input ? Extent::kOwn : Extent::kWhole;
    case Collective::kReduceScatter: return input ? Extent::kWhole : Extent::kOwn;
    case Collective::kAllreduce:
    case Collective::kScan:
    case Collective::kAllToAll: return Extent::kWhole;
    default: return Extent::kNothing;
  }
}

namespace {

// Returns the block size for a message of `bytes`: from the last rule with from_bytes <= bytes.
std::uint32_t block_bytes_for(const Program& program, std::uint64_t bytes) {
  std::uint32_t block_bytes = 0;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    if (program.blocks[rule].from_bytes > bytes) break;
    block_bytes = program.blocks[rule].block_bytes;
  }
  return block_bytes;
}

std::uint64_t ceil_divide(std::uint64_t n, std::uint32_t d) {
  const std::uint32_t rest = divide(n, d);
  return rest != 0 ? n + 1 : n;
}

bool is_too_large(std::uint64_t count, std::uint32_t bytes) {
  std::uint64_t max_count = kMaxMessageBytes;
  divide(max_count, bytes);
  return count > max_count;
}

}  // namespace

namespace {

// Cuts `count` elements, or `count` elements per rank.
Status cut(const Program& program, std::uint64_t count, std::uint32_t element_bytes,
           Layout& layout) {
  if (program.segments == 0) return Status::kMalformed;
  if (element_bytes == 0) return Status::kBadArgument;
  if (count > 0 && program.collective == Collective::kBarrier) return Status::kBadArgument;
  if (counts_per_rank(program.collective)) {
    if (is_too_large(count, program.segments)) return Status::kTooLarge;
    count *= program.segments;
  }
  if (is_too_large(count, element_bytes)) return Status::kTooLarge;
  const std::uint64_t segment_elements = ceil_divide(count, program.segments);
  const std::uint32_t block_bytes = block_bytes_for(program, count * element_bytes);
  std::uint64_t blocks = 1;
  if (block_bytes != 0) {
    const std::uint32_t fit = std::max<std::uint32_t>(1, block_bytes / element_bytes);
    blocks = std::max<std::uint64_t>(1, ceil_divide(segment_elements, fit));
  }
  if (program.residue_mod != 0) {
    const std::uint32_t mod = program.residue_mod;
    std::uint64_t rounds = blocks;
    const std::uint32_t rest = divide(rounds, mod);
    blocks += (program.residue % mod + mod - rest) % mod;
  }
  if (blocks > kMaxBlocks) return Status::kTooLarge;
  ESPALIER_ASSERT(program.residue_mod == 0 ||
                  blocks % program.residue_mod == program.residue % program.residue_mod);
  layout.count = count;
  layout.element_bytes = element_bytes;
  layout.segments = program.segments;
  layout.segment_elements = segment_elements;
  layout.blocks = static_cast<std::uint32_t>(blocks);
  layout.block_elements = ceil_divide(segment_elements, layout.blocks);
  ESPALIER_ASSERT(blocks >= 1 && layout.block_elements * blocks >= segment_elements);
#if ESPALIER_ROTATED_SCRATCH
  layout.rotation = has_rotated_scratch(program) ? program.node + 1 : 0;
#endif
  return Status::kOk;
}

}  // namespace

#if !ESPALIER_UNEQUAL_COUNTS
Status make_layout(const Program& program, ElementCounts counts, std::uint32_t element_bytes,
                   Layout& layout) {
  return cut(program, counts, element_bytes, layout);
}
#else
namespace {

// Whether there are as many counts as the collective takes, and memory for them.
bool is_complete(const Program& program, const ElementCounts& counts) {
  return counts_per_rank(program.collective) && program.segments == program.ranks &&
         counts.entries == unequal_entries(program.collective, program.ranks) &&
         counts.elements != nullptr && counts.offsets != nullptr;
}

// Writes the offsets of `ranks` segments, of which every `stride`-th count is one, and the end.
const std::uint64_t* add_up(const std::uint64_t* elements, std::uint64_t stride,
                            std::uint32_t ranks, std::uint64_t* offsets) {
  std::uint64_t sum = 0;
  ESPALIER_ASSERT(elements != nullptr && offsets != nullptr);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    offsets[rank] = sum;
    sum += elements[rank * stride];
  }
  offsets[ranks] = sum;
  return offsets;
}

// The range of `segment_count` segments, or of one block of a segment.
Span unequal_span(const Layout& layout, const std::uint64_t* offsets, std::uint32_t segment,
                  std::uint32_t block, std::uint32_t segment_count) {
  ESPALIER_ASSERT(block < layout.blocks && segment + segment_count <= layout.segments);
  ESPALIER_ASSERT(offsets[segment] <= offsets[segment + segment_count]);
  const std::uint64_t length = offsets[segment + segment_count] - offsets[segment];
  const std::uint64_t begin = std::min(block * layout.block_elements, length);
  const std::uint64_t end = std::min(begin + segment_count * layout.block_elements, length);
  Span span;
  span.offset = (offsets[segment] + begin) * layout.element_bytes;
  span.elements = end - begin;
  span.bytes = span.elements * layout.element_bytes;
  return span;
}

}  // namespace

Status make_layout(const Program& program, ElementCounts counts, std::uint32_t element_bytes,
                   Layout& layout) {
  layout.input_offsets = layout.output_offsets = nullptr;
  layout.slot_groups = {};
  if (!counts.unequal()) return cut(program, counts.count, element_bytes, layout);
  if (!is_complete(program, counts)) return Status::kBadArgument;
  if (!takes_unequal_counts(program, layout.slot_groups)) return Status::kUnsupported;
  std::uint64_t largest = 0;
  for (std::uint64_t k = 0; k < counts.entries; ++k) {
    largest = std::max(largest, counts.elements[k]);
  }
  const Status status = cut(program, largest, element_bytes, layout);
  if (status != Status::kOk) return status;
  const std::uint32_t ranks = program.ranks;
  if (program.collective != Collective::kAllToAll) {
    layout.input_offsets = layout.output_offsets =
        add_up(counts.elements, 1, ranks, counts.offsets);
    return Status::kOk;
  }
  // A router, which has no row of its own, uses none of the offsets: it does nothing.
  const std::uint64_t own = program.node < ranks ? program.node : 0;
  layout.input_offsets = add_up(counts.elements + own * ranks, 1, ranks, counts.offsets);
  layout.output_offsets = add_up(counts.elements + own, ranks, ranks, counts.offsets + ranks + 1);
  return Status::kOk;
}
#endif

Span block_span(const Layout& layout, std::uint32_t segment, std::uint32_t block,
                std::uint32_t segment_count, Buffer::Value buffer) {
  if (segment >= layout.segments || block >= layout.blocks) return {};
  if (segment_count != 1 && layout.blocks != 1) return {};
  const std::uint32_t until_last = layout.segments - segment;
  if (segment_count > until_last) {
    if (buffer != Buffer::kScratch || layout.rotation == 0) return {};
    Span span = block_span(layout, segment, block, until_last, buffer);
    const Span rest = block_span(layout, 0, block, segment_count - until_last, buffer);
    span.bytes += rest.bytes;
    span.elements += rest.elements;
    return span;
  }
#if ESPALIER_UNEQUAL_COUNTS
  const std::uint64_t* offsets =
      buffer == Buffer::kInput ? layout.input_offsets : layout.output_offsets;
  if (offsets != nullptr) return unequal_span(layout, offsets, segment, block, segment_count);
#endif
  const std::uint64_t first = segment * layout.segment_elements;
  const std::uint64_t segment_end =
      std::min(first + segment_count * layout.segment_elements, layout.count);
  const std::uint64_t begin = std::min(first + block * layout.block_elements, layout.count);
  ESPALIER_ASSERT(begin <= layout.count && segment_end <= layout.count);
  const std::uint64_t end = std::min(begin + segment_count * layout.block_elements, segment_end);
  Span span;
  span.offset = begin * layout.element_bytes;
  if (end > begin) span.elements = end - begin;
  span.bytes = span.elements * layout.element_bytes;
  return span;
}

std::uint64_t slot_bytes(const Layout& layout) {
  return layout.block_elements * layout.element_bytes;
}

std::uint32_t rotated_position(const Layout& layout, std::uint32_t segment) {
  ESPALIER_ASSERT(layout.rotation == 0 || segment < layout.segments);
  if (layout.rotation == 0) return segment;
  const std::uint32_t first = layout.rotation - 1;
  return segment < first ? segment + layout.segments - first : segment - first;
}

std::uint64_t slot_offset(const Layout& layout, std::uint32_t segment, std::uint32_t slot) {
  if (layout.rotation != 0) {
    const std::uint32_t position = rotated_position(layout, segment);
    ESPALIER_ASSERT(position <= slot);
    return (slot - position) * slot_bytes(layout) +
           block_span(layout, layout.rotation - 1, 0, position, Buffer::kScratch).bytes;
  }
#if ESPALIER_UNEQUAL_COUNTS
  for (std::uint32_t k = 0; k < layout.slot_groups.count; ++k) {
    const SlotGroup& group = layout.slot_groups.groups[k];
    if (slot < group.first || slot >= group.end) continue;
    const std::uint64_t begin = group.first * slot_bytes(layout);
    if (group.first_segment == 0) return begin;
    const std::uint64_t* offsets = layout.output_offsets;
    const std::uint32_t first = group.first_segment - 1;
    const std::uint64_t end = segment < first ? offsets[layout.segments] : 0;
    ESPALIER_ASSERT(segment < layout.segments && offsets[first] <= end + offsets[segment]);
    return begin + (end + offsets[segment] - offsets[first]) * layout.element_bytes;
  }
#endif
  return slot * slot_bytes(layout);
}

Span buffer_span(const Program& program, const Layout& layout, Buffer::Value buffer) {
  Span span;
#if ESPALIER_UNEQUAL_COUNTS
  const std::uint64_t* offsets =
      buffer == Buffer::kInput ? layout.input_offsets : layout.output_offsets;
  if (offsets != nullptr) {
    const Extent extent = buffer_extent(program, buffer);
    if (extent == Extent::kNothing) return span;
    const bool own = extent == Extent::kOwn;
    const std::uint32_t first = own ? program.node : 0;
    span.elements = offsets[own ? first + 1 : layout.segments] - offsets[first];
    span.offset = offsets[first] * layout.element_bytes;
    span.bytes = span.elements * layout.element_bytes;
    return span;
  }
#endif
  switch (buffer_extent(program, buffer)) {
    case Extent::kNothing: return span;
    case Extent::kOwn:
      span.elements = layout.segment_elements;
      span.offset = program.node * layout.segment_elements * layout.element_bytes;
      break;
    case Extent::kWhole: span.elements = layout.count; break;
  }
  span.bytes = span.elements * layout.element_bytes;
  return span;
}

std::uint64_t buffer_bytes(const Program& program, const Layout& layout, Buffer::Value buffer) {
  return buffer_span(program, layout, buffer).bytes;
}

const char* collective_name(Collective collective) {
  switch (collective.value()) {
    case Collective::kBroadcast: return "broadcast";
    case Collective::kReduce: return "reduce";
    case Collective::kAllreduce: return "allreduce";
    case Collective::kScan: return "scan";
    case Collective::kExscan: return "exscan";
    case Collective::kScatter: return "scatter";
    case Collective::kGather: return "gather";
    case Collective::kAllgather: return "allgather";
    case Collective::kReduceScatter: return "reduce-scatter";
    case Collective::kAllToAll: return "all-to-all";
    case Collective::kBarrier: return "barrier";
    default: return "unknown";
  }
}

}  // namespace espalier
