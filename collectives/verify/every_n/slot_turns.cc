#include "collectives/verify/every_n/slot_turns.h"

#include <numeric>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/properties/repeat.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {

SlotTurns::Ring SlotTurns::ring_of(const Index& index, std::int64_t every) {
  Ring ring;
  Index whole = index;
  whole.mod = 0;
  const Repeat inner = repeat_of(program_, whole);
  if (inner.every > 0 && every % inner.every == 0 && (index.mod > 0 || inner.add == 0)) {
    ring.base = index.base;
    ring.mod = index.mod == 0 ? 1 : index.mod;
    ring.advance = floor_mod(inner.add % ring.mod * (every / inner.every % ring.mod), ring.mod);
    ring.rounds = ring.mod / std::gcd(ring.mod, ring.advance);
    if (ring.advance == 0) ring = {0, 0, 0, 1, 0};  // every slot stays
    auto& id = ids_.try_emplace({ring.base, ring.mod, ring.advance}, 0).first->second;
    if (id == 0) id = ++last_id_;
    ring.id = id;
    return ring;
  }
  const Repeat repeat = repeat_of(program_, index);
  const std::int64_t together = repeat.add == 0 ? common_every(repeat.every, every) : 0;
  ring.rounds = together / every;
  if (ring.rounds > kMaxStride) ring.rounds = 0;
  return ring;
}

void SlotTurns::begin_action(const Action& action, std::int64_t every) {
  action_ = &action;
  every_ = every;
  const std::array<const Operand*, 3> operands{&action.into, &action.a, &action.b};
  const std::array<bool, 3> present{action.has_into, action.has_a, action.has_b};
  for (std::size_t number = 0; number < operands.size(); ++number) {
    rings_[number] = {};
    const Operand& operand = *operands[number];
    if (!present[number] || operand.buffer != Buffer::kScratch) continue;
    rings_[number] = ring_of(program_.indices[operand.slot_ref], every);
    never_ = never_ || rings_[number].rounds == 0;
    rounds_ = std::lcm(rounds_, rings_[number].rounds);  // once 0, it stays 0
    if (rounds_ > kMaxStride) rounds_ = 0;
  }
  if (next_.size() != program_.scratch_blocks) {
    next_.assign(program_.scratch_blocks, -1);
    walked_by_.assign(program_.scratch_blocks, 0);
  }
}

void SlotTurns::put(std::int32_t slot, std::int32_t next, const Ring& ring) {
  std::int32_t& known = next_[static_cast<std::size_t>(slot)];
  if (known >= 0 && known != next) unlike_ = true;
  known = next;
  walked_by_[static_cast<std::size_t>(slot)] = ring.id;
}

std::int32_t SlotTurns::add(std::size_t operand, std::int64_t i, std::int64_t& outside) {
  const Ring& ring = rings_[operand];
  const std::array<const Operand*, 3> operands{&action_->into, &action_->a, &action_->b};
  const std::uint32_t ref = operands[operand]->slot_ref;
  const std::int64_t slots = program_.scratch_blocks;
  const std::int64_t first = index_value(program_, ref, i);
  std::int64_t slot = first;
  if (slot < 0 || slot >= slots) outside = 0;
  for (std::int64_t round = 0; round < ring.rounds && outside < 0; ++round) {
    if (ring.id > 0 && walked_by_[static_cast<std::size_t>(slot)] == ring.id) break;
    std::int64_t there = slot;
    if (ring.id == 0) {
      there = index_value(program_, ref, i + (round + 1) % ring.rounds * every_);
    } else if (ring.mod > 0) {
      there = ring.base + (slot - ring.base + ring.advance) % ring.mod;
    }
    if (there < 0 || there >= slots) {
      outside = round + 1;
    } else {
      put(static_cast<std::int32_t>(slot), static_cast<std::int32_t>(there), ring);
      slot = there;
    }
  }
  return static_cast<std::int32_t>(first);
}

std::vector<std::int32_t> SlotTurns::next() const {
  for (std::size_t slot = 0; slot < next_.size(); ++slot) {
    if (next_[slot] >= 0 && next_[slot] != static_cast<std::int32_t>(slot)) return next_;
  }
  return {};
}

}  // namespace espalier::verify
