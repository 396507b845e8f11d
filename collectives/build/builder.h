#pragma once
// Writes a program's tables for the generators. Equal entries of a table are shared, which keeps
// descriptors small. Freestanding; uses only the program's memory.

#include <cstdint>
#include <initializer_list>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/collectives/build/parameters.h"

namespace espalier {

// Returns the default block table, the block length for each length of the whole message, with
// from_bytes ascending from 0; `count` is set to its length.
[[nodiscard]] const BlockRule* default_blocks(std::uint32_t& count);

// Counts add the steps of two phases, and the sum must stay below kMaxField.
inline constexpr std::uint32_t kMaxRanks = 1u << 29;
// The maximum number of ranks if one of them has a link to every other; also the maximum radix.
inline constexpr std::uint32_t kMaxLinearRanks = 1 + sizeof(Program::peers) / sizeof(std::uint32_t);

// ceil(log2(ranks)): the minimum number of steps in which one block reaches all ranks; ranks >= 1.
[[nodiscard]] std::uint32_t log2_ceil(std::uint32_t ranks);

// A generator's statements about its schedule, in addition to the parameters.
struct Outline {
  Collective collective;
  const char* algorithm;
  std::uint32_t segments = 1;  // ignored if counts are per rank: then the segments are the ranks
  // Not pipelined: N = 1 for every message, and the block table is not used.
  bool one_block = false;
  bool needs_commutative = false;
  std::uint32_t nodes = 0;  // nodes with a program, if routers have one too; 0: the ranks
  PortModel port_model = PortModel::kOnePortDuplex;
  ContentionGuarantee contention = ContentionGuarantee::kAsync;
  std::uint32_t send_ticks = 1, latency_ticks = 1;  // postal model: the window is raised to L
  std::uint32_t residue_mod = 0, residue = 0;       // N = residue (mod residue_mod); 0: any N
  bool rotated_scratch = false;  // requires one_block, and as many segments as ranks
};

// Some of the ranks, `stride` apart: member v is rank first + stride * v.
struct Group {
  std::uint32_t first = 0, stride = 1;

  [[nodiscard]] constexpr std::uint32_t rank(std::uint32_t member) const {
    return first + stride * member;
  }
};

// `slots` scratch slots from `first`; block i is in slot first + i mod slots.
struct Ring {
  std::uint32_t first = 0;
  std::uint32_t slots = 1;
};

// The term coef * (floor((mul * i + add) / div) mod `mod`); 0 for div or mod: none.
[[nodiscard]] inline Term floor_term(std::int32_t coef, std::int32_t add, std::uint32_t div,
                                     std::uint32_t mod = 0, std::int32_t mul = 1) {
  return {.coef = coef,
          .mul = mul,
          .add = add,
          .div = div,
          .mod = mod,
          .base = 0,
          .digits = 0,
          .table = 0};
}

class Builder {
 public:
  explicit Builder(Program& out) : program_(out) {}

  // Clears the program and fills its header. Clearing resets the lengths of the tables; the rows
  // beyond them are kept. On error the program is clear.
  //  * kBadArgument: no ranks; `me`, or the root of a rooted collective, is not a rank.
  //  * kBadArgument: a window of 0 or above kMaxFieldWindow.
  //  * kBadArgument: ticks other than 1 <= S <= L <= kMaxTicks, or a radix of 1.
  //  * kBadArgument: a block table that does not ascend from 0.
  //  * kUnsupported: rotated scratch, which this build's machine does not know.
  //  * kTooLarge: more than kMaxRanks ranks, a radix above kMaxLinearRanks, or more rules than a
  //    program holds.
  [[nodiscard]] Status begin(const CollectiveParameters& parameters, std::uint32_t me,
                             const Outline& outline);

  // Clears the program and returns `status`: for a generator that fails after begin().
  [[nodiscard]] Status refuse(Status status);

  // Allocates scratch for blocks that are received in one step and last used `lifetime` steps
  // later, in a phase of the given period: the fewest slots that the window allows. A receive may
  // write its slot once the step `window` earlier has retired (architecture, rule 7). Therefore
  // slots * period >= lifetime + window.
  [[nodiscard]] Ring ring(std::uint32_t lifetime, std::uint32_t period);

  // Allocates `slots` scratch slots that hold one block each, of any step. Returns the number of
  // the first slot.
  [[nodiscard]] std::uint32_t scratch(std::uint32_t slots);

  // Rows of the program's tables, shared if equal. They serve actions that do not repeat once per
  // block, and operands whose segment is not constant. If a coefficient is too large for a program,
  // finish() fails with kTooLarge.
  [[nodiscard]] std::uint8_t count(const Count& row);
  [[nodiscard]] std::uint8_t count(std::int32_t a, std::int32_t b);  // a + b*N
  [[nodiscard]] std::uint8_t index(const Index& row, std::initializer_list<Term> terms = {}) {
    return index(row, terms.begin(), static_cast<std::uint32_t>(terms.size()));
  }
  [[nodiscard]] std::uint8_t index(const Index& row, const Term* terms, std::uint32_t count);
  [[nodiscard]] std::uint8_t constant(std::uint32_t value) { return index(value, 0, 0); }

  // The operand: block i of the segments given by indices[segment_ref].
  [[nodiscard]] static Operand operand(Buffer buffer, std::uint8_t segment_ref);
  // Operands: block i of a segment.
  [[nodiscard]] Operand input(std::uint32_t segment) {
    return segment_operand(Buffer::kInput, segment);
  }
  [[nodiscard]] Operand output(std::uint32_t segment) {
    return segment_operand(Buffer::kOutput, segment);
  }
  [[nodiscard]] Operand slot(std::uint32_t segment, const Ring& ring);

  // Add an action with one instance per block: instance i in step t0 + period*i, on block i. The
  // caller may change its other fields (instances_ref, link_ref, after, ...) until it adds the next
  // action.
  Action& send(std::uint32_t t0, std::uint32_t to, const Operand& from, std::uint32_t after);
  Action& receive(std::uint32_t t0, std::uint32_t from, const Operand& into);
  Action& combine(std::uint32_t t0, const Operand& into, const Operand& left, const Operand& right);
  Action& copy(std::uint32_t t0, const Operand& into, const Operand& from);
  // The same over the links given by indices[link_ref].
  Action& send_by(std::uint32_t t0, std::uint8_t link_ref, const Operand& from,
                  std::uint32_t after);
  Action& receive_by(std::uint32_t t0, std::uint8_t link_ref, const Operand& into);
  // Sends block 0 to peers[first_link + i] in step t0 + i, i < sends. The period must be 1.
  void send_to_each(std::uint32_t t0, std::uint32_t first_link, std::uint32_t sends,
                    const Operand& from);

  // From now on peers are named by their number in the group. At first: the group of all ranks.
  void among(const Group& group) { group_ = group; }
  // Returns the position of this peer among the program's links; adds it if it is new.
  std::uint32_t link(std::uint32_t member);

  // Replaces link(): link i goes to the rank i + 1 after this one, i < links (at least 1).
  void ring_links(std::uint32_t links) { program_.ring_peers = links; }

  // Ends a phase, which consists of the actions added since the previous phase. It has a + b*N
  // steps, or `steps`.
  void phase(std::uint32_t period, std::int32_t a, std::int32_t b);
  // At most one phase of a program may have a quotient in its count.
  void phase(std::uint32_t period, const Count& steps);

  // Sets the claims: the steps of all phases, and the lower bound bound_a + bound_b*N. kTooLarge if
  // a table has too many rows (table_limits.h); the program is then clear, and the parameters'
  // `excess` names the table.
  [[nodiscard]] Status finish(std::int32_t bound_a, std::int32_t bound_b);
  [[nodiscard]] Status finish(const Count& bound);
  // Finishes with the one-port bound of broadcast, reduce and allreduce. The root sends or receives
  // every block at least once, and the last block takes ceil(log2 p) steps from (to) the root. A
  // reduce reversed in time is a broadcast, and an allreduce contains a reduce.
  // blocks = segments * N. With simplex ports it uses the bound by the number of messages, which is
  // greater for long messages.
  [[nodiscard]] Status finish_one_port();
  // Writes the whole program for a single rank: copies input to output if both exist.
  [[nodiscard]] Status finish_alone();

 private:
  [[nodiscard]] std::uint8_t index(std::uint32_t base, std::int32_t coef, std::uint32_t mod);
  [[nodiscard]] Operand segment_operand(Buffer buffer, std::uint32_t segment);
  [[nodiscard]] std::uint8_t terms(const Term* wanted, std::uint32_t count);
  Action& action(ActionKind kind, std::uint32_t t0);
  void check_tables();

  Program& program_;
  // The tables that had no room for a row (bits of Table), or another number that is too large.
  std::uint8_t overflow_ = 0;
  bool host_limits_ = false;  // as in CollectiveParameters
  TableExcess* excess_ = nullptr;
  std::uint32_t phase_begin_ = 0;
  Group group_;
  Count steps_{};
};

}  // namespace espalier
