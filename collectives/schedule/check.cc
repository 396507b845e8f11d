// The loader's own checks: a program that passes can be stepped without reading outside its tables
// and without overflow. Whether it computes anything is the verifier's matter.

#include <cstddef>
#include <cstring>

#include "espalier/base/arithmetic.h"
#include "espalier/collectives/schedule/detail/index_cursor.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier {
namespace {

// The bytes of a decoded enum may hold any value: read as bytes until checked.
template <typename Enum>
std::uint32_t raw(const Enum& value) {
  if constexpr (sizeof(Enum) == 1) {
    std::uint8_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  } else {
    static_assert(sizeof(Enum) == 4);
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
}

constexpr bool within(std::int32_t value, std::int32_t limit) {
  return value >= -limit && value <= limit;
}

template <std::size_t Size>
bool printable(const char (&text)[Size]) {
  for (std::size_t at = 0; at < Size; ++at) {
    if (text[at] == '\0') return true;
    if (text[at] < ' ' || text[at] > '~') return false;
  }
  return false;  // not terminated
}

template <typename Row, std::size_t Size>
constexpr std::size_t capacity(const Row (&)[Size]) {
  return Size;
}

bool good_table_sizes(const Program& program) {
  return program.blocks_count <= capacity(program.blocks) &&
         program.peers_count <= capacity(program.peers) &&
         program.counts_count <= capacity(program.counts) &&
         program.terms_count <= capacity(program.terms) &&
         program.indices_count <= capacity(program.indices) &&
         program.actions_count <= capacity(program.actions) &&
         program.phases_count <= capacity(program.phases);
}

// A block arrives no sooner than it has left.
bool good_ticks(const Program& program) {
  const std::uint32_t send = program.send_ticks == 0 ? 1 : program.send_ticks;
  const std::uint32_t latency = program.latency_ticks == 0 ? 1 : program.latency_ticks;
  return send <= latency && latency <= kMaxTicks;
}

// Whose program it is, of how many, and how many parts the message has.
bool good_group(const Program& program) {
  if (program.ranks < 1 || program.ranks > kMaxNodes || program.root >= program.ranks) return false;
  if (program.nodes != 0 && (program.nodes < program.ranks || program.nodes > kMaxNodes)) {
    return false;
  }
  return program.node < program_nodes(program) && program.segments >= 1 &&
         program.segments <= kMaxField &&
         (!counts_per_rank(program.collective) || program.segments == program.ranks);
}

bool good_header(const Program& program) {
  if (!printable(program.producer) || !printable(program.algorithm)) return false;
  const std::uint32_t collective = raw(program.collective);
  const std::uint32_t port_model = raw(program.port_model);
  const std::uint32_t grade = raw(program.grade);
  return collective >= 1 && collective <= _espalier_Collective_MAX && port_model >= 1 &&
         port_model <= _espalier_PortModel_MAX && grade >= 1 && grade <= _espalier_Grade_MAX &&
         good_group(program) && program.window >= 1 && program.window <= kMaxFieldWindow &&
         program.scratch_blocks <= kMaxScratchBlocks && good_ticks(program) &&
         program.steps_ref < program.counts_count && program.bound_ref < program.counts_count;
}

bool good_blocks(const Program& program) {
  if (program.residue_mod > kMaxField) return false;
  if (program.residue_mod == 0 ? program.residue != 0 : program.residue >= program.residue_mod) {
    return false;
  }
  if (program.blocks_count == 0 || program.blocks[0].from_bytes != 0) return false;
  for (std::uint32_t rule = 1; rule < program.blocks_count; ++rule) {
    if (program.blocks[rule].from_bytes <= program.blocks[rule - 1].from_bytes) return false;
  }
  return true;
}

bool good_peers(const Program& program) {
  if (program.ring_peers != 0) {
    return program.peers_count == 0 && !is_router(program) && program.ring_peers < program.ranks;
  }
  for (std::uint32_t link = 0; link < program.peers_count; ++link) {
    if (program.peers[link] >= kMaxNodes || program.peers[link] == program.node) return false;
    for (std::uint32_t before = 0; before < link; ++before) {
      if (program.peers[before] == program.peers[link]) return false;
    }
  }
  return true;
}

bool good_count(const Count& count) {
  return within(count.a, kMaxField) && within(count.b, kMaxSlope) && within(count.c, kMaxSlope) &&
         within(count.d, kMaxField) && count.e <= kMaxField;
}

bool good_table(const Program& program) {
  return program.table.size % 2 == 0 && program.table.size <= kMaxTableBytes &&
         (program.table.size == 0 || program.table.bytes != nullptr);
}

bool good_term(const Program& program, const Term& term) {
  if (!within(term.coef, kMaxField) || !within(term.mul, kMaxField) ||
      !within(term.add, kMaxField) || term.div > kMaxField || term.mod > kMaxField) {
    return false;
  }
  if (term.table != 0) {
    const std::uint32_t entries = program.table.size / 2;
    return term.digits == 0 && term.base == 0 && term.mod >= 1 && term.table <= entries &&
           term.mod <= entries - (term.table - 1);
  }
  if (term.digits == 0) return term.base == 0;
  // A reversal is defined on exactly the numbers of that many digits.
  if (term.base < 2) return false;
  std::uint64_t power = 1;
  for (std::uint32_t digit = 0; digit < term.digits && power <= kMaxField; ++digit) {
    power *= term.base;
  }
  return power == term.mod;
}

bool good_index(const Program& program, const Index& index) {
  return within(index.base, kMaxField) && within(index.coef, kMaxField) &&
         within(index.off, kMaxField) && index.div <= kMaxField && index.mod <= kMaxField &&
         index.first_term + index.terms <= program.terms_count;
}

// Whether the index is in its table and, where it is the same for all instances, `run` positions
// from it on are below `limit`.
bool good_ref(const Program& program, std::uint32_t ref, std::int64_t limit, std::int64_t run = 1) {
  if (ref >= program.indices_count) return false;
  const Index& index = program.indices[ref];
  if (index.coef != 0 || index.terms != 0) return true;
  const std::int64_t value = index.base + finish_index(index, index.off);
  return value >= 0 && value <= limit - run;
}

// Whether a message has one block a segment, whatever its length.
bool always_one_block(const Program& program) {
  return program.blocks_count == 1 && program.blocks[0].block_bytes == 0 &&
         program.residue_mod == 0;
}

bool good_place(const Program& program, bool present, bool wanted, const Place& place) {
  if (!wanted) return !present;
  const std::uint32_t buffer = raw(place.buffer);
  if (!present || buffer < 1 || buffer > _espalier_Buffer_MAX) return false;
  const std::uint32_t run = place_run(place);
  if (run > 1 && !always_one_block(program)) return false;
  if (buffer != espalier_Buffer_SCRATCH) {
    if (is_router(program)) return false;
  } else if (!good_ref(program, place.slot_ref, program.scratch_blocks, run)) {
    return false;
  }
  return place.block_ref < program.indices_count &&
         good_ref(program, place.segment_ref, program.segments, run);
}

bool same_runs(const Action& action) {
  const std::uint32_t run = place_run(action.kind == espalier_Kind_SEND ? action.a : action.into);
  return (!action.has_a || place_run(action.a) == run) &&
         (!action.has_b || place_run(action.b) == run);
}

// Whether the pace rises (of transfers: does not fall), as far as its coefficient and each of its
// tables tell; machine and verifier see the rest. 0 is none.
bool good_pace(const Program& program, const Action& action) {
  if (action.pace_ref == 0) return true;
  if (action.pace_ref >= program.indices_count) return false;
  const bool transfer = !action.has_into || !action.has_a;
  const Index& index = program.indices[action.pace_ref];
  if (index.terms == 0) {
    const std::int64_t div = index.div == 0 ? 1 : index.div;
    return index.coef >= (transfer ? 0 : div);
  }
  std::uint32_t rows = 1;
  for (std::uint32_t term = 0; term < index.terms; ++term) {
    const Term& its = program.terms[index.first_term + term];
    if (its.table != 0 && its.mod > rows) rows = its.mod;
  }
  std::int64_t before = index_value(program, action.pace_ref, 0);
  for (std::uint32_t i = 1; i < rows; ++i) {
    const std::int64_t pace = index_value(program, action.pace_ref, i);
    if (pace < before + (transfer ? 0 : 1)) return false;
    before = pace;
  }
  return true;
}

bool good_action(const Program& program, const Action& action) {
  const std::uint32_t kind = raw(action.kind);
  if (kind < 1 || kind > _espalier_Kind_MAX) return false;
  const bool send = kind == espalier_Kind_SEND;
  const bool receive = kind == espalier_Kind_RECEIVE;
  const bool combine = kind == espalier_Kind_COMBINE;
  if ((send || receive) && !good_ref(program, action.link_ref, links_count(program))) return false;
  if (!good_pace(program, action)) return false;
  if (!send && raw(action.into.buffer) == espalier_Buffer_INPUT) return false;
  return action.t0_ref < program.counts_count && action.instances_ref < program.counts_count &&
         good_place(program, action.has_into, !send, action.into) &&
         good_place(program, action.has_a, !receive, action.a) &&
         good_place(program, action.has_b, combine, action.b) && same_runs(action);
}

bool good_phases(const Program& program) {
  std::uint32_t actions = 0;
  for (std::uint32_t at = 0; at < program.phases_count; ++at) {
    const Phase& phase = program.phases[at];
    if (phase.period < 1 || phase.period > kMaxField || phase.steps_ref >= program.counts_count) {
      return false;
    }
    actions += phase.actions;
  }
  return actions == program.actions_count;
}

bool good_tables(const Program& program) {
  if (!good_table(program)) return false;
  for (std::uint32_t at = 0; at < program.counts_count; ++at) {
    if (!good_count(program.counts[at])) return false;
  }
  for (std::uint32_t at = 0; at < program.terms_count; ++at) {
    if (!good_term(program, program.terms[at])) return false;
  }
  for (std::uint32_t at = 0; at < program.indices_count; ++at) {
    if (!good_index(program, program.indices[at])) return false;
  }
  for (std::uint32_t at = 0; at < program.actions_count; ++at) {
    if (!good_action(program, program.actions[at])) return false;
  }
  return true;
}

}  // namespace

Status check_program(const Program& program) {
  if (program.format_version != kFormatVersion) return Status::kBadVersion;
  if ((program.required_features & ~kKnownFeatures) != 0) return Status::kUnknownFeature;
  const bool good = good_table_sizes(program) && good_header(program) && good_blocks(program) &&
                    good_peers(program) && good_tables(program) && good_phases(program);
  return good ? Status::kOk : Status::kMalformed;
}

}  // namespace espalier
