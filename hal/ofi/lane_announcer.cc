#include "hal/ofi/lane_announcer.h"

#include <bit>

namespace espalier::ofi {

bool LaneAnnouncer::push_greeting(Lane& lane) {
  if (!lane.outbox.greeting) return true;
  const GreetingEntry entry = {state_.config.node, lane.index};
  if (!writer_.write_greeting(lane, entry)) return false;
  lane.outbox.greeting = false;
  return true;
}

bool LaneAnnouncer::push_controls(Lane& lane) {
  Outbox& outbox = lane.outbox;
  if (outbox.hello) {
    if (!writer_.write_immediate(lane, Opcode::kHello, 0, 0)) return false;
    outbox.hello = false;
  }
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if ((outbox.controls & bit(kind)) == 0) continue;
    if (!push_control(lane, outbox.control[kind])) return false;
    outbox.controls &= static_cast<std::uint8_t>(~bit(kind));
  }
  return true;
}

bool LaneAnnouncer::push_control(Lane& lane, const Control& control) {
  switch (control.kind) {
    case ControlKind::kProbe:
      return writer_.write_immediate(lane, Opcode::kProbe, 0, control.number);
    case ControlKind::kAnswer:
      return writer_.write_immediate(lane, Opcode::kAnswer, 0, control.number);
    case ControlKind::kCause: break;
  }
  const CauseEntry entry = {static_cast<std::uint32_t>(control.cause.status),
                            control.cause.detector, control.cause.peer,
                            control.cause.reception_blocked ? 1u : 0u};
  return writer_.write_entry(lane, Opcode::kCause, 0, digest(entry),
                             state_.layout.cause(lane.remote_lane), &entry, sizeof(entry));
}

bool LaneAnnouncer::push_answers(Lane& lane) {
  Outbox& outbox = lane.outbox;
  while (outbox.withdrawn != 0) {
    const auto position = static_cast<std::uint64_t>(std::countr_zero(outbox.withdrawn));
    const std::uint64_t number = state_.last_before(lane.out.sent, position);
    if (!writer_.write_immediate(lane, Opcode::kWithdrawn, number, 0)) return false;
    outbox.withdrawn &= ~bit(position);
  }
  while (outbox.rejected != 0) {
    const auto position = static_cast<std::uint64_t>(std::countr_zero(outbox.rejected));
    const std::uint64_t number = state_.last_before(lane.in.consumed, position);
    if (!writer_.write_immediate(lane, Opcode::kRejected, number, 0)) return false;
    outbox.rejected &= ~bit(position);
  }
  if (outbox.credit) {
    const auto count = static_cast<std::uint32_t>(lane.in.consumed);
    if (!writer_.write_immediate(lane, Opcode::kCredit, 0, count)) return false;
    count_credited(lane, count);
  }
  return true;
}

bool LaneAnnouncer::push_clear_to_send(Lane& lane) {
  const Incoming& in = lane.in;
  while (lane.outbox.clear_to_send != 0) {
    // The lowest number first.
    std::uint64_t number = in.consumed;
    while ((lane.outbox.clear_to_send & bit(state_.position(number))) == 0) ++number;
    const std::uint64_t position = state_.position(number);
    const Incoming::Post& post = in.posts[position];
    const ClearToSendEntry entry = {post.tag, post.size, post.address, post.key, in.consumed};
    if (!writer_.write_entry(lane, Opcode::kClearToSend, number, 0,
                             state_.layout.clear_to_send(lane.remote_lane, position), &entry,
                             sizeof(entry))) {
      return false;
    }
    lane.outbox.clear_to_send &= ~bit(position);
    count_credited(lane, static_cast<std::uint32_t>(entry.credit));
  }
  return true;
}

void LaneAnnouncer::count_credited(Lane& lane, std::uint32_t count) {
  Incoming& in = lane.in;
  in.credited = in.consumed - (static_cast<std::uint32_t>(in.consumed) - count);
  if (in.credited != in.consumed) return;
  in.slot_consumed = false;
  lane.outbox.credit = false;
}

}  // namespace espalier::ofi
