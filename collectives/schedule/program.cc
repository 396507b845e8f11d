#include "espalier/collectives/schedule/program.h"

#include <algorithm>

#include "espalier/base/arithmetic.h"
#include "espalier/collectives/schedule/detail/index_cursor.h"

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
    const auto digits = static_cast<std::uint32_t>(value);
    value = reverse_digits<std::uint32_t>(digits, term.base, term.digits);
  }
  return wrapping_mul(term.coef, value);
}

std::int64_t index_value(const Program& program, std::uint32_t ref, std::int64_t i) {
  const Index& index = program.indices[ref];
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
  switch (program.collective) {
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

Status make_layout(const Program& program, std::uint64_t count, std::uint32_t element_bytes,
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
  layout.count = count;
  layout.element_bytes = element_bytes;
  layout.segments = program.segments;
  layout.segment_elements = segment_elements;
  layout.blocks = static_cast<std::uint32_t>(blocks);
  layout.block_elements = ceil_divide(segment_elements, layout.blocks);
  return Status::kOk;
}

Span block_span(const Layout& layout, std::uint32_t segment, std::uint32_t block,
                std::uint32_t segment_count) {
  if (segment >= layout.segments || block >= layout.blocks) return {};
  if (segment_count != 1 && (segment_count > layout.segments - segment || layout.blocks != 1))
    return {};
  const std::uint64_t first = segment * layout.segment_elements;
  const std::uint64_t segment_end =
      std::min(first + segment_count * layout.segment_elements, layout.count);
  const std::uint64_t begin = std::min(first + block * layout.block_elements, layout.count);
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

Span buffer_span(const Program& program, const Layout& layout, Buffer::Value buffer) {
  Span span;
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
  switch (collective) {
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
