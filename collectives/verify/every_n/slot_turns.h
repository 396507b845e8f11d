#pragma once
// How the scratch slots of a program's operands change from round to round. Internal to
// collectives/verify.

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier::verify {

// Finds the permutation that takes the slot of every operand to the slot of the same operand one
// round later, if one permutation does so for all operands of the program. Then whether two
// accesses share a slot depends only on the number of rounds between them, not on the round.
class SlotTurns {
 public:
  explicit SlotTurns(const Program& program) : program_(program) {}

  // Begins `action`, which has `every` instances per round. The operands added next belong to it.
  void begin_action(const Action& action, std::int64_t every);
  // Adds the slot of an operand (0: into, 1: a, 2: b; in SCRATCH) at instance i and in all later
  // rounds. Returns the slot at i. Sets `outside` to the first round in which the slot lies outside
  // the claimed scratch, if there is one.
  std::int32_t add(std::size_t operand, std::int64_t i, std::int64_t& outside);

  // 1: next() is the permutation. Above 1: there is none, but all slots repeat after this number of
  // rounds. 0: they do not repeat within kMaxStride rounds.
  [[nodiscard]] std::int64_t rounds() const { return never_ ? 0 : unlike_ ? rounds_ : 1; }
  // By slot; -1: not used. Empty if every operand keeps its slot.
  [[nodiscard]] std::vector<std::int32_t> next() const;

 private:
  // An operand's slots: the next is base + (slot - base + advance) mod `mod`.
  struct Ring {
    std::int64_t base = 0, mod = 0, advance = 0;
    std::int64_t rounds = 1;  // until the slot repeats; 0: never, or too late
    std::int32_t id = 0;      // shared by operands with equal numbers; 0: only the formula is known
  };
  [[nodiscard]] Ring ring_of(const Index& index, std::int64_t every);
  void put(std::int32_t slot, std::int32_t next, const Ring& ring);

  const Program& program_;
  const Action* action_ = nullptr;
  std::int64_t every_ = 1;
  std::array<Ring, 3> rings_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int32_t> ids_;
  std::int32_t last_id_ = 0;
  std::int64_t rounds_ = 1;  // least common multiple over all operands; 0: above kMaxStride
  bool never_ = false;       // some operand's slots do not repeat
  bool unlike_ = false;      // some slot moves to two different slots
  std::vector<std::int32_t> next_, walked_by_;  // by slot; the ring that set next_
};

}  // namespace espalier::verify
