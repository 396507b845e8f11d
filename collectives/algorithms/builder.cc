#include "collectives/algorithms/builder.h"

#include <cstddef>
#include <cstring>

#include "collectives/algorithms/blocks.h"

namespace espalier {
namespace {

template <typename Row, std::size_t Size>
constexpr std::uint32_t capacity(const Row (&)[Size]) {
  return Size;
}

// The next free row of a table, cleared; row 0 (and `overflow`) if there is none.
template <typename Row, typename Size, std::size_t Capacity>
Row& add_row(Row (&rows)[Capacity], Size& size, bool& overflow) {
  if (size == Capacity) {
    overflow = true;
    size = 0;
  }
  Row& row = rows[size++];
  row = Row{};
  return row;
}

template <std::size_t Size>
void set_text(char (&into)[Size], const char* text) {
  for (std::size_t at = 0; at + 1 < Size && text[at] != '\0'; ++at) into[at] = text[at];
}

// The same on all ranks: whatever decides what the programs are.
std::uint64_t digest_of(const Program& program) {
  std::uint64_t digest = digest_u64(kDigestSeed, program.topology_digest);
  digest = digest_bytes(digest, program.algorithm, sizeof program.algorithm);
  digest = digest_u64(digest, std::uint64_t{program.ranks} << 32 | program.root);
  digest = digest_u64(digest, std::uint64_t{program.window} << 8 | program.collective);
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    digest = digest_u64(digest, program.blocks[rule].from_bytes);
    digest = digest_u64(digest, program.blocks[rule].block_bytes);
  }
  return digest;
}

Status set_blocks(const Group& group, bool one_block, Program& program) {
  static constexpr BlockRule kOneBlock{0, 0};
  const BlockRule* blocks = group.blocks;
  std::uint32_t count = group.blocks_count;
  if (blocks == nullptr) blocks = default_blocks(count);
  if (one_block) {
    blocks = &kOneBlock;
    count = 1;
  }
  if (count > capacity(program.blocks)) return Status::kTooLarge;
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

Status Builder::begin(const Group& group, std::uint32_t me, const Outline& outline) {
  std::memset(&program_, 0, sizeof program_);
  // An allreduce has no root; its phases meet at rank 0.
  const std::uint32_t root = outline.collective == espalier_Collective_ALLREDUCE ? 0 : group.root;
  if (group.ranks == 0 || me >= group.ranks || root >= group.ranks) return Status::kBadArgument;
  if (group.window == 0 || group.window > kMaxFieldWindow) return Status::kBadArgument;
  if (group.ranks > kMaxRanks) return Status::kTooLarge;
  const Status status = set_blocks(group, outline.one_block, program_);
  if (status != Status::kOk) {
    std::memset(&program_, 0, sizeof program_);
    return status;
  }
  program_.format_version = kFormatVersion;
  program_.topology_digest = group.topology_digest;
  set_text(program_.producer, kProducer);
  set_text(program_.algorithm, outline.algorithm);
  program_.collective = outline.collective;
  program_.ranks = group.ranks;
  program_.node = me;
  program_.root = root;
  program_.needs_commutative = outline.needs_commutative;
  program_.window = group.window;
  program_.port_model = espalier_PortModel_ONE_PORT_DUPLEX;
  program_.grade = espalier_Grade_ASYNC;
  program_.segments = outline.segments;
  program_.schedule_digest = digest_of(program_);
  // Position 0 is not written in a descriptor: it goes to what every action names.
  (void)count(0, 1);
  (void)index(0, 1, 0);
  return Status::kOk;
}

Ring Builder::ring(std::uint32_t lifetime, std::uint32_t period) {
  const Ring ring{program_.scratch_blocks, (lifetime + program_.window + period - 1) / period};
  program_.scratch_blocks += ring.slots;
  return ring;
}

Place Builder::slot(std::uint32_t segment, const Ring& ring) {
  Place at = place(espalier_Buffer_SCRATCH, segment);
  at.slot_ref = ring.slots == 1 ? constant(ring.first) : index(ring.first, 1, ring.slots);
  return at;
}

void Builder::send(std::uint32_t t0, std::uint32_t to, const Place& from, std::uint32_t after) {
  const std::uint8_t link_ref = constant(link(to));
  Action& added = action(espalier_Kind_SEND, t0);
  added.link_ref = link_ref;
  added.after = static_cast<std::uint16_t>(after);
  added.has_a = true;
  added.a = from;
}

void Builder::receive(std::uint32_t t0, std::uint32_t from, const Place& into) {
  const std::uint8_t link_ref = constant(link(from));
  Action& added = action(espalier_Kind_RECEIVE, t0);
  added.link_ref = link_ref;
  added.has_into = true;
  added.into = into;
}

void Builder::combine(std::uint32_t t0, const Place& into, const Place& left, const Place& right) {
  Action& added = action(espalier_Kind_COMBINE, t0);
  added.has_into = added.has_a = added.has_b = true;
  added.into = into;
  added.a = left;
  added.b = right;
}

void Builder::copy(std::uint32_t t0, const Place& into, const Place& from) {
  Action& added = action(espalier_Kind_COPY, t0);
  added.has_into = added.has_a = true;
  added.into = into;
  added.a = from;
}

void Builder::send_to_each(std::uint32_t t0, std::uint32_t first_link, std::uint32_t sends,
                           const Place& from) {
  const std::uint8_t link_ref = sends == 1 ? constant(first_link) : index(first_link, 1, 0);
  const std::uint8_t instances_ref = count(static_cast<std::int32_t>(sends), 0);
  const std::uint8_t block_ref = constant(0);
  Action& added = action(espalier_Kind_SEND, t0);
  added.instances_ref = instances_ref;
  added.link_ref = link_ref;
  added.has_a = true;
  added.a = from;
  added.a.block_ref = block_ref;
}

std::uint32_t Builder::link(std::uint32_t peer) {
  for (std::uint32_t at = 0; at < program_.peers_count; ++at) {
    if (program_.peers[at] == peer) return at;
  }
  add_row(program_.peers, program_.peers_count, overflow_) = peer;
  return program_.peers_count - 1u;
}

void Builder::phase(std::uint32_t period, std::int32_t a, std::int32_t b) {
  const std::uint8_t steps_ref = count(a, b);
  Phase& added = add_row(program_.phases, program_.phases_count, overflow_);
  added.period = period;
  added.steps_ref = steps_ref;
  added.actions = static_cast<std::uint8_t>(program_.actions_count - phase_begin_);
  phase_begin_ = program_.actions_count;
  steps_a_ += a;
  steps_b_ += b;
}

Status Builder::finish(std::int32_t bound_a, std::int32_t bound_b) {
  program_.steps_ref = count(steps_a_, steps_b_);
  program_.bound_ref = count(bound_a, bound_b);
  if (!overflow_) return Status::kOk;
  std::memset(&program_, 0, sizeof program_);
  return Status::kTooLarge;
}

Status Builder::finish_one_port() {
  return finish(static_cast<std::int32_t>(log2_ceil(program_.ranks)) - 1,
                static_cast<std::int32_t>(program_.segments));
}

Status Builder::finish_alone() {
  const bool copies = program_.collective != espalier_Collective_BROADCAST;
  if (copies) {
    for (std::uint32_t segment = 0; segment < program_.segments; ++segment) {
      copy(segment, output(segment), input(segment));
    }
  }
  phase(program_.segments, 0, copies ? static_cast<std::int32_t>(program_.segments) : 0);
  return finish(0, 0);
}

std::uint8_t Builder::count(std::int32_t a, std::int32_t b) {
  for (std::uint32_t at = 0; at < program_.counts_count; ++at) {
    if (program_.counts[at].a == a && program_.counts[at].b == b) {
      return static_cast<std::uint8_t>(at);
    }
  }
  Count& added = add_row(program_.counts, program_.counts_count, overflow_);
  added.a = a;
  added.b = b;
  return static_cast<std::uint8_t>(program_.counts_count - 1);
}

std::uint8_t Builder::index(std::uint32_t base, std::int32_t coef, std::uint32_t mod) {
  const auto signed_base = static_cast<std::int32_t>(base);
  for (std::uint32_t at = 0; at < program_.indices_count; ++at) {
    const Index& old = program_.indices[at];
    if (old.base == signed_base && old.coef == coef && old.mod == mod) {
      return static_cast<std::uint8_t>(at);
    }
  }
  Index& added = add_row(program_.indices, program_.indices_count, overflow_);
  added.base = signed_base;
  added.coef = coef;
  added.mod = mod;
  return static_cast<std::uint8_t>(program_.indices_count - 1);
}

Place Builder::place(Buffer buffer, std::uint32_t segment) {
  Place at{};
  at.buffer = buffer;
  at.segment_ref = constant(segment);
  return at;  // block_ref 0: block i
}

Action& Builder::action(Kind kind, std::uint32_t t0) {
  const std::uint8_t t0_ref = count(static_cast<std::int32_t>(t0), 0);
  Action& added = add_row(program_.actions, program_.actions_count, overflow_);
  added.kind = kind;
  added.t0_ref = t0_ref;
  return added;  // instances_ref 0: N
}

}  // namespace espalier
