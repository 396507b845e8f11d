#include "tests/random/action.h"

#include <algorithm>
#include <numeric>

#include "tests/mutation/formulas.h"

namespace espalier::random {
namespace {

using mutation::count_at;
using mutation::down;

constexpr std::int64_t kActionFitBlocks = 160;
constexpr std::int64_t kMaxLength = 512;         // values that a row looks up
constexpr std::int64_t kMaxRoundInstances = 96;  // of a round

bool is_transfer(ActionKind kind) {
  return kind == ActionKind::kSend || kind == ActionKind::kReceive;
}

}  // namespace

const Stage& ActionDraft::stage() const { return plan_->stages[members[0].of->stage]; }

bool ActionDraft::lay_out_evenly(Choice& choice) {
  const std::int64_t pace = members[0].pace;
  q_ = pace / period_;
  if (q_ > kMaxRoundInstances || pace % period_ != 0) return false;
  base_ = members[0].first;
  for (const Member& member : members) base_ = std::min(base_, member.first);
  if (choice.one_in(4)) base_ -= period_ * choice.number(0, static_cast<std::uint32_t>(q_));
  std::vector<bool> taken(static_cast<std::size_t>(q_), false);
  for (Member& member : members) {
    const std::int64_t apart = member.first - base_;
    if (apart % period_ != 0) return false;
    member.late = apart / pace;
    member.slot = apart % pace / period_;
    if (taken[static_cast<std::size_t>(member.slot)]) return false;
    taken[static_cast<std::size_t>(member.slot)] = true;
  }
  if (choice.one_in(6)) {  // rounds of blocks below 0 come first
    const std::int64_t rounds = choice.number(1, 3);
    base_ -= rounds * pace;
    for (Member& member : members) member.late += rounds;
  }
  return true;
}

bool ActionDraft::lay_out_paced(Choice& choice) {
  const std::int64_t pace = members[0].pace;
  if (pace % period_ != 0) return false;
  base_ = members[0].first;
  for (const Member& member : members) base_ = std::min(base_, member.first);
  for (Member& member : members) {
    if ((member.first - base_) % period_ != 0) return false;
    member.late = (member.first - base_) / pace;
  }
  const auto turn = [&](const Member& member) {
    return (member.first - base_ - member.late * pace) / period_;
  };
  std::stable_sort(members.begin(), members.end(),
                   [&](const Member& a, const Member& b) { return turn(a) < turn(b); });
  const std::int64_t end = pace / period_;  // where the next round's first instance is
  paces_.clear();
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].slot = static_cast<std::int64_t>(paces_.size());
    paces_.push_back(turn(members[i]));
    // Adds instances between, which never exist.
    const std::int64_t next = i + 1 < members.size() ? turn(members[i + 1]) : end;
    for (std::uint32_t more = !plain_ && choice.one_in(4) ? choice.number(1, 2) : 0; more > 0;
         --more) {
      const std::int64_t least = paces_.back();
      paces_.push_back(least + choice.number(0, static_cast<std::uint32_t>(next - least)));
    }
  }
  q_ = static_cast<std::int64_t>(paces_.size());
  if (q_ > kMaxRoundInstances) return false;
  if (base_ >= pace && choice.one_in(4)) {
    const std::int64_t rounds =
        choice.number(1, static_cast<std::uint32_t>(std::min<std::int64_t>(3, base_ / pace)));
    base_ -= rounds * pace;
    for (Member& member : members) member.late += rounds;
  }
  return true;
}

RowShape ActionDraft::shape() const {
  RowShape shape;
  shape.q = q_;
  shape.values.assign(static_cast<std::size_t>(q_), 0);
  shape.alive.assign(static_cast<std::size_t>(q_), false);
  for (const Member& member : members) shape.alive[static_cast<std::size_t>(member.slot)] = true;
  return shape;
}

std::uint8_t ActionDraft::block_row(RowWriter& rows) const {
  RowShape row = shape();
  row.far = true;
  row.slope = members[0].stride;
  for (const Member& member : members) {
    row.values[static_cast<std::size_t>(member.slot)] = member.block - member.stride * member.late;
  }
  return rows.index(row);
}

// A row whose values change with the member only.
template <typename Value>
std::uint8_t ActionDraft::constant_row(RowWriter& rows, const Value& value) const {
  RowShape row = shape();
  for (const Member& member : members) {
    row.values[static_cast<std::size_t>(member.slot)] = value(member);
  }
  return rows.index(row);
}

std::uint8_t ActionDraft::slot_row(RowWriter& rows, Spot Progression::*spot, Choice& choice) const {
  const auto ring_of = [&](const Member& member) -> const Ring& {
    return node_->rings[static_cast<std::size_t>((member.of->*spot).ring)];
  };
  const auto base_of = [&](const Member& member) {
    return ring_of(member).base + (member.of->*spot).slot;
  };
  RowShape row = shape();
  std::int64_t length = 1;  // rounds after which all slots are the same again
  bool alike = true;        // one base and number of turns
  for (const Member& member : members) {
    const std::int64_t turns = ring_of(member).turns;
    length = std::lcm(length, turns / std::gcd(turns, member.more));
    alike = alike && base_of(member) == base_of(members[0]) && turns == ring_of(members[0]).turns;
  }
  const std::int64_t turns = ring_of(members[0]).turns;
  // Each slot and round gets its own value if rings differ in base or turns, if they have one turn,
  // and sometimes if all rounds fit a table.
  if (!alike || length == 1 || (length * q_ <= 32 && choice.one_in(8))) {
    if (length * q_ > kMaxLength) length = 0;  // refused by the row writer: no values
    row.values.assign(static_cast<std::size_t>(std::max<std::int64_t>(1, length) * q_), 0);
    for (const Member& member : members) {
      const Ring& ring = ring_of(member);
      for (std::int64_t round = 0; round < length; ++round) {
        const std::int64_t turn = (round - member.late) * member.more + member.turn;
        row.values[static_cast<std::size_t>(round * q_ + member.slot)] =
            base_of(member) + turn - down(turn, ring.turns) * ring.turns;
      }
    }
    if (length == 0) row.values[0] = kMaxField + std::int64_t{1};
    return rows.index(row);
  }
  row.ring = turns;
  row.base = base_of(members[0]);
  row.slope = members[0].more;
  for (const Member& member : members) {
    const std::int64_t turn = member.turn - member.more * member.late;
    row.values[static_cast<std::size_t>(member.slot)] = turn - down(turn, turns) * turns;
  }
  return rows.index(row);
}

Operand ActionDraft::operand(RowWriter& rows, Spot Progression::*spot, Choice& choice) const {
  const Progression& one = *members[0].of;
  Operand operand{};
  operand.buffer = (one.*spot).buffer;
  operand.segment_ref =
      constant_row(rows, [&](const Member& member) { return (member.of->*spot).segment; });
  operand.block_ref = block_row(rows);
  if (operand.buffer == Buffer::kScratch) operand.slot_ref = slot_row(rows, spot, choice);
  operand.segment_count = static_cast<std::uint16_t>(
      one.segment_count == 1 && choice.one_in(2) ? 0 : one.segment_count);
  return operand;
}

std::int64_t ActionDraft::step_of(std::int64_t instance) const {
  if (paces_.empty()) return base_ + period_ * instance;
  const auto slot = static_cast<std::size_t>(instance % q_);
  return base_ + period_ * paces_[slot] + instance / q_ * members[0].pace;
}

// The number of instances up to the last that exists.
std::int64_t ActionDraft::needed(std::int64_t blocks) const {
  std::int64_t most = 0;
  for (const Member& member : members) {
    if (member.block >= blocks) continue;
    const std::int64_t rounds = -down(-(blocks - member.block), member.stride);
    most = std::max(most, q_ * (rounds - 1 + member.late) + member.slot + 1);
  }
  return most;
}

// The number of instances that are in the phase, at least `least` of which exist; not far beyond
// it.
std::int64_t ActionDraft::allowed(std::int64_t blocks, std::int64_t least) const {
  if (paces_.empty()) return INT64_MAX;
  const std::int64_t start = count_at(stage().start, blocks);
  const std::int64_t steps = count_at(plan_->phase_steps[stage().phase], blocks);
  std::int64_t most = least;
  while (most < least + 2 * q_ + 2 && start + step_of(most) < steps) ++most;
  return most;
}

// A count that is large enough, and not too large, for every N. `exact`: no instance is beyond the
// last.
std::optional<Count> ActionDraft::find_instances(Choice& choice, bool& exact) const {
  std::vector<std::int64_t> least, most;
  std::vector<bool> wanted;
  for (std::int64_t blocks = 1; blocks <= kActionFitBlocks; ++blocks) {
    least.push_back(needed(blocks));
    most.push_back(allowed(blocks, least.back()));
    wanted.push_back(allows(*plan_, blocks));
  }
  const std::int64_t stride = members[0].stride;
  const std::uint32_t way = choice.number(0, 5);
  exact = true;
  if (way < 3) {
    if (const auto count = fit_count(least, wanted, stride)) return count;
  }
  exact = false;
  if (paces_.empty() && way == 5 && choice.one_in(8)) {
    return Count{static_cast<std::int32_t>(kMaxField), 0, 0, 0, 0};  // as many as there can be
  }
  // Tries a + c * ceil((N + d) / e), with the least a that is enough.
  struct Line {
    std::int64_t b, c, d, e;
  };
  std::vector<Line> lines;
  const bool even = way >= 4 && paces_.empty();
  if (even) lines.push_back({-down(-q_, stride), 0, 0, 1});
  for (std::int64_t d = 0; d > -stride; --d) lines.push_back({0, q_, d, stride});
  for (const Line& line : lines) {
    std::int64_t a = INT64_MIN;
    const auto value = [&](std::int64_t blocks) {
      return line.b * blocks - line.c * down(-(blocks + line.d), line.e);
    };
    for (std::int64_t blocks = 1; blocks <= kActionFitBlocks; ++blocks) {
      const auto at = static_cast<std::size_t>(blocks - 1);
      if (wanted[at]) a = std::max(a, least[at] - value(blocks));
    }
    bool fits = true;
    for (std::int64_t blocks = 1; blocks <= kActionFitBlocks; ++blocks) {
      const auto at = static_cast<std::size_t>(blocks - 1);
      fits = fits && (!wanted[at] || a + value(blocks) <= most[at]);
    }
    if (!fits) continue;
    if (paces_.empty() && choice.one_in(3)) a += choice.number(0, 9);
    return Count{static_cast<std::int32_t>(a), static_cast<std::int32_t>(line.b),
                 static_cast<std::int32_t>(line.c), static_cast<std::int32_t>(line.d),
                 static_cast<std::uint32_t>(line.e)};
  }
  exact = true;
  return fit_count(least, wanted, stride);
}

std::optional<Action> ActionDraft::write(RowWriter& rows, const std::vector<std::int64_t>& links,
                                         Choice& choice, std::uint64_t mark) const {
  const Progression& one = *members[0].of;
  Action action{};
  choice.go_to(mark);
  action.kind = one.kind;
  action.after = static_cast<std::uint16_t>(one.after);
  bool exact = false;
  const std::optional<Count> instances = find_instances(choice, exact);
  Count begin = stage().start;
  std::int64_t base = base_;
  if (!paces_.empty()) {
    RowShape row = shape();
    row.alive.assign(row.alive.size(), true);
    row.values = paces_;
    row.slope = members[0].pace / period_;
    if (choice.one_in(6)) {  // both begin elsewhere
      const std::int64_t by = static_cast<std::int64_t>(choice.number(0, 8)) - 4;
      for (std::int64_t& value : row.values) value += by;
      base -= by * period_;
    }
    action.pace_ref = rows.index(row);
  }
  begin.a += static_cast<std::int32_t>(base);
  action.t0_ref = rows.count(begin);
  action.instances_ref = instances ? rows.count(*instances) : 0;
  action.clamp = exact && members.size() == 1 && choice.one_in(3);
  if (is_transfer(one.kind)) {
    action.link_ref =
        constant_row(rows, [&](const Member& member) { return links[member.of->peer]; });
  }
  action.has_into = one.into.buffer != Buffer::kNone;
  action.has_a = one.a.buffer != Buffer::kNone;
  action.has_b = one.b.buffer != Buffer::kNone;
  choice.go_to(mark + 1);
  if (action.has_into) action.into = operand(rows, &Progression::into, choice);
  if (action.has_a) action.a = operand(rows, &Progression::a, choice);
  if (action.has_b) action.b = operand(rows, &Progression::b, choice);
  if (!instances || rows.failed()) return std::nullopt;
  return action;
}

}  // namespace espalier::random
