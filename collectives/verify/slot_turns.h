#pragma once
// How the slots of a program's places move on from round to round. Internal to collectives/verify.

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier::verify {

// Finds the permutation that takes each slot in use to the slot of the same place one round later,
// if there is one for all places of the program. Then which places share a slot depends only on how
// many rounds apart they are used, not on the round.
class SlotTurns {
 public:
  explicit SlotTurns(const Program& program) : program_(program) {}

  // The operands added next are of `action`, which has `every` instances per round.
  void begin_action(const Action& action, std::int64_t every);
  // Adds the slot of an operand (0: into, 1: a, 2: b; in SCRATCH) at instance i and in all later
  // rounds; returns the slot at i. `outside` becomes the first round in which the slot is not one
  // of the program's, if there is one.
  std::int32_t add(std::size_t operand, std::int64_t i, std::int64_t& outside);

  // 1: next() holds. Above 1: no such permutation, but all slots are the same again after so many
  // rounds. 0: they do not repeat within kMaxStride rounds.
  [[nodiscard]] std::int64_t rounds() const { return never_ ? 0 : unlike_ ? rounds_ : 1; }
  // By slot; -1: not used. Empty where every slot stays.
  [[nodiscard]] std::vector<std::int32_t> next() const;

 private:
  // An operand's slots: the next is base + (slot - base + advance) mod `mod`.
  struct Ring {
    std::int64_t base = 0, mod = 0, advance = 0;
    std::int64_t rounds = 1;  // until the slot is the same again; 0: never, or too late
    std::int32_t id = 0;      // of all operands with the same numbers; 0: only the formula is known
  };
  [[nodiscard]] Ring ring_of(const Index& index, std::int64_t every);
  void put(std::int32_t slot, std::int32_t next, const Ring& ring);

  const Program& program_;
  const Action* action_ = nullptr;
  std::int64_t every_ = 1;
  std::array<Ring, 3> rings_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int32_t> ids_;
  std::int32_t last_id_ = 0;
  std::int64_t rounds_ = 1;  // least common multiple of the operands'; 0: above kMaxStride
  bool never_ = false;       // some operand's slots do not repeat
  bool unlike_ = false;      // some slot moves on to two others
  std::vector<std::int32_t> next_, walked_by_;  // by slot; the ring that set next_
};

}  // namespace espalier::verify
