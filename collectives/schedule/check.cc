// The loader's own checks. The machine can step a program that passes without reading outside its
// tables and without overflow. The verifier decides whether the program computes a correct result.

#include <cstddef>

#include "collectives/schedule/raw_enumerator.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/collectives/schedule/index_cursor.h"

namespace espalier {
namespace {

constexpr bool is_within(std::int32_t value, std::int32_t limit) {
  return value >= -limit && value <= limit;
}

template <std::size_t Size>
bool is_printable(const char (&text)[Size]) {
  for (std::size_t i = 0; i < Size; ++i) {
    if (text[i] == '\0') return true;
    if (text[i] < ' ' || text[i] > '~') return false;
  }
  return false;  // not terminated
}

template <typename Row, std::size_t Size>
constexpr std::size_t capacity(const Row (&)[Size]) {
  return Size;
}

bool has_valid_table_sizes(const Program& program) {
  return program.blocks_count <= capacity(program.blocks) &&
         program.peers_count <= capacity(program.peers) &&
         program.counts_count <= capacity(program.counts) &&
         program.terms_count <= capacity(program.terms) &&
         program.indices_count <= capacity(program.indices) &&
         program.actions_count <= capacity(program.actions) &&
         program.phases_count <= capacity(program.phases);
}

// A block does not arrive before its send is over: S <= L.
bool has_valid_ticks(const Program& program) {
  const std::uint32_t send = program.send_ticks == 0 ? 1 : program.send_ticks;
  const std::uint32_t latency = program.latency_ticks == 0 ? 1 : program.latency_ticks;
  return send <= latency && latency <= kMaxTicks;
}

// Checks nodes, ranks, root, node and segments.
bool is_valid_group(const Program& program) {
  if (program.ranks < 1 || program.ranks > kMaxNodes || program.root >= program.ranks) return false;
  if (program.nodes != 0 && (program.nodes < program.ranks || program.nodes > kMaxNodes)) {
    return false;
  }
  return program.node < program_nodes(program) && program.segments >= 1 &&
         program.segments <= kMaxField &&
         (program.segments == program.ranks ||
          (!counts_per_rank(program.collective) && !has_rotated_scratch(program)));
}

bool is_valid_header(const Program& program) {
  if (!is_printable(program.producer) || !is_printable(program.algorithm)) return false;
  const std::uint32_t collective = raw_enumerator(program.collective);
  const std::uint32_t port_model = raw_enumerator(program.port_model);
  const std::uint32_t contention = raw_enumerator(program.contention);
  return collective >= 1 && collective <= _espalier_Collective_MAX && port_model >= 1 &&
         port_model <= _espalier_PortModel_MAX && contention >= 1 &&
         contention <= _espalier_ContentionGuarantee_MAX && is_valid_group(program) &&
         program.window >= 1 && program.window <= kMaxFieldWindow &&
         program.scratch_blocks <= kMaxScratchBlocks && has_valid_ticks(program) &&
         program.steps_ref < program.counts_count && program.bound_ref < program.counts_count;
}

// Whether a message of any length has one block per segment.
bool has_always_one_block(const Program& program) {
  return program.blocks_count == 1 && program.blocks[0].block_bytes == 0 &&
         program.residue_mod == 0;
}

bool has_valid_blocks(const Program& program) {
  if (program.residue_mod > kMaxField) return false;
  if (program.residue_mod == 0 ? program.residue != 0 : program.residue >= program.residue_mod) {
    return false;
  }
  if (program.blocks_count == 0 || program.blocks[0].from_bytes != 0) return false;
  if (has_rotated_scratch(program) && (is_router(program) || !has_always_one_block(program))) {
    return false;
  }
  for (std::uint32_t rule = 1; rule < program.blocks_count; ++rule) {
    if (program.blocks[rule].from_bytes <= program.blocks[rule - 1].from_bytes) return false;
  }
  return true;
}

bool has_valid_peers(const Program& program) {
  if (program.ring_peers != 0) {
    return program.peers_count == 0 && !is_router(program) && program.ring_peers < program.ranks;
  }
  for (std::uint32_t link = 0; link < program.peers_count; ++link) {
    if (program.peers[link] >= kMaxNodes || program.peers[link] == program.node) return false;
    for (std::uint32_t other = 0; other < link; ++other) {
      if (program.peers[other] == program.peers[link]) return false;
    }
  }
  return true;
}

bool is_valid_count(const Count& count) {
  return is_within(count.a, kMaxField) && is_within(count.b, kMaxSlope) &&
         is_within(count.c, kMaxSlope) && is_within(count.d, kMaxField) && count.e <= kMaxField;
}

bool is_valid_table(const Program& program) {
  return program.table.size % 2 == 0 && program.table.size <= kMaxTableBytes &&
         (program.table.size == 0 || program.table.bytes != nullptr);
}

bool is_valid_term(const Program& program, const Term& term) {
  if (!is_within(term.coef, kMaxField) || !is_within(term.mul, kMaxField) ||
      !is_within(term.add, kMaxField) || term.div > kMaxField || term.mod > kMaxField) {
    return false;
  }
  if (term.table != 0) {
    const std::uint32_t entries = program.table.size / 2;
    return term.digits == 0 && term.base == 0 && term.mod >= 1 && term.table <= entries &&
           term.mod <= entries - (term.table - 1);
  }
  if (term.digits == 0) return term.base == 0;
  // A reversal is defined on exactly the numbers with `digits` digits.
  if (term.base < 2) return false;
  std::uint64_t power = 1;
  for (std::uint32_t digit = 0; digit < term.digits && power <= kMaxField; ++digit) {
    power *= term.base;
  }
  return power == term.mod;
}

bool is_valid_index(const Program& program, const Index& index) {
  return is_within(index.base, kMaxField) && is_within(index.coef, kMaxField) &&
         is_within(index.off, kMaxField) && index.div <= kMaxField && index.mod <= kMaxField &&
         index.first_term + index.terms <= program.terms_count;
}

// Whether `ref` is inside the table of indices and, if that index is the same for all instances,
// the `segment_count` positions from its value onward are in 0 .. limit-1.
bool is_valid_ref(const Program& program, std::uint32_t ref, std::int64_t limit,
                  std::int64_t segment_count = 1) {
  if (ref >= program.indices_count) return false;
  const Index& index = program.indices[ref];
  if (index.coef != 0 || index.terms != 0) return true;
  const std::int64_t value = index.base + finish_index(index, index.off);
  return value >= 0 && value <= limit - segment_count;
}

bool is_valid_operand(const Program& program, bool present, bool required, const Operand& operand) {
  if (!required) return !present;
  const std::uint32_t buffer = raw_enumerator(operand.buffer);
  if (!present || buffer < 1 || buffer > _espalier_Buffer_MAX) return false;
  const std::uint32_t segment_count = operand_segment_count(operand);
  if (segment_count > 1 && !has_always_one_block(program)) return false;
  std::uint32_t before_last = segment_count;
  if (buffer != Buffer::kScratch) {
    if (is_router(program)) return false;
  } else {
    if (!is_valid_ref(program, operand.slot_ref, program.scratch_blocks, segment_count)) {
      return false;
    }
    if (has_rotated_scratch(program)) before_last = 1;
  }
  return operand.block_ref < program.indices_count &&
         is_valid_ref(program, operand.segment_ref, program.segments, before_last);
}

bool has_equal_runs(const Action& action) {
  const std::uint32_t segment_count =
      operand_segment_count(action.kind == ActionKind::kSend ? action.a : action.into);
  return (!action.has_a || operand_segment_count(action.a) == segment_count) &&
         (!action.has_b || operand_segment_count(action.b) == segment_count);
}

// Whether the pace never decreases, judged by its coefficient or by the values within its longest
// table. Machine and verifier check the other values. 0: none.
bool is_valid_pace(const Program& program, const Action& action) {
  if (action.pace_ref == 0) return true;
  if (action.pace_ref >= program.indices_count) return false;
  const Index& index = program.indices[action.pace_ref];
  if (index.terms == 0) return index.coef >= 0;
  std::uint32_t rows = 1;
  for (std::uint32_t i = 0; i < index.terms; ++i) {
    const Term& term = program.terms[index.first_term + i];
    if (term.table != 0 && term.mod > rows) rows = term.mod;
  }
  std::int64_t previous = index_value(program, action.pace_ref, 0);
  for (std::uint32_t i = 1; i < rows; ++i) {
    const std::int64_t pace = index_value(program, action.pace_ref, i);
    if (pace < previous) return false;
    previous = pace;
  }
  return true;
}

bool is_valid_action(const Program& program, const Action& action) {
  const std::uint32_t kind = raw_enumerator(action.kind);
  if (kind < 1 || kind > _espalier_ActionKind_MAX) return false;
  const bool send = kind == ActionKind::kSend;
  const bool receive = kind == ActionKind::kReceive;
  const bool combine = kind == ActionKind::kCombine;
  if ((send || receive) && !is_valid_ref(program, action.link_ref, links_count(program)))
    return false;
  if (!is_valid_pace(program, action)) return false;
  if (!send && raw_enumerator(action.into.buffer) == Buffer::kInput) return false;
  return action.t0_ref < program.counts_count && action.instances_ref < program.counts_count &&
         is_valid_operand(program, action.has_into, !send, action.into) &&
         is_valid_operand(program, action.has_a, !receive, action.a) &&
         is_valid_operand(program, action.has_b, combine, action.b) && has_equal_runs(action);
}

bool has_valid_phases(const Program& program) {
  std::uint32_t actions = 0;
  for (std::uint32_t i = 0; i < program.phases_count; ++i) {
    const Phase& phase = program.phases[i];
    if (phase.period < 1 || phase.period > kMaxField || phase.steps_ref >= program.counts_count) {
      return false;
    }
    actions += phase.actions;
  }
  return actions == program.actions_count;
}

bool has_valid_tables(const Program& program) {
  if (!is_valid_table(program)) return false;
  for (std::uint32_t i = 0; i < program.counts_count; ++i) {
    if (!is_valid_count(program.counts[i])) return false;
  }
  for (std::uint32_t i = 0; i < program.terms_count; ++i) {
    if (!is_valid_term(program, program.terms[i])) return false;
  }
  for (std::uint32_t i = 0; i < program.indices_count; ++i) {
    if (!is_valid_index(program, program.indices[i])) return false;
  }
  for (std::uint32_t i = 0; i < program.actions_count; ++i) {
    if (!is_valid_action(program, program.actions[i])) return false;
  }
  return true;
}

}  // namespace

Status check_program(const Program& program) {
  if (program.format_version != kFormatVersion) return Status::kBadVersion;
  if ((program.required_features & ~kKnownFeatures) != 0) return Status::kUnknownFeature;
  const bool good = has_valid_table_sizes(program) && is_valid_header(program) &&
                    has_valid_blocks(program) && has_valid_peers(program) &&
                    has_valid_tables(program) && has_valid_phases(program);
  return good ? Status::kOk : Status::kMalformed;
}

}  // namespace espalier
