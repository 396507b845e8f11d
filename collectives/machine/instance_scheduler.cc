#include "espalier/internal/collectives/machine/detail/instance_scheduler.h"

#include <algorithm>
#include <bit>

#include "espalier/internal/base/arithmetic.h"

namespace espalier {
namespace {

// Whether the formula of the index is a single multiplication and addition.
bool is_linear(const Index& index) { return index.terms == 0 && index.mod == 0 && index.div <= 1; }

}  // namespace

bool InstanceScheduler::fits(const Program& program, std::uint32_t blocks, std::int64_t max) {
  bool fits = phase_steps(program, blocks) <= max;
  for (std::uint32_t i = 0; i < program.counts_count; ++i) {
    const std::int64_t value = count_value(program.counts[i], blocks);
    fits = fits && -max <= value && value <= max;
  }
  return fits;
}

void InstanceScheduler::start(const Program& program, std::uint32_t blocks) {
  ESPALIER_ASSERT(blocks >= 1 && fits(program, blocks));
  program_ = &program;
  blocks_ = blocks;
  next_phase_ = first_action_ = rows_count_ = 0;
  end_step_ = 0;
  good_ = true;
  next_phase();
}

void InstanceScheduler::start_as(const InstanceScheduler& started) {
  ESPALIER_ASSERT(started.program_ != nullptr);
  // The cursors of terms point to the terms of their own scheduler.
  if (started.terms_count_ != 0) return start(*started.program_, started.blocks_);
  program_ = started.program_;
  next_phase_ = started.next_phase_;
  first_action_ = started.first_action_;
  rows_count_ = started.rows_count_;
  good_ = started.good_;
  period_ = started.period_;
  blocks_ = started.blocks_;
  first_step_ = started.first_step_;
  end_step_ = started.end_step_;
  next_step_ = started.next_step_;
  next_rows_ = started.next_rows_;
  std::copy_n(started.rows_, rows_count_, rows_);
  cursors_count_ = started.cursors_count_;
  terms_count_ = 0;
  std::copy_n(started.cursor_refs_, cursors_count_, cursor_refs_);
  std::copy_n(started.cursors_, cursors_count_, cursors_);
  check_invariants();
}

void InstanceScheduler::start_at_end(const Program& program) {
  program_ = &program;
  next_phase_ = static_cast<std::uint8_t>(program.phases_count);
  rows_count_ = 0;
  good_ = true;
  next_step_ = kNever;
  next_rows_ = 0;
}

void InstanceScheduler::next_phase() {
  next_step_ = kNever;
  while (next_step_ == kNever && next_phase_ < program_->phases_count) {
    const Phase& phase = program_->phases[next_phase_++];
    first_action_ = static_cast<std::uint8_t>(first_action_ + rows_count_);
    rows_count_ = static_cast<std::uint8_t>(phase.actions);
    period_ = phase.period;
    first_step_ = end_step_;
    end_step_ += std::max<std::int64_t>(0, count_value(program_->counts[phase.steps_ref], blocks_));
    cursors_count_ = 0;
    terms_count_ = 0;
    for (std::uint32_t row = 0; row < rows_count_; ++row) start_row(row);
    find_next_step();
  }
  check_invariants();
}

void InstanceScheduler::start_row(std::uint32_t row) {
  ESPALIER_ASSERT(row < rows_count_);
  const Action& action = this->action(row);
  Row& state = rows_[row];
  state = Row();
  state.step = kNoStep;
  state.first_cursor = cursors_count_;
  const std::int64_t t0 = count_value(program_->counts[action.t0_ref], blocks_);
  state.first_step = static_cast<Number>(first_step_ + t0);
  if (has_pace(row)) return start_pace(row);
  const Range instances = range(action, t0);
  if (instances.begin >= instances.end) return;
  state.i = static_cast<Number>(instances.begin);
  state.unissued = static_cast<Number>(instances.end - instances.begin);
  state.step =
      static_cast<Number>(wrapping_add(state.first_step, wrapping_mul(period_, instances.begin)));
  add_cursors(state, action);
}

void InstanceScheduler::start_pace(std::uint32_t row) {
  const Action& action = this->action(row);
  Row& state = rows_[row];
  state.unissued = static_cast<Number>(
      std::max<std::int64_t>(0, count_value(program_->counts[action.instances_ref], blocks_)));
  if (state.unissued == 0) return;
  add_cursors(state, action);
  if (runs_later(action) && has_room(program_->indices[action.pace_ref])) {
    start_cursor(state, action.pace_ref);
    state.has_pace_cursor = true;
  }
  update_step(row, first_step_);
}

// Sets the row's `step` to the step of its next instance to issue. good_ becomes false if that step
// is before `earliest` or after the phase.
void InstanceScheduler::update_step(std::uint32_t row, std::int64_t earliest) {
  Row& state = rows_[row];
  state.step = kNoStep;
  ESPALIER_ASSERT(has_pace(row) && state.unissued >= 0);
  if (state.unissued == 0) return;
  const std::int64_t step = step_of_pace(row, pace(row));
  if (step < earliest || step >= end_step_) {
    good_ = false;
    return;
  }
  state.step = static_cast<Number>(step);
}

std::int64_t InstanceScheduler::step_of_pace(std::uint32_t row, std::int64_t pace) const {
  return wrapping_add(rows_[row].first_step, wrapping_mul(period_, pace));
}

// Returns the pace of the row's next instance to issue.
std::int64_t InstanceScheduler::pace(std::uint32_t row) const {
  const Row& state = rows_[row];
  const Action& action = this->action(row);
  if (!runs_later(action)) return value(row, action.pace_ref);
  ESPALIER_ASSERT(!state.has_pace_cursor || state.first_cursor + state.cursors < cursors_count_);
  if (state.has_pace_cursor) return cursors_[state.first_cursor + state.cursors].value();
  return value(row, action.pace_ref, waiting(row));
}

std::uint32_t InstanceScheduler::block_ref(const Action& action) {
  return action.kind == ActionKind::kSend ? action.a.block_ref : action.into.block_ref;
}

// Keeps the instances i with from < d*i <= to.
void InstanceScheduler::Range::cut(std::int64_t from, std::int64_t to, std::uint32_t d) {
  floor_divide(from, d);
  floor_divide(to, d);
  begin = std::max(begin, from + 1);
  end = std::min(end, to + 1);
}

// Returns the instances whose step is in the phase and whose block is not known to be outside 0 ..
// N-1.
InstanceScheduler::Range InstanceScheduler::range(const Action& action, std::int64_t t0) const {
  const std::int64_t instances = count_value(program_->counts[action.instances_ref], blocks_);
  ESPALIER_ASSERT(period_ > 0);
  Range range{0, instances};
  range.cut(wrapping_mul(t0, -1) - 1, end_step_ - first_step_ - 1 - t0, period_);
  const Index& index = program_->indices[block_ref(action)];
  if (index.terms != 0 || index.mod != 0) return range;
  // 0 <= base + floor((off + coef*i) / div) [< N]  <=>  low <= coef*i [< high]
  const std::int64_t div = std::max<std::int64_t>(1, index.div);
  const std::int64_t low = -index.base * div - index.off;
  // With clamp no block is too high: kNever is above every block.
  const std::int64_t high =
      action.clamp ? kNever : (std::int64_t{blocks_} - index.base) * div - index.off;
  if (index.coef > 0) {
    range.cut(low - 1, high - 1, static_cast<std::uint32_t>(index.coef));
  } else if (index.coef < 0) {
    range.cut(-high, -low, static_cast<std::uint32_t>(-index.coef));
  } else if (low > 0 || high <= 0) {
    range.end = range.begin;
  }
  return range;
}

void InstanceScheduler::add_cursors(Row& row, const Action& action) {
  if (action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive) {
    add_cursor(row, action.link_ref);
  }
  if (action.pace_ref != 0 && !runs_later(action)) add_cursor(row, action.pace_ref);
  add_operand(row, action.has_into, action.into);
  add_operand(row, action.has_a, action.a);
  add_operand(row, action.has_b, action.b);
}

void InstanceScheduler::add_operand(Row& row, bool present, const Operand& operand) {
  if (!present) return;
  add_cursor(row, operand.segment_ref);
  add_cursor(row, operand.block_ref);
  if (operand.buffer == Buffer::kScratch) add_cursor(row, operand.slot_ref);
}

// Adds a cursor for an index that needs one. If there is no room for it, value() divides instead.
void InstanceScheduler::add_cursor(Row& row, std::uint32_t ref) {
  const Index& index = program_->indices[ref];
  if (is_linear(index) || !has_room(index)) return;
  for (std::uint32_t i = 0; i < row.cursors; ++i) {
    if (cursor_refs_[row.first_cursor + i] == ref) return;
  }
  start_cursor(row, ref);
  ++row.cursors;
}

bool InstanceScheduler::has_room(const Index& index) const {
  return cursors_count_ < kMaxCursors && index.terms <= kMaxTermCursors - terms_count_;
}

void InstanceScheduler::start_cursor(Row& row, std::uint32_t ref) {
  ESPALIER_ASSERT(has_room(program_->indices[ref]) && ref < program_->indices_count);
  cursor_refs_[cursors_count_] = static_cast<std::uint8_t>(ref);
  cursors_[cursors_count_].start(*program_, ref, row.i, terms_ + terms_count_);
  terms_count_ = static_cast<std::uint16_t>(terms_count_ + program_->indices[ref].terms);
  ++cursors_count_;
}

void InstanceScheduler::find_next_step() {
  next_step_ = kNever;
  next_rows_ = 0;
  for (std::uint32_t row = 0; row < rows_count_; ++row) merge(row);
}

void InstanceScheduler::merge(std::uint32_t row) {
  const Number step = rows_[row].step;
  if (step == kNoStep || step > next_step_) return;
  if (step < next_step_) next_rows_ = 0;
  next_step_ = step;
  next_rows_ |= row_bit(row);
}

void InstanceScheduler::take_step() {
  ESPALIER_ASSERT(next_step_ != kNever);
  [[maybe_unused]] const std::int64_t issued = next_step_;
  for (Rows rows = next_rows_; rows != 0; rows &= rows - 1) {
    const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
    Row& state = rows_[row];
    ESPALIER_ASSERT(state.unissued > 0 || (has_pace(row) && !runs_later(action(row))));
    if (!has_pace(row)) {
      ESPALIER_ASSERT(state.step == issued);
      state.step = --state.unissued == 0 ? kNoStep : state.step + static_cast<Number>(period_);
    } else if (runs_later(action(row))) {
      issue_paced(row);
    }
  }
  find_next_step();
  ESPALIER_ASSERT(!good_ || next_step_ > issued);
  check_invariants();
}

// Issues the instances of a combine or copy with a pace that are in its step.
void InstanceScheduler::issue_paced(std::uint32_t row) {
  Row& state = rows_[row];
  const Number step = state.step;
  for (std::uint32_t count = 0; state.step == step; ++count) {
    if (count == kMaxInStep) {
      good_ = false;
      return;
    }
    ESPALIER_ASSERT(state.unissued > 0);
    --state.unissued;
    if (state.has_pace_cursor) cursors_[state.first_cursor + state.cursors].advance(*program_);
    update_step(row, step);
  }
}

std::uint32_t InstanceScheduler::in_step(std::uint32_t row) const {
  ESPALIER_ASSERT((next_rows_ & row_bit(row)) != 0);
  if (!has_pace(row)) return 1;
  const std::uint32_t ref = action(row).pace_ref;
  const std::uint32_t next = waiting(row);
  const std::int64_t pace = value(row, ref, next);
  std::uint32_t count = 1;
  while (count <= kMaxInStep && std::int64_t{count} < rows_[row].unissued &&
         value(row, ref, next + count) == pace)
    ++count;
  return count;
}

std::uint32_t InstanceScheduler::waiting(std::uint32_t row) const {
  const Row& state = rows_[row];
  const Action& action = this->action(row);
  if (!runs_later(action)) return 0;
  ESPALIER_ASSERT(has_pace(row) || state.step != kNoStep);
  const std::int64_t issued =
      has_pace(row) ? count_value(program_->counts[action.instances_ref], blocks_) - state.unissued
                    : (state.step - state.first_step) / static_cast<Number>(period_);
  ESPALIER_ASSERT(issued >= state.i);
  return static_cast<std::uint32_t>(issued - state.i);
}

bool InstanceScheduler::runs_again(std::uint32_t row, std::int64_t step) const {
  if (!has_pace(row) || waiting(row) == 0) return false;
  return step_of_pace(row, value(row, action(row).pace_ref)) == step;
}

std::int64_t InstanceScheduler::value(std::uint32_t row, std::uint32_t ref) const {
  const Row& state = rows_[row];
  const Index& index = program_->indices[ref];
  ESPALIER_ASSERT(state.first_cursor + state.cursors <= cursors_count_);
  if (is_linear(index)) {
    return wrapping_add(std::int64_t{index.base} + index.off, wrapping_mul(index.coef, state.i));
  }
  for (std::uint32_t cursor = 0; cursor < state.cursors; ++cursor) {
    if (cursor_refs_[state.first_cursor + cursor] == ref) {
      return cursors_[state.first_cursor + cursor].value();
    }
  }
  return index_value(*program_, ref, state.i);
}

std::int64_t InstanceScheduler::value(std::uint32_t row, std::uint32_t ref,
                                      std::uint32_t ahead) const {
  return ahead == 0 ? value(row, ref)
                    : index_value(*program_, ref, std::int64_t{rows_[row].i} + ahead);
}

bool InstanceScheduler::exists(std::uint32_t row) const { return exists(row, 0); }

bool InstanceScheduler::exists(std::uint32_t row, std::uint32_t ahead) const {
  const Action& action = this->action(row);
  const std::int64_t block = value(row, block_ref(action), ahead);
  return block >= 0 && (block < blocks_ || action.clamp);
}

std::int64_t InstanceScheduler::block(std::uint32_t row, std::uint32_t ref) const {
  const std::int64_t block = value(row, ref);
  return action(row).clamp ? std::min(block, std::int64_t{blocks_} - 1) : block;
}

void InstanceScheduler::advance(std::uint32_t row) {
  Row& state = rows_[row];
  // Only an issued combine or copy has run. If none is left to issue, only a pace tells.
  ESPALIER_ASSERT(!runs_later(action(row)) || (!has_pace(row) && state.step == kNoStep) ||
                  waiting(row) > 0);
  ++state.i;
  for (std::uint32_t cursor = 0; cursor < state.cursors; ++cursor) {
    cursors_[state.first_cursor + cursor].advance(*program_);
  }
  if (!has_pace(row) || runs_later(action(row))) return;
  ESPALIER_ASSERT(state.unissued > 0);
  --state.unissued;
  update_step(row, state.step);
}

}  // namespace espalier
