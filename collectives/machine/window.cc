// The steps in flight: issues, posts, combines and retires. docs/architecture.md, "The rules of a
// program", rules 2 to 6.

#include <algorithm>
#include <bit>

#include "base/copy.h"
#include "base/crc32.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier {
// retry: the fabric had no room for a post that was ready. Without it, and if nothing moved, a post
// that was impossible in the last poll still is; this is the common case.
void Machine::work(bool retry, PollBudget& budget) {
  if (!running_ || failure_detector_.failed()) return;
  if (budget.operates) budget.operates = !run_op();
  issue_steps(budget.steps);
  if ((has_moved_ || retry) && running_ && !failure_detector_.failed()) post_all();
}

// Rules 2 and 6: issues and retires steps, at most `budget` of them.
void Machine::issue_steps(std::uint32_t& budget) {
  for (; budget > 0; --budget) {
    if (!instance_scheduler_.good()) return fail_here(Status::kMalformed);
    retire();
    const bool empty = first_step_ == end_step_;
    if (instance_scheduler_.next_step() == InstanceScheduler::kNever) {
      if (!empty) return;
      instance_scheduler_.next_phase();
      if (!instance_scheduler_.good()) return fail_here(Status::kMalformed);
      if (instance_scheduler_.next_step() == InstanceScheduler::kNever) return finish();
    }
    const std::int64_t next = instance_scheduler_.next_step();
    if (next >= step_limit_ || (!empty && next - step(first_step_).number >= window_)) return;
    if (!has_room()) return;
    issue_step();
    if (failure_detector_.failed()) return;
  }
}

void Machine::retire() {
  while (first_step_ != end_step_ && step(first_step_).done()) {
    ESPALIER_ASSERT(step(first_step_).unposted == 0);
    if (next_op_ == first_step_) ++next_op_;
    if (log_ != nullptr) log_->retire(step(first_step_).number, log_now());
    ++first_step_;
    has_moved_ = true;
  }
}

void Machine::issue_step() {
  ESPALIER_ASSERT(steps_in_flight() < window_);
  Step& new_step = step(end_step_);
  new_step = Step();
  new_step.number = instance_scheduler_.next_step();
  ESPALIER_ASSERT(steps_in_flight() == 0 ||
                  step(static_cast<std::uint8_t>(end_step_ - 1)).number < new_step.number);
  const std::uint64_t now = log_now();
  for (Rows rows = instance_scheduler_.next_rows(); rows != 0; rows &= rows - 1) {
    const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
    const ActionKind::Value kind = instance_scheduler_.action(row).kind;
    if (kind == ActionKind::kCombine || kind == ActionKind::kCopy) {
      if (log_ != nullptr) log_ops(row, now);
      new_step.ops |= row_bit(row);
      continue;
    }
    std::uint32_t instances = instance_scheduler_.in_step(row);
    if (instances > InstanceScheduler::kMaxInStep) return fail_here(Status::kTooLarge);
    for (; instances > 0; --instances) {
      if (instance_scheduler_.exists(row) && !issue_message(row, now)) {
        return fail_here(Status::kMalformed);
      }
      instance_scheduler_.advance(row);
    }
  }
  instance_scheduler_.take_step();
  ++end_step_;
  has_moved_ = true;
}

// Finds the link of the row's next message, or of the message `ahead` messages after it. False if
// the program names a link that does not exist.
bool Machine::find_link(std::uint32_t row, std::uint32_t ahead, std::uint32_t& link) const {
  const std::int64_t program_link =
      instance_scheduler_.value(row, instance_scheduler_.action(row).link_ref, ahead);
  if (program_link < 0 || program_link >= links_count(*program_)) return false;
  link = endpoint_links_[program_link];
  ESPALIER_ASSERT(link < failure_detector_.links());
  return true;
}

// Whether every message ring has room for its messages of the next step: either all of them are
// issued, or none. With one message per link and direction there always is room. With more
// messages, steps wait as if the window were smaller.
bool Machine::has_room() {
  if (program_->port_model != PortModel::kMultiport) return true;
  std::uint8_t messages_on_link[2][kMaxLinks] = {};
  std::uint32_t messages_in_step[2] = {};
  for (Rows rows = instance_scheduler_.next_rows(); rows != 0; rows &= rows - 1) {
    const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
    const ActionKind::Value kind = instance_scheduler_.action(row).kind;
    if (kind == ActionKind::kCombine || kind == ActionKind::kCopy) continue;
    const bool send = kind == ActionKind::kSend;
    // More than kMaxInStep end the collective when the step is issued.
    const std::uint32_t instances =
        std::min(instance_scheduler_.in_step(row), InstanceScheduler::kMaxInStep);
    for (std::uint32_t ahead = 0; ahead < instances; ++ahead) {
      std::uint32_t link = 0;
      if (!instance_scheduler_.exists(row, ahead) || !find_link(row, ahead, link)) continue;
      const std::uint32_t messages = ++messages_on_link[send][link];
      if (messages > ring_limit_ || ++messages_in_step[send] > kMaxStepMessages) {
        fail(Status::kTooLarge, link);
      }
      if (failure_detector_.failed()) return false;
      if ((send ? sends_ : receives_)[link].size() + messages > ring_limit_) return false;
    }
  }
  return true;
}

// Whether messages without bytes are left out: those of an all-to-all with unequal counts. Both
// ends know the counts, and there no action waits for a message except for its data
// (takes_unequal_counts()).
bool Machine::leaves_out_empty() const {
#if ESPALIER_UNEQUAL_COUNTS
  return layout_.input_offsets != nullptr && program_->collective == Collective::kAllToAll;
#else
  return false;
#endif
}

// Issues and logs the row's next message. False if the program names a link or operand that does
// not exist.
bool Machine::issue_message(std::uint32_t row, std::uint64_t now) {
  const Action& action = instance_scheduler_.action(row);
  const bool send = action.kind == ActionKind::kSend;
  std::uint32_t link = 0;
  if (!find_link(row, 0, link)) return false;
  MessageRing& ring = send ? sends_[link] : receives_[link];
  if (ring.size() >= ring_limit_) return false;
  Block block;
  if (!locate(row, send ? action.a : action.into, block)) return false;
  if (block.size == 0 && leaves_out_empty()) return true;
  if (log_ != nullptr) log_issue(row, 0, now);
  ring.add({block.size, block.bytes, end_step_,
            static_cast<std::uint8_t>(instance_scheduler_.first_action() + row)});
  Step& new_step = step(end_step_);
  ESPALIER_ASSERT(new_step.number == instance_scheduler_.next_step());
  if (send) {
    ++new_step.sends;
    ++new_step.unposted;
    unposted_sends_.insert(link);
  } else {
    ++new_step.receives;
    unposted_receives_.insert(link);
    post_receives(link);
  }
  check_link(link);
  return true;
}

// Logs the row's next instance, or the instance `ahead` instances after it.
void Machine::log_issue(std::uint32_t row, std::uint32_t ahead, std::uint64_t now) {
  const Action& action = instance_scheduler_.action(row);
  ESPALIER_ASSERT(log_ != nullptr);
  const bool send = action.kind == ActionKind::kSend;
  const Operand& operand = send ? action.a : action.into;
  Event event;
  event.step = static_cast<std::uint32_t>(instance_scheduler_.next_step());
  event.segment =
      static_cast<std::uint32_t>(instance_scheduler_.value(row, operand.segment_ref, ahead));
  const std::int64_t block = instance_scheduler_.value(row, operand.block_ref, ahead);
  event.block = static_cast<std::uint32_t>(std::min<std::int64_t>(block, layout_.blocks - 1));
  event.action = static_cast<std::uint8_t>(instance_scheduler_.first_action() + row);
  event.kind = static_cast<std::uint8_t>(action.kind);
  std::uint32_t link = 0;
  if ((send || action.kind == ActionKind::kReceive) && find_link(row, ahead, link)) {
    event.link = static_cast<std::uint8_t>(instance_scheduler_.value(row, action.link_ref, ahead));
    event.port = static_cast<std::uint8_t>(link);
  }
  log_->issue(event, now);
}

// Logs the row's combines or copies of the next step. The combines or copies of earlier steps may
// not have run yet, so the logged instances may be several ahead of the row's next instance.
void Machine::log_ops(std::uint32_t row, std::uint64_t now) {
  std::uint32_t ahead = instance_scheduler_.waiting(row);
  const std::uint32_t end = ahead + instance_scheduler_.in_step(row);
  for (; ahead < end; ++ahead) {
    if (instance_scheduler_.exists(row, ahead)) log_issue(row, ahead, now);
  }
}

// Posts everything that is ready. A fabric serves posts of different links roughly in order of
// posting, so the messages of earlier steps go first.
void Machine::post_all() {
  unposted_receives_.for_each([this](std::uint32_t link) { post_receives(link); });
  for (std::uint8_t counter = first_step_; counter != end_step_ && !unposted_sends_.empty();
       ++counter) {
    if (step(counter).unposted == 0) continue;
    unposted_sends_.for_each([this, counter](std::uint32_t link) {
      const MessageRing& ring = sends_[link];
      while (ring.has_unposted() && ring.message(ring.first_unposted).step == counter &&
             post_send(link)) {
      }
    });
  }
}

// Rule 3.
void Machine::post_receives(std::uint32_t link) {
  MessageRing& ring = receives_[link];
  while (ring.has_unposted()) {
    const Message message = ring.message(ring.first_unposted);
    ESPALIER_ASSERT(message.step == end_step_ || is_in_flight(message.step));
    ESPALIER_ASSERT(step(message.step).receives > 0);
    const std::uint64_t now = log_now();
    const Status status = endpoint_->post_receive(
        link, {message.bytes, message.size, tags_.tag(ring.next_number), message.step});
    if (!check_post(status, link)) return;
    note_post(link, ring, unposted_receives_);
    if (log_ != nullptr) {
      log_->posted(static_cast<std::uint8_t>(link), ActionKind::kReceive, now);
    }
  }
}

// Rule 4, for the link's next send. True if it was posted.
bool Machine::post_send(std::uint32_t link) {
  MessageRing& ring = sends_[link];
  const Message message = ring.message(ring.first_unposted);
  ESPALIER_ASSERT(is_in_flight(message.step) && step(message.step).unposted > 0);
  ESPALIER_ASSERT(program_->actions[message.action].kind == ActionKind::kSend);
  const std::uint32_t after = program_->actions[message.action].after;
  if (after > 0 && !has_reached(message.step, after, true)) return false;
  if (check_blocks_) {
    // The blocks of one poll have one CRC together: the next poll posts the next one.
    if (has_checked_post_) {
      post_refused_ = true;
      return false;
    }
    has_checked_post_ = true;
  }
  // Read the clock before the peer can have the message.
  const std::uint64_t now = log_now();
  const std::uint32_t check = check_blocks_ ? crc32(0, message.bytes, message.size) : 0;
  const Status status = endpoint_->post_send(
      link, {message.bytes, message.size, tags_.tag(ring.next_number), check, message.step});
  if (!check_post(status, link)) return false;
  --step(message.step).unposted;
  sending_.insert(link);
  note_post(link, ring, unposted_sends_);
  if (log_ != nullptr) log_->posted(static_cast<std::uint8_t>(link), ActionKind::kSend, now);
  return true;
}

bool Machine::check_post(Status status, std::uint32_t link) {
  if (status == Status::kOk) return true;
  if (status == Status::kTryAgain) {
    post_refused_ = true;
  } else {
    fail(status, link);
  }
  return false;
}

std::uint64_t Machine::log_now() const {
  return log_ != nullptr && log_->timed() ? endpoint_->now() : 0;
}

void Machine::note_post(std::uint32_t link, MessageRing& ring, LinkSet& unposted) {
  ESPALIER_ASSERT(ring.has_unposted() && unposted.contains(link));
  ++ring.first_unposted;
  ++ring.next_number;
  if (!ring.has_unposted()) unposted.erase(link);
  failure_detector_.await(link);
  check_link(link);
  has_moved_ = true;
}

// Whether the step `after` steps before step `from` has completed all its receives and, if ops_too,
// has run its combines and copies. A step that is not in the ring is empty or retired.
bool Machine::has_reached(std::uint8_t from, std::uint32_t after, bool ops_too) const {
  ESPALIER_ASSERT(is_in_flight(from));
  const std::int64_t number = step(from).number - after;
  for (;; --from) {
    const Step& earlier = step(from);
    if (earlier.number < number) return true;
    if (earlier.number == number) return earlier.receives == 0 && (!ops_too || earlier.ops == 0);
    if (from == first_step_) return true;
  }
}

// Rule 5: runs at most one combine or copy. Returns whether it did.
bool Machine::run_op() {
  while (next_op_ != end_step_ && step(next_op_).ops == 0) ++next_op_;
  if (next_op_ == end_step_) return false;
  ESPALIER_ASSERT(is_in_flight(next_op_));
  Step& current = step(next_op_);
  const auto row = static_cast<std::uint32_t>(std::countr_zero(current.ops));
#if ESPALIER_SHORT_COLLECTIVES
  if (short_ != nullptr) {
    const Operation& operation = short_->operations[row];
    if (!can_run(program_->actions[operation.action]) || !operate(operation)) return false;
    current.ops &= current.ops - 1;
    has_moved_ = true;
    return true;
  }
#endif
  if (instance_scheduler_.exists(row)) {
    if (!can_run(instance_scheduler_.action(row))) return false;
    const std::uint64_t began = log_now();
    Operation operation;
    if (!find_operation(row, operation)) {
      fail_here(Status::kMalformed);
      return false;
    }
    if (!operate(operation)) return false;
    if (log_ != nullptr) {
      log_->ran(current.number, static_cast<std::uint8_t>(instance_scheduler_.first_action() + row),
                began, log_now());
    }
  }
  instance_scheduler_.advance(row);
  if (!instance_scheduler_.runs_again(row, current.number)) current.ops &= current.ops - 1;
  has_moved_ = true;
  return true;
}

// Rule 5 (a) and (c). The order of next_op_ and ops gives (b).
bool Machine::can_run(const Action& action) const {
  ESPALIER_ASSERT(is_in_flight(next_op_));
  if (!has_reached(next_op_, action.after, false)) return false;
  for (std::uint8_t counter = first_step_;; ++counter) {
    if (step(counter).unposted != 0) return false;
    if (counter == next_op_) return true;
  }
}

// Finds the row's next combine or copy. False if the program names an operand that does not exist.
bool Machine::find_operation(std::uint32_t row, Operation& operation) const {
  const Action& action = instance_scheduler_.action(row);
  operation.action = static_cast<std::uint8_t>(instance_scheduler_.first_action() + row);
  auto& [into, a, b, position] = operation;
  return locate(row, action.into, into) && locate(row, action.a, a) && a.size == into.size &&
         (action.kind != ActionKind::kCombine || (locate(row, action.b, b) && b.size == into.size));
}

// Runs a combine or copy. False if it must wait.
bool Machine::operate(const Operation& operation) {
  const Block& into = operation.into;
  const Block& a = operation.a;
  ESPALIER_ASSERT(operation.action < program_->actions_count);
  ESPALIER_ASSERT(operation.into.size == operation.a.size);
  if (into.size == 0) return true;
  if (is_being_sent(into)) return false;
#if ESPALIER_WITHOUT_DATA
  if (no_data_) return true;
#endif
  if (program_->actions[operation.action].kind == ActionKind::kCombine) {
    espalier::combine(op_, into.bytes, a.bytes, operation.b.bytes, into.elements);
  } else if (into.bytes != a.bytes) {
    copy_bytes(into.bytes, a.bytes, into.size);
  }
  return true;
}

// Rule 5 (d): whether an unfinished send reads the block.
bool Machine::is_being_sent(const Block& block) const {
  bool found = false;
  sending_.for_each([&](std::uint32_t link) {
    const MessageRing& ring = sends_[link];
    for (std::uint8_t counter = ring.first; counter != ring.first_unposted && !found; ++counter) {
      const Message message = ring.message(counter);
      found =
          message.bytes < block.bytes + block.size && block.bytes < message.bytes + message.size;
    }
  });
  return found;
}

// Finds the memory of an operand of the row's next instance. False if there is none.
bool Machine::locate(std::uint32_t row, const Operand& operand, Block& block) const {
  const std::int64_t segment = instance_scheduler_.value(row, operand.segment_ref);
  const std::int64_t number = instance_scheduler_.block(row, operand.block_ref);
  const std::uint32_t segment_count = operand_segment_count(operand);
  if (segment < 0 || number < 0 || number >= layout_.blocks) return false;
  const bool rotated = operand.buffer == Buffer::kScratch && layout_.rotation != 0;
  if (rotated && segment >= layout_.segments) return false;
  const auto first = static_cast<std::uint32_t>(segment);
  const std::int64_t position = rotated ? rotated_position(layout_, first) : segment;
  if (position > std::int64_t{layout_.segments} - segment_count) return false;
  const Span span =
      block_span(layout_, first, static_cast<std::uint32_t>(number), segment_count, operand.buffer);
  // start() refused messages that exceed the address space, so nothing is lost here.
  block = {nullptr, static_cast<std::size_t>(span.bytes), static_cast<std::size_t>(span.elements)};
  if (operand.buffer == Buffer::kScratch) {
    const std::int64_t slot = instance_scheduler_.value(row, operand.slot_ref);
    if (slot < (rotated ? position : 0) ||
        slot > std::int64_t{program_->scratch_blocks} - segment_count) {
      return false;
    }
    if (span.bytes > 0) block.bytes = scratch_at(first, static_cast<std::uint32_t>(slot));
    return true;
  }
  if (span.bytes == 0) return true;
  const BufferPart& part = operand.buffer == Buffer::kInput ? input_ : output_;
  if (span.offset < part.offset) return false;
  const std::uint64_t offset = span.offset - part.offset;
  if (offset + span.bytes > part.size) return false;
  block.bytes = part.bytes + offset;
  return true;
}

}  // namespace espalier
