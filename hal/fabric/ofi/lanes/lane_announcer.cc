#include "hal/fabric/ofi/lanes/lane_announcer.h"

#include <bit>

namespace espalier::ofi {
namespace {

Opcode opcode_of(ControlKind kind) {
  switch (kind) {
    case ControlKind::kProbe: return Opcode::kProbe;
    case ControlKind::kAnswer: return Opcode::kAnswer;
    case ControlKind::kCause: break;
  }
  return Opcode::kCause;
}

}  // namespace

bool LaneAnnouncer::push_greeting(Lane& lane) {
  if (!lane.outbox.greeting) return true;
  ESPALIER_ASSERT(lane.index < state_.lanes.size());
  GreetingEntry entry = {state_.config.node, lane.index, lane.hello_received ? 1U : 0U, lane.id, 0};
  entry.code = state_.authentication.entry_code(lane.send_key, Opcode::kGreeting, &entry,
                                                kCovered<GreetingEntry>);
  if (!writer_.write_greeting(lane, entry)) return false;
  lane.outbox.greeting = false;
  return true;
}

bool LaneAnnouncer::push_controls(Lane& lane) {
  Outbox& outbox = lane.outbox;
  ESPALIER_ASSERT(lane.is_open && outbox.controls < bit(kControlKinds));
  if (outbox.hello) {
    if (!writer_.write_immediate(lane, Opcode::kHello, 0)) return false;
    outbox.hello = false;
  }
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if ((outbox.controls & bit(kind)) == 0) continue;
    if (!push_control(lane, outbox.control[kind])) return false;
    outbox.controls &= static_cast<std::uint8_t>(~bit(kind));
  }
  return true;
}

bool LaneAnnouncer::push_goodbye(Lane& lane) {
  if (!lane.outbox.goodbye) return true;
  ESPALIER_ASSERT(lane.is_open);
  if (!writer_.write_immediate(lane, Opcode::kGoodbye, 0)) return false;
  lane.outbox.goodbye = false;
  return true;
}

bool LaneAnnouncer::push_control(Lane& lane, const Control& control) {
  const Opcode opcode = opcode_of(control.kind);
  ControlEntry entry{.sequence = lane.controls_sent + 1,
                     .number = control.number,
                     .status = static_cast<std::uint32_t>(control.cause.status),
                     .detector = control.cause.detector,
                     .peer = control.cause.peer};
  entry.code =
      state_.authentication.entry_code(lane.send_key, opcode, &entry, kCovered<ControlEntry>);
  if (!writer_.write_entry(lane, {opcode, lane.remote_id, 0, 0},
                           state_.layout.control(lane.remote_lane, control.kind), &entry,
                           sizeof(entry))) {
    return false;
  }
  ++lane.controls_sent;
  return true;
}

bool LaneAnnouncer::push_answers(Lane& lane) {
  Outbox& outbox = lane.outbox;
  while (outbox.withdrawn != 0) {
    const auto position = static_cast<std::uint64_t>(std::countr_zero(outbox.withdrawn));
    const std::uint64_t number = state_.last_before(lane.out.sent, position);
    if (!writer_.write_immediate(lane, Opcode::kWithdrawn, number)) return false;
    ESPALIER_ASSERT(number < lane.out.sent);
    outbox.withdrawn &= ~bit(position);
  }
  while (outbox.rejected != 0) {
    const auto position = static_cast<std::uint64_t>(std::countr_zero(outbox.rejected));
    const std::uint64_t number = state_.last_before(lane.in.consumed, position);
    ESPALIER_ASSERT(number < lane.in.consumed);
    if (!writer_.write_immediate(lane, Opcode::kRejected, number)) return false;
    outbox.rejected &= ~bit(position);
  }
  if (outbox.credit) {
    const std::uint64_t count = lane.in.consumed;
    ESPALIER_ASSERT(lane.in.credited < count);
    if (!writer_.write_immediate(lane, Opcode::kCredit, count)) return false;
    count_credited(lane, static_cast<std::uint32_t>(count));
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
    ESPALIER_ASSERT(number < in.posted);
    const Incoming::Post& post = in.posts[position];
    ESPALIER_ASSERT(in.posts[position].size > state_.config.eager_bytes);
    ClearToSendEntry entry = {post.tag,
                              post.size,
                              post.address,
                              post.key,
                              static_cast<std::uint32_t>(in.consumed),
                              state_.long_port_number(),
                              number,
                              0};
    const Authentication& authentication = state_.authentication;
    entry.code = authentication.entry_code(lane.send_key, Opcode::kClearToSend, &entry,
                                           kCovered<ClearToSendEntry>);
    const Immediate immediate = {
        Opcode::kClearToSend, lane.remote_id, static_cast<std::uint8_t>(number),
        authentication.word_code(lane.send_key, Opcode::kClearToSend, number)};
    if (!writer_.write_entry(lane, immediate,
                             state_.layout.clear_to_send(lane.remote_lane, position), &entry,
                             sizeof(entry))) {
      return false;
    }
    lane.outbox.clear_to_send &= ~bit(position);
    count_credited(lane, entry.credit);
  }
  return true;
}

void LaneAnnouncer::count_credited(Lane& lane, std::uint32_t count) {
  Incoming& in = lane.in;
  in.credited = in.consumed - (static_cast<std::uint32_t>(in.consumed) - count);
  ESPALIER_ASSERT(in.credited <= in.consumed);
  if (in.credited != in.consumed) return;
  in.slot_consumed = false;
  lane.outbox.credit = false;
}

}  // namespace espalier::ofi
