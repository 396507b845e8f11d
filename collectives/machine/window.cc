// The steps in flight: letting in, posting, combining, retiring. docs/architecture.md, "The rules
// of a program", rules 2 to 6.

#include <algorithm>
#include <bit>
#include <cstring>

#include "espalier/base/crc32.h"
#include "espalier/collectives/machine/machine.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxStepMessages = 255;  // a step counts its sends, and receives, in 8 bits

constexpr Rows bit(std::uint32_t row) { return Rows{1} << row; }

}  // namespace

// retry: something that may be posted was not, for the fabric had no room. Else what could not be
// posted in the last poll still cannot where nothing has moved, and most polls find that.
void Machine::work(bool retry) {
  run_op();
  let_in();
  if ((moved_ || retry) && running_ && !watch_.failed()) post_all();
}

// Rules 2 and 6. At most as many steps as the window has.
void Machine::let_in() {
  for (std::uint32_t steps = 0; steps < kMaxWindow; ++steps) {
    if (!timetable_.good()) return fail_here(Status::kMalformed);
    retire();
    const bool empty = first_step_ == end_step_;
    if (timetable_.next_step() == Timetable::kNever) {
      if (!empty) return;
      timetable_.next_phase();
      if (!timetable_.good()) return fail_here(Status::kMalformed);
      if (timetable_.next_step() == Timetable::kNever) return finish();
    }
    const std::int64_t next = timetable_.next_step();
    if (next >= horizon_ || (!empty && next - step(first_step_).number >= window_)) return;
    if (!room()) return;
    let_in_step();
    if (watch_.failed()) return;
  }
}

void Machine::retire() {
  while (first_step_ != end_step_ && step(first_step_).done()) {
    if (next_op_ == first_step_) ++next_op_;
    if (log_ != nullptr) log_->retire(step(first_step_).number, log_now());
    ++first_step_;
    moved_ = true;
  }
}

void Machine::let_in_step() {
  Step& its = step(end_step_);
  its = Step();
  its.number = timetable_.next_step();
  const std::uint64_t now = log_now();
  for (Rows rows = timetable_.next_rows(); rows != 0; rows &= rows - 1) {
    const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
    const Kind kind = timetable_.action(row).kind;
    if (kind == espalier_Kind_COMBINE || kind == espalier_Kind_COPY) {
      if (log_ != nullptr) log_op(row, now);
      its.ops |= bit(row);
      continue;
    }
    std::uint32_t many = timetable_.in_step(row);
    if (many > Timetable::kMaxInStep) return fail_here(Status::kTooLarge);
    for (; many > 0; --many) {
      const bool exists = timetable_.exists(row);
      if (exists && log_ != nullptr) log_let_in(row, 0, now);
      if (exists && !let_in_message(row)) return fail_here(Status::kMalformed);
      timetable_.advance(row);
    }
  }
  timetable_.take_step();
  ++end_step_;
  moved_ = true;
}

// The link of the row's next message, or of the one `ahead` after it. False if the program names
// what does not exist.
bool Machine::link_of(std::uint32_t row, std::uint32_t ahead, std::uint32_t& link) const {
  const std::int64_t at = timetable_.value(row, timetable_.action(row).link_ref, ahead);
  if (at < 0 || at >= links_count(*program_)) return false;
  link = link_of_[at];
  return true;
}

// Whether every lane has room for its messages of the next step: all of them are let in, or none.
// With one message a link and direction there always is; where there are more, steps wait as if
// the window were smaller.
bool Machine::room() {
  if (program_->port_model != espalier_PortModel_MULTIPORT) return true;
  std::uint8_t coming[2][kMaxLinks] = {};
  std::uint32_t all[2] = {};
  for (Rows rows = timetable_.next_rows(); rows != 0; rows &= rows - 1) {
    const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
    const Kind kind = timetable_.action(row).kind;
    if (kind == espalier_Kind_COMBINE || kind == espalier_Kind_COPY) continue;
    const bool send = kind == espalier_Kind_SEND;
    // Those beyond kMaxInStep end it when it is let in.
    const std::uint32_t many = std::min(timetable_.in_step(row), Timetable::kMaxInStep);
    for (std::uint32_t ahead = 0; ahead < many; ++ahead) {
      std::uint32_t link = 0;
      if (!timetable_.exists(row, ahead) || !link_of(row, ahead, link)) continue;
      const std::uint32_t messages = ++coming[send][link];
      if (messages > room_ || ++all[send] > kMaxStepMessages) fail(Status::kTooLarge, link);
      if (watch_.failed()) return false;
      if ((send ? sends_ : receives_)[link].let_in() + messages > room_) return false;
    }
  }
  return true;
}

// False if the program names what does not exist.
bool Machine::let_in_message(std::uint32_t row) {
  const Action& action = timetable_.action(row);
  const bool send = action.kind == espalier_Kind_SEND;
  std::uint32_t link = 0;
  if (!link_of(row, 0, link)) return false;
  Lane& lane = send ? sends_[link] : receives_[link];
  if (lane.let_in() >= room_) return false;
  Block block;
  if (!locate(row, send ? action.a : action.into, block)) return false;
  lane.add({block.size, block.bytes, end_step_,
            static_cast<std::uint8_t>(timetable_.first_action() + row)});
  Step& its = step(end_step_);
  if (send) {
    ++its.sends;
    ++its.unposted;
    unposted_sends_.insert(link);
  } else {
    ++its.receives;
    unposted_receives_.insert(link);
    post_receives(link);
  }
  return true;
}

// The row's next instance, or the one `ahead` after it, goes into the log.
void Machine::log_let_in(std::uint32_t row, std::uint32_t ahead, std::uint64_t now) {
  const Action& action = timetable_.action(row);
  const bool send = action.kind == espalier_Kind_SEND;
  const Place& place = send ? action.a : action.into;
  Event event;
  event.step = static_cast<std::uint32_t>(timetable_.next_step());
  event.segment = static_cast<std::uint32_t>(timetable_.value(row, place.segment_ref, ahead));
  const std::int64_t block = timetable_.value(row, place.block_ref, ahead);
  event.block = static_cast<std::uint32_t>(std::min<std::int64_t>(block, layout_.blocks - 1));
  event.action = static_cast<std::uint8_t>(timetable_.first_action() + row);
  event.kind = static_cast<std::uint8_t>(action.kind);
  std::uint32_t link = 0;
  if ((send || action.kind == espalier_Kind_RECEIVE) && link_of(row, ahead, link)) {
    event.link = static_cast<std::uint8_t>(timetable_.value(row, action.link_ref, ahead));
    event.port = static_cast<std::uint8_t>(link);
  }
  log_->let_in(event, now);
}

// Combines and copies are let in before those of earlier steps have run.
void Machine::log_op(std::uint32_t row, std::uint64_t now) {
  std::uint32_t ahead = 0;
  for (std::uint8_t at = first_step_; at != end_step_; ++at) {
    if ((step(at).ops & bit(row)) != 0) ++ahead;
  }
  if (timetable_.exists(row, ahead)) log_let_in(row, ahead, now);
}

// A fabric serves posts of different links in the order they come, more or less: what an earlier
// step needs goes first.
void Machine::post_all() {
  unposted_receives_.for_each([this](std::uint32_t link) { post_receives(link); });
  for (std::uint8_t at = first_step_; at != end_step_ && !unposted_sends_.empty(); ++at) {
    if (step(at).unposted == 0) continue;
    unposted_sends_.for_each([this, at](std::uint32_t link) {
      const Lane& lane = sends_[link];
      while (lane.unposted() && lane.at(lane.posted).step == at && post_send(link)) {
      }
    });
  }
}

// Rule 3.
void Machine::post_receives(std::uint32_t link) {
  Lane& lane = receives_[link];
  while (lane.unposted()) {
    const Message message = lane.at(lane.posted);
    const std::uint64_t now = log_now();
    const Status status = endpoint_->post_receive(
        link, {message.bytes, message.size, tags_.tag(lane.number), message.step});
    if (!took(status, link)) return;
    posted(link, lane, unposted_receives_);
    if (log_ != nullptr) {
      log_->posted(static_cast<std::uint8_t>(link), espalier_Kind_RECEIVE, now);
    }
  }
}

// Rule 4, of the link's next send. True if it was posted.
bool Machine::post_send(std::uint32_t link) {
  Lane& lane = sends_[link];
  const Message message = lane.at(lane.posted);
  const std::uint32_t after = program_->actions[message.action].after;
  if (after > 0 && !reached(message.step, after, true)) return false;
  // Before the other end can have it.
  const std::uint64_t now = log_now();
  const std::uint32_t check = check_blocks_ ? crc32(0, message.bytes, message.size) : 0;
  const Status status = endpoint_->post_send(
      link, {message.bytes, message.size, tags_.tag(lane.number), check, message.step});
  if (!took(status, link)) return false;
  --step(message.step).unposted;
  sending_.insert(link);
  posted(link, lane, unposted_sends_);
  if (log_ != nullptr) log_->posted(static_cast<std::uint8_t>(link), espalier_Kind_SEND, now);
  return true;
}

bool Machine::took(Status status, std::uint32_t link) {
  if (status == Status::kOk) return true;
  if (status == Status::kTryAgain) {
    no_room_ = true;
  } else {
    fail(status, link);
  }
  return false;
}

std::uint64_t Machine::log_now() const {
  return log_ != nullptr && log_->timed() ? endpoint_->now() : 0;
}

void Machine::posted(std::uint32_t link, Lane& lane, LinkSet& unposted) {
  ++lane.posted;
  ++lane.number;
  if (!lane.unposted()) unposted.erase(link);
  watch_.await(link);
  moved_ = true;
}

// Whether the step `after` before step `from` has all its receives and, if ops_too, has run its
// combines and copies. A step that is not there is empty or retired.
bool Machine::reached(std::uint8_t from, std::uint32_t after, bool ops_too) const {
  const std::int64_t number = step(from).number - after;
  for (;; --from) {
    const Step& its = step(from);
    if (its.number < number) return true;
    if (its.number == number) return its.receives == 0 && (!ops_too || its.ops == 0);
    if (from == first_step_) return true;
  }
}

// Rule 5: runs at most one combine or copy.
void Machine::run_op() {
  while (next_op_ != end_step_ && step(next_op_).ops == 0) ++next_op_;
  if (next_op_ == end_step_) return;
  Step& its = step(next_op_);
  const auto row = static_cast<std::uint32_t>(std::countr_zero(its.ops));
  if (timetable_.exists(row)) {
    if (!may_run(timetable_.action(row))) return;
    const std::uint64_t began = log_now();
    if (!operate(row)) return;
    if (log_ != nullptr) {
      log_->ran(its.number, static_cast<std::uint8_t>(timetable_.first_action() + row), began,
                log_now());
    }
  }
  its.ops &= its.ops - 1;
  timetable_.advance(row);
  moved_ = true;
}

// Rule 5 (a) and (c); (b) by the order of next_op_ and ops.
bool Machine::may_run(const Action& action) const {
  if (!reached(next_op_, action.after, false)) return false;
  for (std::uint8_t at = first_step_;; ++at) {
    if (step(at).unposted != 0) return false;
    if (at == next_op_) return true;
  }
}

// Runs the combine or copy of that row. False if it has to wait, or the program is broken.
bool Machine::operate(std::uint32_t row) {
  const Action& action = timetable_.action(row);
  Block into, a, b;
  const bool combine = action.kind == espalier_Kind_COMBINE;
  if (!locate(row, action.into, into) || !locate(row, action.a, a) || a.size != into.size ||
      (combine && (!locate(row, action.b, b) || b.size != into.size))) {
    fail_here(Status::kMalformed);
    return false;
  }
  if (into.size == 0) return true;
  if (being_sent(into)) return false;
#if ESPALIER_WITHOUT_DATA
  if (no_data_) return true;
#endif
  if (combine) {
    espalier::combine(op_, into.bytes, a.bytes, b.bytes, into.elements);
  } else if (into.bytes != a.bytes) {
    std::memmove(into.bytes, a.bytes, into.size);
  }
  return true;
}

// Rule 5 (d): whether an unfinished send reads the block.
bool Machine::being_sent(const Block& block) const {
  bool found = false;
  sending_.for_each([&](std::uint32_t link) {
    const Lane& lane = sends_[link];
    for (std::uint8_t at = lane.first; at != lane.posted && !found; ++at) {
      const Message message = lane.at(at);
      found =
          message.bytes < block.bytes + block.size && block.bytes < message.bytes + message.size;
    }
  });
  return found;
}

// Where a place of the row's next instance lies. False if it is none.
bool Machine::locate(std::uint32_t row, const Place& place, Block& block) const {
  const std::int64_t segment = timetable_.value(row, place.segment_ref);
  const std::int64_t number = timetable_.block(row, place.block_ref);
  const std::uint32_t run = place_run(place);
  if (segment < 0 || segment > std::int64_t{layout_.segments} - run || number < 0 ||
      number >= layout_.blocks) {
    return false;
  }
  const Span span = block_span(layout_, static_cast<std::uint32_t>(segment),
                               static_cast<std::uint32_t>(number), run);
  // A message of more than the memory's size was refused.
  block = {nullptr, static_cast<std::size_t>(span.bytes), static_cast<std::size_t>(span.elements)};
  if (place.buffer == espalier_Buffer_SCRATCH) {
    const std::int64_t slot = timetable_.value(row, place.slot_ref);
    if (slot < 0 || slot > std::int64_t{program_->scratch_blocks} - run) return false;
    if (span.bytes > 0) block.bytes = scratch_ + static_cast<std::size_t>(slot) * slot_bytes_;
    return true;
  }
  if (span.bytes == 0) return true;
  const Held& held = place.buffer == espalier_Buffer_INPUT ? input_ : output_;
  if (span.offset < held.offset) return false;
  const std::uint64_t offset = span.offset - held.offset;
  if (offset + span.bytes > held.size) return false;
  block.bytes = held.bytes + offset;
  return true;
}

}  // namespace espalier
