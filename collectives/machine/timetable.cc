#include "collectives/machine/timetable.h"

#include <algorithm>
#include <bit>

#include "collectives/schedule/arithmetic.h"

namespace espalier {
namespace {

// An index that the formula gives by one multiplication.
bool straight(const Index& index) { return index.terms == 0 && index.mod == 0 && index.div <= 1; }

}  // namespace

void Timetable::start(const Program& program, std::uint32_t first_action, const Phase& phase,
                      std::int64_t first_step, std::int64_t steps, std::int64_t blocks) {
  program_ = &program;
  first_action_ = first_action;
  rows_count_ = phase.actions;
  period_ = phase.period;
  blocks_ = blocks;
  end_step_ = first_step + steps;
  good_ = true;
  cursors_count_ = 0;
  terms_count_ = 0;
  for (std::uint32_t at = 0; at < rows_count_; ++at) {
    const Action& action = program.actions[first_action + at];
    Row& row = rows_[at];
    row = Row();
    row.step = kNever;
    const std::int64_t t0 = count_value(program.counts[action.t0_ref], blocks);
    row.first_step = first_step + t0;
    if (paced(at)) {
      start_pace(at, count_value(program.counts[action.instances_ref], blocks), first_step);
      continue;
    }
    const Range run = range(action, t0, steps);
    if (run.begin >= run.end) continue;
    row.i = run.begin;
    row.left = run.end - run.begin;
    row.step = row.first_step + period_ * run.begin;
    add_cursors(row, action);
  }
  find_next_step();
}

void Timetable::start_pace(std::uint32_t at, std::int64_t instances, std::int64_t begin_step) {
  if (instances <= 0) return;
  Row& row = rows_[at];
  row.left = instances;
  add_cursors(row, action(at));
  const std::uint32_t ref = action(at).pace_ref;
  if (runs_later(action(at)) && has_room(program_->indices[ref])) {
    start_cursor(row, ref);
    row.ahead = true;
  }
  keep_pace(at, begin_step);
}

// To the step of the row's next instance to let in.
void Timetable::keep_pace(std::uint32_t at, std::int64_t earliest) {
  Row& row = rows_[at];
  row.step = kNever;
  if (row.left == 0) return;
  const std::int64_t step = wrapping_add(row.first_step, wrapping_mul(period_, pace(at)));
  if (step < earliest || step >= end_step_) {
    good_ = false;
    return;
  }
  row.step = step;
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

std::uint32_t Timetable::block_ref(const Action& action) const {
  return action.kind == espalier_Kind_SEND ? action.a.block_ref : action.into.block_ref;
}

// The instances whose step is in the phase and whose block is not ruled out: begin <= i < end.
Timetable::Range Timetable::range(const Action& action, std::int64_t t0, std::int64_t steps) const {
  const std::int64_t instances = count_value(program_->counts[action.instances_ref], blocks_);
  Range run{std::max<std::int64_t>(0, ceil_div(wrapping_mul(t0, -1), period_)),
            std::min(instances, floor_div(steps - 1 - t0, period_) + 1)};
  const Index& index = program_->indices[block_ref(action)];
  if (index.terms != 0 || index.mod != 0) return run;
  // 0 <= base + floor((off + coef*i) / div) [< N]  <=>  low <= coef*i [< high]
  const std::int64_t div = std::max<std::int64_t>(1, index.div);
  const std::int64_t low = -index.base * div - index.off;
  const std::int64_t high = (blocks_ - index.base) * div - index.off;
  if (index.coef > 0) {
    run.begin = std::max(run.begin, ceil_div(low, index.coef));
    if (!action.clamp) run.end = std::min(run.end, ceil_div(high, index.coef));
  } else if (index.coef < 0) {
    const std::int64_t down = -std::int64_t{index.coef};
    run.end = std::min(run.end, floor_div(-low, down) + 1);
    if (!action.clamp) run.begin = std::max(run.begin, floor_div(-high, down) + 1);
  } else if (low > 0 || (high <= 0 && !action.clamp)) {
    run.end = run.begin;
  }
  return run;
}

void Timetable::add_cursors(Row& row, const Action& action) {
  row.first_cursor = cursors_count_;
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
  return cursors_count_ < kMaxCursors && index.terms <= 2 * kMaxTerms - terms_count_;
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
  const std::int64_t step = rows_[row].step;
  if (step == kNever || step > next_step_) return;
  if (step < next_step_) next_rows_ = 0;
  next_step_ = step;
  next_rows_ |= std::uint64_t{1} << row;
}

void Timetable::take_step() {
  for (std::uint64_t rows = next_rows_; rows != 0; rows &= rows - 1) {
    const auto at = static_cast<std::uint32_t>(std::countr_zero(rows));
    Row& row = rows_[at];
    if (!paced(at)) {
      row.step = --row.left == 0 ? kNever : row.step + period_;
    } else if (runs_later(action(at))) {
      --row.left;
      if (row.ahead) cursors_[row.first_cursor + row.cursors].advance();
      keep_pace(at, row.step + 1);
    }
  }
  find_next_step();
}

std::uint32_t Timetable::in_step(std::uint32_t at) const {
  const Row& row = rows_[at];
  if (!paced(at) || runs_later(action(at))) return 1;
  const std::uint32_t ref = action(at).pace_ref;
  std::uint32_t many = 1;
  while (many <= kMaxInStep && many < row.left && value(at, ref, many) == value(at, ref)) ++many;
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
  return ahead == 0 ? value(at, ref) : index_value(*program_, ref, rows_[at].i + ahead);
}

bool Timetable::exists(std::uint32_t at) const { return exists(at, 0); }

bool Timetable::exists(std::uint32_t at, std::uint32_t ahead) const {
  const Action& its = action(at);
  const std::int64_t block = value(at, block_ref(its), ahead);
  return block >= 0 && (block < blocks_ || its.clamp);
}

std::int64_t Timetable::block(std::uint32_t at, std::uint32_t ref) const {
  const std::int64_t block = value(at, ref);
  return action(at).clamp ? std::min(block, blocks_ - 1) : block;
}

void Timetable::advance(std::uint32_t at) {
  Row& row = rows_[at];
  ++row.i;
  for (std::uint32_t cursor = 0; cursor < row.cursors; ++cursor) {
    cursors_[row.first_cursor + cursor].advance();
  }
  if (!paced(at) || runs_later(action(at))) return;
  --row.left;
  keep_pace(at, row.step);
}

}  // namespace espalier
