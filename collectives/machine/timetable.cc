#include "espalier/collectives/machine/detail/timetable.h"

#include <algorithm>
#include <bit>

#include "espalier/base/arithmetic.h"

namespace espalier {
namespace {

// An index that the formula gives by one multiplication.
bool straight(const Index& index) { return index.terms == 0 && index.mod == 0 && index.div <= 1; }

}  // namespace

bool Timetable::fits(const Program& program, std::uint32_t blocks, std::int64_t most) {
  bool all = phase_steps(program, blocks) <= most;
  for (std::uint32_t at = 0; at < program.counts_count; ++at) {
    const std::int64_t value = count_value(program.counts[at], blocks);
    all = all && -most <= value && value <= most;
  }
  return all;
}

void Timetable::start(const Program& program, std::uint32_t blocks) {
  program_ = &program;
  blocks_ = blocks;
  next_phase_ = first_action_ = rows_count_ = 0;
  end_step_ = 0;
  good_ = true;
  next_phase();
}

void Timetable::next_phase() {
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
    for (std::uint32_t at = 0; at < rows_count_; ++at) start_row(at);
    find_next_step();
  }
}

void Timetable::start_row(std::uint32_t at) {
  const Action& its = action(at);
  Row& row = rows_[at];
  row = Row();
  row.step = kNoStep;
  row.first_cursor = cursors_count_;
  const std::int64_t t0 = count_value(program_->counts[its.t0_ref], blocks_);
  row.first_step = static_cast<Number>(first_step_ + t0);
  if (paced(at)) return start_pace(at);
  const Range run = range(its, t0);
  if (run.begin >= run.end) return;
  row.i = static_cast<Number>(run.begin);
  row.left = static_cast<Number>(run.end - run.begin);
  row.step = static_cast<Number>(wrapping_add(row.first_step, wrapping_mul(period_, run.begin)));
  add_cursors(row, its);
}

void Timetable::start_pace(std::uint32_t at) {
  const Action& its = action(at);
  Row& row = rows_[at];
  row.left = static_cast<Number>(
      std::max<std::int64_t>(0, count_value(program_->counts[its.instances_ref], blocks_)));
  if (row.left == 0) return;
  add_cursors(row, its);
  if (runs_later(its) && has_room(program_->indices[its.pace_ref])) {
    start_cursor(row, its.pace_ref);
    row.ahead = true;
  }
  keep_pace(at, first_step_);
}

// To the step of the row's next instance to let in.
void Timetable::keep_pace(std::uint32_t at, std::int64_t earliest) {
  Row& row = rows_[at];
  row.step = kNoStep;
  if (row.left == 0) return;
  const std::int64_t step = wrapping_add(row.first_step, wrapping_mul(period_, pace(at)));
  if (step < earliest || step >= end_step_) {
    good_ = false;
    return;
  }
  row.step = static_cast<Number>(step);
}

// Of the row's next instance to let in.
std::int64_t Timetable::pace(std::uint32_t at) const {
  const Row& row = rows_[at];
  const Action& its = action(at);
  if (!runs_later(its)) return value(at, its.pace_ref);
  if (row.ahead) return cursors_[row.first_cursor + row.cursors].value();
  const std::int64_t all = count_value(program_->counts[its.instances_ref], blocks_);
  return index_value(*program_, its.pace_ref, all - row.left);
}

std::uint32_t Timetable::block_ref(const Action& action) {
  return action.kind == espalier_Kind_SEND ? action.a.block_ref : action.into.block_ref;
}

// Leaves those with from < d*i <= to.
void Timetable::Range::cut(std::int64_t from, std::int64_t to, std::uint32_t d) {
  floor_divide(from, d);
  floor_divide(to, d);
  begin = std::max(begin, from + 1);
  end = std::min(end, to + 1);
}

// The instances whose step is in the phase and whose block is not ruled out: begin <= i < end.
Timetable::Range Timetable::range(const Action& action, std::int64_t t0) const {
  const std::int64_t instances = count_value(program_->counts[action.instances_ref], blocks_);
  Range run{0, instances};
  run.cut(wrapping_mul(t0, -1) - 1, end_step_ - first_step_ - 1 - t0, period_);
  const Index& index = program_->indices[block_ref(action)];
  if (index.terms != 0 || index.mod != 0) return run;
  // 0 <= base + floor((off + coef*i) / div) [< N]  <=>  low <= coef*i [< high]
  const std::int64_t div = std::max<std::int64_t>(1, index.div);
  const std::int64_t low = -index.base * div - index.off;
  // Clamped, none is too high: more than any run has.
  const std::int64_t high =
      action.clamp ? kNever : (std::int64_t{blocks_} - index.base) * div - index.off;
  if (index.coef > 0) {
    run.cut(low - 1, high - 1, static_cast<std::uint32_t>(index.coef));
  } else if (index.coef < 0) {
    run.cut(-high, -low, static_cast<std::uint32_t>(-index.coef));
  } else if (low > 0 || high <= 0) {
    run.end = run.begin;
  }
  return run;
}

void Timetable::add_cursors(Row& row, const Action& action) {
  if (action.kind == espalier_Kind_SEND || action.kind == espalier_Kind_RECEIVE) {
    add_cursor(row, action.link_ref);
  }
  if (action.pace_ref != 0 && !runs_later(action)) add_cursor(row, action.pace_ref);
  add_place(row, action.has_into, action.into);
  add_place(row, action.has_a, action.a);
  add_place(row, action.has_b, action.b);
}

void Timetable::add_place(Row& row, bool present, const Place& place) {
  if (!present) return;
  add_cursor(row, place.segment_ref);
  add_cursor(row, place.block_ref);
  if (place.buffer == espalier_Buffer_SCRATCH) add_cursor(row, place.slot_ref);
}

// Where there is no room, value() divides instead.
void Timetable::add_cursor(Row& row, std::uint32_t ref) {
  const Index& index = program_->indices[ref];
  if (straight(index) || !has_room(index)) return;
  for (std::uint32_t at = 0; at < row.cursors; ++at) {
    if (cursor_refs_[row.first_cursor + at] == ref) return;
  }
  start_cursor(row, ref);
  ++row.cursors;
}

bool Timetable::has_room(const Index& index) const {
  return cursors_count_ < kMaxCursors && index.terms <= kMaxTermCursors - terms_count_;
}

void Timetable::start_cursor(Row& row, std::uint32_t ref) {
  cursor_refs_[cursors_count_] = static_cast<std::uint8_t>(ref);
  cursors_[cursors_count_].start(*program_, ref, row.i, terms_ + terms_count_);
  terms_count_ = static_cast<std::uint16_t>(terms_count_ + program_->indices[ref].terms);
  ++cursors_count_;
}

void Timetable::find_next_step() {
  next_step_ = kNever;
  next_rows_ = 0;
  for (std::uint32_t row = 0; row < rows_count_; ++row) offer(row);
}

void Timetable::offer(std::uint32_t row) {
  const Number step = rows_[row].step;
  if (step == kNoStep || step > next_step_) return;
  if (step < next_step_) next_rows_ = 0;
  next_step_ = step;
  next_rows_ |= Rows{1} << row;
}

void Timetable::take_step() {
  for (Rows rows = next_rows_; rows != 0; rows &= rows - 1) {
    const auto at = static_cast<std::uint32_t>(std::countr_zero(rows));
    Row& row = rows_[at];
    if (!paced(at)) {
      row.step = --row.left == 0 ? kNoStep : row.step + static_cast<Number>(period_);
    } else if (runs_later(action(at))) {
      --row.left;
      if (row.ahead) cursors_[row.first_cursor + row.cursors].advance(*program_);
      keep_pace(at, std::int64_t{row.step} + 1);
    }
  }
  find_next_step();
}

std::uint32_t Timetable::in_step(std::uint32_t at) const {
  const Row& row = rows_[at];
  if (!paced(at) || runs_later(action(at))) return 1;
  const std::uint32_t ref = action(at).pace_ref;
  std::uint32_t many = 1;
  while (many <= kMaxInStep && std::int64_t{many} < row.left &&
         value(at, ref, many) == value(at, ref))
    ++many;
  return many;
}

std::int64_t Timetable::value(std::uint32_t at, std::uint32_t ref) const {
  const Row& row = rows_[at];
  const Index& index = program_->indices[ref];
  if (straight(index)) {
    return wrapping_add(std::int64_t{index.base} + index.off, wrapping_mul(index.coef, row.i));
  }
  for (std::uint32_t cursor = 0; cursor < row.cursors; ++cursor) {
    if (cursor_refs_[row.first_cursor + cursor] == ref) {
      return cursors_[row.first_cursor + cursor].value();
    }
  }
  return index_value(*program_, ref, row.i);
}

std::int64_t Timetable::value(std::uint32_t at, std::uint32_t ref, std::uint32_t ahead) const {
  return ahead == 0 ? value(at, ref)
                    : index_value(*program_, ref, std::int64_t{rows_[at].i} + ahead);
}

bool Timetable::exists(std::uint32_t at) const { return exists(at, 0); }

bool Timetable::exists(std::uint32_t at, std::uint32_t ahead) const {
  const Action& its = action(at);
  const std::int64_t block = value(at, block_ref(its), ahead);
  return block >= 0 && (block < blocks_ || its.clamp);
}

std::int64_t Timetable::block(std::uint32_t at, std::uint32_t ref) const {
  const std::int64_t block = value(at, ref);
  return action(at).clamp ? std::min(block, std::int64_t{blocks_} - 1) : block;
}

void Timetable::advance(std::uint32_t at) {
  Row& row = rows_[at];
  ++row.i;
  for (std::uint32_t cursor = 0; cursor < row.cursors; ++cursor) {
    cursors_[row.first_cursor + cursor].advance(*program_);
  }
  if (!paced(at) || runs_later(action(at))) return;
  --row.left;
  keep_pace(at, row.step);
}

}  // namespace espalier
