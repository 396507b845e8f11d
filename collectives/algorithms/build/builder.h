#pragma once
// Writes a program's tables for the generators: equal entries of a table are shared, so that
// descriptors stay small. Freestanding, no memory but the program.

#include <cstdint>
#include <initializer_list>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

inline constexpr char kProducer[] = "espalier 0.1.0";

// Counts add the steps of two phases and must stay below kMaxField.
inline constexpr std::uint32_t kMaxRanks = 1u << 29;

// ceil(log2(ranks)), the steps in which one block can reach all of them; ranks >= 1.
[[nodiscard]] std::uint32_t log2_ceil(std::uint32_t ranks);

// What a generator says of its schedule beside the group.
struct Outline {
  Collective collective;
  const char* algorithm;
  std::uint32_t segments = 1;  // where counts are per rank they are the ranks, whatever this says
  bool one_block = false;  // not pipelined: N = 1 for every message, the group's table is not used
  bool needs_commutative = false;
  std::uint32_t nodes = 0;  // with a program, where routers have one too; 0: the ranks
  PortModel port_model = espalier_PortModel_ONE_PORT_DUPLEX;
  Grade grade = espalier_Grade_ASYNC;
  std::uint32_t send_ticks = 1, latency_ticks = 1;  // postal model: the window is raised to L
};

// `slots` scratch slots from `first`; block i lies in slot first + i mod slots.
struct Ring {
  std::uint32_t first = 0;
  std::uint32_t slots = 1;
};

class Builder {
 public:
  explicit Builder(Program& out) : program_(out) {}

  // Clears the program (its tables' lengths; rows beyond them keep what they held) and fills its
  // header. kBadArgument: no ranks, me or (rooted collectives) root outside the group, window 0 or
  // above kMaxFieldWindow, ticks that are not 1 <= S <= L <= kMaxTicks, a block table that does not
  // ascend from 0; kTooLarge: more than kMaxRanks ranks or more rules than a program holds. The
  // program is clear on error.
  [[nodiscard]] Status begin(const Group& group, std::uint32_t me, const Outline& outline);

  // Scratch for blocks that are received in one step and last used `lifetime` steps later, in a
  // phase of that period: the fewest slots that the window allows. A receive may write its slot as
  // soon as the step `window` before it has retired (architecture, rule 7), so
  // slots * period >= lifetime + window.
  [[nodiscard]] Ring ring(std::uint32_t lifetime, std::uint32_t period);

  // `slots` scratch slots that hold one block each, of any step; the first one's number.
  [[nodiscard]] std::uint32_t scratch(std::uint32_t slots);

  // Rows of the program's tables, shared where equal: for actions that repeat otherwise than once a
  // block, and places that are no constant's. What has a coefficient too large for a program makes
  // finish() fail with kTooLarge.
  [[nodiscard]] std::uint8_t count(const Count& row);
  [[nodiscard]] std::uint8_t count(std::int32_t a, std::int32_t b);  // a + b*N
  [[nodiscard]] std::uint8_t index(const Index& row, std::initializer_list<Term> terms = {}) {
    return index(row, terms.begin(), static_cast<std::uint32_t>(terms.size()));
  }
  [[nodiscard]] std::uint8_t index(const Index& row, const Term* terms, std::uint32_t count);
  [[nodiscard]] std::uint8_t constant(std::uint32_t value) { return index(value, 0, 0); }

  // Block i of the segments that indices[segment_ref] names.
  [[nodiscard]] static Place place(Buffer buffer, std::uint8_t segment_ref);
  // Places of block i of a segment.
  [[nodiscard]] Place input(std::uint32_t segment) {
    return segment_place(espalier_Buffer_INPUT, segment);
  }
  [[nodiscard]] Place output(std::uint32_t segment) {
    return segment_place(espalier_Buffer_OUTPUT, segment);
  }
  [[nodiscard]] Place slot(std::uint32_t segment, const Ring& ring);

  // One instance a block: instance i in step t0 + period*i, on block i. The caller may change what
  // else the action says (instances_ref, link_ref, after, ...) until the next one is added.
  Action& send(std::uint32_t t0, std::uint32_t to, const Place& from, std::uint32_t after);
  Action& receive(std::uint32_t t0, std::uint32_t from, const Place& into);
  Action& combine(std::uint32_t t0, const Place& into, const Place& left, const Place& right);
  Action& copy(std::uint32_t t0, const Place& into, const Place& from);
  // The same over the links that indices[link_ref] names.
  Action& send_by(std::uint32_t t0, std::uint8_t link_ref, const Place& from, std::uint32_t after);
  Action& receive_by(std::uint32_t t0, std::uint8_t link_ref, const Place& into);
  // Block 0 to peers[first_link + i] in step t0 + i, i < sends (the period must be 1).
  void send_to_each(std::uint32_t t0, std::uint32_t first_link, std::uint32_t sends,
                    const Place& from);

  // The position of `peer` in the program's links; adds it if it is new.
  std::uint32_t link(std::uint32_t peer);

  // Instead of link(): link i is to the rank i + 1 after this one, i < links (at least 1).
  void ring_links(std::uint32_t links) { program_.ring_peers = links; }

  // Ends a phase of the actions added since the last one; it has a + b*N (or that count of) steps.
  void phase(std::uint32_t period, std::int32_t a, std::int32_t b);
  // At most one phase of a program may have a quotient in its count.
  void phase(std::uint32_t period, const Count& steps);

  // States the claims: steps of all phases, and the lower bound bound_a + bound_b*N. kTooLarge if a
  // table of proto/schedule.options was too small; the program is clear then.
  [[nodiscard]] Status finish(std::int32_t bound_a, std::int32_t bound_b);
  [[nodiscard]] Status finish(const Count& bound);
  // The bound of broadcast, reduce and allreduce alike, one port: the root sends or receives every
  // block at least once, and the last one needs ceil(log2 p) steps from (to) it. A reduce reversed
  // in time is a broadcast; an allreduce holds a reduce. blocks = segments * N. With simplex ports
  // that by messages, the greater one for long messages.
  [[nodiscard]] Status finish_one_port();
  // The whole program where there is one rank: copies input to output, where there are both.
  [[nodiscard]] Status finish_alone();

 private:
  [[nodiscard]] std::uint8_t index(std::uint32_t base, std::int32_t coef, std::uint32_t mod);
  [[nodiscard]] Place segment_place(Buffer buffer, std::uint32_t segment);
  [[nodiscard]] std::uint8_t terms(const Term* wanted, std::uint32_t count);
  Action& action(Kind kind, std::uint32_t t0);

  Program& program_;
  bool overflow_ = false;
  std::uint32_t phase_begin_ = 0;
  Count steps_{};
};

}  // namespace espalier
