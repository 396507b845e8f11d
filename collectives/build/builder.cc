#include "collectives/build/builder.h"

#include <cstddef>
#include <cstring>

#include "base/digest.h"
#include "base/version.h"
#include "collectives/schedule/table_limits.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

// Bits of Builder::overflow_.
enum Table : std::uint8_t {
  kCounts = 1,
  kTerms = 2,
  kIndices = 4,
  kActions = 8,
  kPeers = 16,
  kPhases = 32,
  kNumber = 64
};

// Returns the next free row of a table, cleared. If the table is full, returns row 0 and sets the
// table's bit of `overflow`.
template <typename Row, typename Size, std::size_t Capacity>
Row& add_row(Row (&rows)[Capacity], Size& size, Table table, std::uint8_t& overflow) {
  if (size == Capacity) {
    overflow |= table;
    size = 0;
  }
  Row& row = rows[size++];
  row = Row{};
  return row;
}

template <std::size_t Size>
void set_text(char (&into)[Size], const char* text) {
  for (std::size_t i = 0; i + 1 < Size && text[i] != '\0'; ++i) into[i] = text[i];
}

// The finalizer of splitmix64 (Steele, Lea, Flood), once per word. A planning node computes this
// for every program, and FNV's multiplication per byte took a third of the time.
std::uint64_t mix(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0xbf58476d1ce4e5b9ull;
  digest = (digest ^ digest >> 27) * 0x94d049bb133111ebull;
  return digest ^ digest >> 31;
}

// Equal on all ranks: covers everything that determines the programs.
std::uint64_t digest_of(const CollectiveParameters& parameters, const Program& program) {
  const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
  std::uint64_t digest = mix(kDigestSeed, program.topology_digest);
  std::uint8_t name[sizeof program.algorithm];
  std::memcpy(name, program.algorithm, sizeof name);
  for (std::size_t i = 0; i + 8 <= sizeof name; i += 8) digest = mix(digest, load_u64(name + i));
  digest = mix(digest, pair(program.ranks, program.root));
  digest = mix(digest, pair(program.window, program.collective));
  digest = mix(digest, pair(parameters.run_length, program.nodes));
  digest = mix(digest, pair(program.send_ticks, program.latency_ticks));
  // Only if given: schedules without a radix or ratio keep the digests that they have always had.
  if (parameters.radix != 0) digest = mix(digest, parameters.radix);
  if (parameters.ratio_denominator != 0) {
    digest = mix(digest, pair(parameters.ratio_numerator, parameters.ratio_denominator));
  }
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    digest = mix(digest, program.blocks[rule].from_bytes);
    digest = mix(digest, program.blocks[rule].block_bytes);
  }
  return digest;
}

// Clears everything except the tables' rows, which are cleared when they are added. Most programs
// have few rows, and clearing all 7 KiB would be a fifth of the time that a program takes.
void clear(Program& program) {
  const auto begin = reinterpret_cast<unsigned char*>(&program);
  const auto between = [&](std::size_t from, std::size_t to) {
    std::memset(begin + from, 0, to - from);
  };
  between(0, offsetof(Program, blocks));
  program.counts_count = 0;
  program.indices_count = 0;
  program.actions_count = 0;
  between(offsetof(Program, required_features), offsetof(Program, peers));
  program.terms_count = 0;
  program.phases_count = 0;
  program.nodes = 0;
  program.ring_peers = 0;
  program.table.bytes = nullptr;
  program.table.size = 0;
}

bool good_ticks(const Outline& outline) {
  return outline.send_ticks >= 1 && outline.send_ticks <= outline.latency_ticks &&
         outline.latency_ticks <= kMaxTicks;
}

constexpr bool within(std::int32_t value, std::int32_t limit) {
  return value >= -limit && value <= limit;
}

bool same(const Term& a, const Term& b) {
  return a.coef == b.coef && a.mul == b.mul && a.add == b.add && a.div == b.div && a.mod == b.mod &&
         a.base == b.base && a.digits == b.digits && a.table == b.table;
}

Status set_blocks(const CollectiveParameters& parameters, bool one_block, Program& program) {
  static constexpr BlockRule kOneBlock{0, 0};
  const BlockRule* blocks = parameters.blocks;
  std::uint32_t count = parameters.blocks_count;
  if (blocks == nullptr) blocks = default_blocks(count);
  if (one_block) {
    blocks = &kOneBlock;
    count = 1;
  }
  if (count > rows_of(program.blocks)) return Status::kTooLarge;
  if (count == 0 || blocks[0].from_bytes != 0) return Status::kBadArgument;
  for (std::uint32_t rule = 0; rule < count; ++rule) {
    if (rule > 0 && blocks[rule].from_bytes <= blocks[rule - 1].from_bytes) {
      return Status::kBadArgument;
    }
    program.blocks[rule] = blocks[rule];
  }
  program.blocks_count = static_cast<pb_size_t>(count);
  return Status::kOk;
}

}  // namespace

std::uint32_t log2_ceil(std::uint32_t ranks) {
  std::uint32_t log = 0;
  while ((std::uint64_t{1} << log) < ranks) ++log;
  return log;
}

Status Builder::begin(const CollectiveParameters& parameters, std::uint32_t me,
                      const Outline& outline) {
  espalier::clear(program_);
  if constexpr (__STDC_HOSTED__ != 0) {
    host_limits_ = parameters.host_limits;
    excess_ = parameters.excess;
  }
  const std::uint32_t root = has_root(outline.collective) ? parameters.root : 0;
  const std::uint32_t nodes = outline.nodes == 0 ? parameters.ranks : outline.nodes;
  if (parameters.ranks == 0 || me >= nodes || root >= parameters.ranks) return Status::kBadArgument;
  if (parameters.window == 0 || parameters.window > kMaxFieldWindow) return Status::kBadArgument;
  if (!good_ticks(outline) || parameters.radix == 1) return Status::kBadArgument;
  if (parameters.ranks > kMaxRanks || nodes > kMaxRanks || parameters.radix > kMaxLinearRanks) {
    return Status::kTooLarge;
  }
  if (outline.rotated_scratch && (kKnownFeatures & kRotatedScratch) == 0) {
    return Status::kUnsupported;
  }
  const Status status = set_blocks(parameters, outline.one_block, program_);
  if (status != Status::kOk) return refuse(status);
  program_.format_version = kFormatVersion;
  program_.required_features = outline.rotated_scratch ? kRotatedScratch : 0;
  program_.topology_digest = parameters.topology_digest;
  set_text(program_.producer, kProducer);
  set_text(program_.algorithm, outline.algorithm);
  program_.collective = outline.collective;
  program_.ranks = parameters.ranks;
  program_.node = me;
  program_.nodes = outline.nodes;
  program_.root = root;
  program_.needs_commutative = outline.needs_commutative;
  program_.window =
      parameters.window > outline.latency_ticks ? parameters.window : outline.latency_ticks;
  program_.port_model = outline.port_model;
  program_.contention = outline.contention;
  program_.segments = counts_per_rank(outline.collective) ? parameters.ranks : outline.segments;
  program_.residue_mod = outline.residue_mod;
  program_.residue = outline.residue;
  if (outline.latency_ticks > 1) {
    program_.send_ticks = outline.send_ticks;
    program_.latency_ticks = outline.latency_ticks;
  }
  program_.schedule_digest = digest_of(parameters, program_);
  // Position 0 is not written to a descriptor, so it holds the rows that every action refers to.
  (void)count(0, 1);
  (void)index(0, 1, 0);
  return Status::kOk;
}

Status Builder::refuse(Status status) {
  espalier::clear(program_);
  return status;
}

Ring Builder::ring(std::uint32_t lifetime, std::uint32_t period) {
  ESPALIER_ASSERT(period >= 1);
  const Ring ring{program_.scratch_blocks, (lifetime + program_.window + period - 1) / period};
  program_.scratch_blocks += ring.slots;
  ESPALIER_ASSERT(std::uint64_t{ring.slots} * period >= std::uint64_t{lifetime} + program_.window);
  return ring;
}

std::uint32_t Builder::scratch(std::uint32_t slots) {
  const std::uint32_t first = program_.scratch_blocks;
  program_.scratch_blocks += slots;
  return first;
}

Operand Builder::slot(std::uint32_t segment, const Ring& ring) {
  ESPALIER_ASSERT(ring.slots >= 1);
  Operand operand = segment_operand(Buffer::kScratch, segment);
  operand.slot_ref = ring.slots == 1 ? constant(ring.first) : index(ring.first, 1, ring.slots);
  return operand;
}

Action& Builder::send(std::uint32_t t0, std::uint32_t to, const Operand& from,
                      std::uint32_t after) {
  return send_by(t0, constant(link(to)), from, after);
}

Action& Builder::receive(std::uint32_t t0, std::uint32_t from, const Operand& into) {
  return receive_by(t0, constant(link(from)), into);
}

Action& Builder::send_by(std::uint32_t t0, std::uint8_t link_ref, const Operand& from,
                         std::uint32_t after) {
  Action& added = action(ActionKind::kSend, t0);
  ESPALIER_ASSERT(after <= UINT16_MAX && from.buffer != Buffer::kNone);
  added.link_ref = link_ref;
  added.after = static_cast<std::uint16_t>(after);
  added.has_a = true;
  added.a = from;
  return added;
}

Action& Builder::receive_by(std::uint32_t t0, std::uint8_t link_ref, const Operand& into) {
  ESPALIER_ASSERT(into.buffer == Buffer::kOutput || into.buffer == Buffer::kScratch);
  Action& added = action(ActionKind::kReceive, t0);
  added.link_ref = link_ref;
  added.has_into = true;
  added.into = into;
  return added;
}

Action& Builder::combine(std::uint32_t t0, const Operand& into, const Operand& left,
                         const Operand& right) {
  ESPALIER_ASSERT(into.buffer == Buffer::kOutput || into.buffer == Buffer::kScratch);
  ESPALIER_ASSERT(left.buffer != Buffer::kNone && right.buffer != Buffer::kNone);
  Action& added = action(ActionKind::kCombine, t0);
  added.has_into = added.has_a = added.has_b = true;
  added.into = into;
  added.a = left;
  added.b = right;
  return added;
}

Action& Builder::copy(std::uint32_t t0, const Operand& into, const Operand& from) {
  ESPALIER_ASSERT(into.buffer == Buffer::kOutput || into.buffer == Buffer::kScratch);
  ESPALIER_ASSERT(from.buffer != Buffer::kNone);
  Action& added = action(ActionKind::kCopy, t0);
  added.has_into = added.has_a = true;
  added.into = into;
  added.a = from;
  return added;
}

void Builder::send_to_each(std::uint32_t t0, std::uint32_t first_link, std::uint32_t sends,
                           const Operand& from) {
  ESPALIER_ASSERT(sends >= 1);
  const std::uint8_t link_ref = sends == 1 ? constant(first_link) : index(first_link, 1, 0);
  const std::uint8_t instances_ref = count(static_cast<std::int32_t>(sends), 0);
  const std::uint8_t block_ref = constant(0);
  Action& added = send_by(t0, link_ref, from, 0);
  added.instances_ref = instances_ref;
  added.a.block_ref = block_ref;
}

std::uint32_t Builder::link(std::uint32_t member) {
  const std::uint32_t peer = group_.rank(member);
  ESPALIER_ASSERT(program_.ring_peers == 0 && peer != program_.node);
  ESPALIER_ASSERT(peer < (program_.nodes == 0 ? program_.ranks : program_.nodes));
  for (std::uint32_t i = 0; i < program_.peers_count; ++i) {
    if (program_.peers[i] == peer) return i;
  }
  add_row(program_.peers, program_.peers_count, kPeers, overflow_) = peer;
  return program_.peers_count - 1u;
}

void Builder::phase(std::uint32_t period, std::int32_t a, std::int32_t b) {
  phase(period, {.a = a, .b = b, .c = 0, .d = 0, .e = 0});
}

void Builder::phase(std::uint32_t period, const Count& steps) {
  ESPALIER_ASSERT(period >= 1);
  ESPALIER_ASSERT(overflow_ != 0 || phase_begin_ <= program_.actions_count);
  const std::uint8_t steps_ref = count(steps);
  Phase& added = add_row(program_.phases, program_.phases_count, kPhases, overflow_);
  added.period = period;
  added.steps_ref = steps_ref;
  added.actions = static_cast<std::uint8_t>(program_.actions_count - phase_begin_);
  phase_begin_ = program_.actions_count;
  if (steps.c != 0 && steps_.c != 0) overflow_ |= kNumber;
  steps_.a += steps.a;
  steps_.b += steps.b;
  if (steps.c != 0) {
    steps_.c = steps.c;
    steps_.d = steps.d;
    steps_.e = steps.e;
  }
}

namespace {

// p - 1 ranks receive every block, and at most floor(p/2) transfers run in a step. For odd p that
// is 2 steps per block. For even p it is 2 - 2/p steps per block. With B = 2 * segments * N this
// gives B - floor(B / p) steps. A count can express at least B - floor(N / e) with
// e = floor(p / (2 * segments)). Both are equal if 2 * segments divides p.
Count simplex_bound(std::uint32_t ranks, std::uint32_t segments) {
  ESPALIER_ASSERT(ranks > 2 && segments >= 1);
  Count bound{};
  bound.b = static_cast<std::int32_t>(2 * segments);
  const std::uint32_t every = ranks / (2 * segments);
  if (ranks % 2 != 0) return bound;
  if (every < 2) {
    bound.b = static_cast<std::int32_t>(segments * (ranks - 1) / (ranks / 2));
    return bound;
  }
  bound.c = -1;
  bound.d = 1 - static_cast<std::int32_t>(every);
  bound.e = every;
  return bound;
}

}  // namespace

#if __STDC_HOSTED__
// On hosts: compares the tables with the limits for which the program is made.
void Builder::check_tables() {
  const struct {
    Table table;
    const char* name;
    std::uint32_t rows, room, board;
  } tables[] = {
      {kTerms, "terms", program_.terms_count, rows_of(program_.terms), kBoardTerms},
      {kIndices, "indices", program_.indices_count, rows_of(program_.indices), kBoardIndices},
      {kCounts, "counts", program_.counts_count, rows_of(program_.counts),
       rows_of(program_.counts)},
      {kActions, "actions", program_.actions_count, rows_of(program_.actions),
       rows_of(program_.actions)},
      {kPeers, "links", program_.peers_count, rows_of(program_.peers), rows_of(program_.peers)},
      {kPhases, "phases", program_.phases_count, rows_of(program_.phases),
       rows_of(program_.phases)},
  };
  for (const auto& one : tables) {
    const std::uint32_t limit = host_limits_ || one.room < one.board ? one.room : one.board;
    const bool is_full = (overflow_ & one.table) != 0;
    if (one.rows <= limit && !is_full) continue;
    overflow_ |= one.table;
    if (excess_ == nullptr) continue;
    *excess_ = {one.name, is_full ? one.room + 1 : one.rows, limit, host_limits_};
    break;
  }
}
#endif

Status Builder::finish(std::int32_t bound_a, std::int32_t bound_b) {
  return finish({.a = bound_a, .b = bound_b, .c = 0, .d = 0, .e = 0});
}

Status Builder::finish(const Count& bound) {
  // Each action is in a phase.
  ESPALIER_ASSERT(overflow_ != 0 || phase_begin_ == program_.actions_count);
  program_.steps_ref = count(steps_);
  program_.bound_ref = count(bound);
  if (program_.scratch_blocks > kMaxScratchBlocks) overflow_ |= kNumber;
#if __STDC_HOSTED__
  check_tables();
#endif
  if (overflow_ == 0) return Status::kOk;
  return refuse(Status::kTooLarge);
}

Status Builder::finish_one_port() {
  if (program_.port_model == PortModel::kSimplex && program_.ranks > 2) {
    return finish(simplex_bound(program_.ranks, program_.segments));
  }
  return finish(static_cast<std::int32_t>(log2_ceil(program_.ranks)) - 1,
                static_cast<std::int32_t>(program_.segments));
}

Status Builder::finish_alone() {
  const bool copies = buffer_extent(program_, Buffer::kInput) != Extent::kNothing &&
                      buffer_extent(program_, Buffer::kOutput) != Extent::kNothing;
  if (copies) {
    for (std::uint32_t segment = 0; segment < program_.segments; ++segment) {
      copy(segment, output(segment), input(segment));
    }
  }
  phase(program_.segments, 0, copies ? static_cast<std::int32_t>(program_.segments) : 0);
  return finish(0, 0);
}

std::uint8_t Builder::count(std::int32_t a, std::int32_t b) {
  return count({.a = a, .b = b, .c = 0, .d = 0, .e = 0});
}

std::uint8_t Builder::count(const Count& row) {
  for (std::uint32_t i = 0; i < program_.counts_count; ++i) {
    const Count& old = program_.counts[i];
    if (old.a == row.a && old.b == row.b && old.c == row.c && old.d == row.d && old.e == row.e) {
      return static_cast<std::uint8_t>(i);
    }
  }
  if (!within(row.a, kMaxField) || !within(row.b, kMaxSlope) || !within(row.c, kMaxSlope)) {
    overflow_ |= kNumber;
  }
  add_row(program_.counts, program_.counts_count, kCounts, overflow_) = row;
  ESPALIER_ASSERT(program_.counts_count <= 256);
  return static_cast<std::uint8_t>(program_.counts_count - 1);
}

// The most frequent rows have a separate loop: comparing whole rows took a fifth of a plan's time.
std::uint8_t Builder::index(std::uint32_t base, std::int32_t coef, std::uint32_t mod) {
  const auto signed_base = static_cast<std::int32_t>(base);
  for (std::uint32_t i = 0; i < program_.indices_count; ++i) {
    const Index& old = program_.indices[i];
    if (old.base == signed_base && old.coef == coef && old.mod == mod && old.off == 0 &&
        old.div == 0 && old.terms == 0) {
      return static_cast<std::uint8_t>(i);
    }
  }
  Index& added = add_row(program_.indices, program_.indices_count, kIndices, overflow_);
  added.base = signed_base;
  added.coef = coef;
  added.mod = mod;
  return static_cast<std::uint8_t>(program_.indices_count - 1);
}

std::uint8_t Builder::index(const Index& fields, const Term* wanted, std::uint32_t count) {
  ESPALIER_ASSERT(count == 0 || wanted != nullptr);
  Index row = fields;
  row.terms = static_cast<std::uint8_t>(count);
  row.first_term = count == 0 ? 0 : terms(wanted, count);
  for (std::uint32_t i = 0; i < program_.indices_count; ++i) {
    const Index& old = program_.indices[i];
    if (old.base == row.base && old.coef == row.coef && old.mod == row.mod && old.off == row.off &&
        old.div == row.div && old.first_term == row.first_term && old.terms == row.terms) {
      return static_cast<std::uint8_t>(i);
    }
  }
  add_row(program_.indices, program_.indices_count, kIndices, overflow_) = row;
  return static_cast<std::uint8_t>(program_.indices_count - 1);
}

// Returns the first of consecutive rows equal to these terms. Terms at the end of the table may
// serve as their beginning.
std::uint8_t Builder::terms(const Term* wanted, std::uint32_t count) {
  std::uint32_t first = 0, equal = 0;
  for (; first < program_.terms_count; ++first) {
    const std::uint32_t there = program_.terms_count - first;
    equal = 0;
    while (equal < count && equal < there && same(program_.terms[first + equal], wanted[equal])) {
      ++equal;
    }
    if (equal == count || equal == there) break;
    equal = 0;
  }
  for (; equal < count; ++equal) {
    add_row(program_.terms, program_.terms_count, kTerms, overflow_) = wanted[equal];
  }
  ESPALIER_ASSERT(overflow_ != 0 || first + count <= program_.terms_count);
  return static_cast<std::uint8_t>(first);
}

Operand Builder::operand(Buffer buffer, std::uint8_t segment_ref) {
  Operand operand{};
  operand.buffer = buffer;
  operand.segment_ref = segment_ref;
  return operand;  // block_ref 0: block i
}

Operand Builder::segment_operand(Buffer buffer, std::uint32_t segment) {
  return operand(buffer, constant(segment));
}

Action& Builder::action(ActionKind kind, std::uint32_t t0) {
  const std::uint8_t t0_ref = count(static_cast<std::int32_t>(t0), 0);
  Action& added = add_row(program_.actions, program_.actions_count, kActions, overflow_);
  added.kind = kind;
  added.t0_ref = t0_ref;
  return added;  // instances_ref 0: N
}

}  // namespace espalier
