#include "hal/fabric/ofi/lanes/lane_sender.h"

#include <algorithm>
#include <cstring>

namespace espalier::ofi {
namespace {

// A peer that is in the same collective posts its receive sooner, and sends its clear to send
// unasked.
constexpr std::uint64_t kRequestDelayNs = 100'000;

}  // namespace

Status LaneSender::post(std::uint32_t link, const SendPost& post) {
  if (link >= state_.links.size() || (post.bytes == nullptr && post.size != 0)) {
    return Status::kBadArgument;
  }
  LinkState& to = state_.links[link];
  if (state_.released || to.out.lanes == 0) return Status::kBadArgument;
  if (to.out.outstanding >= state_.config.window) return Status::kTooLarge;
  Lane& lane = state_.lanes[to.first_lane + to.out.post_lane];
  ESPALIER_ASSERT(lane.link == link && to.out.post_lane < to.out.lanes);
  Outgoing& out = lane.out;
  ESPALIER_ASSERT(out.posted - out.reported < state_.layout.ring());
  out.posts[state_.position(out.posted)] = {post.bytes,   post.size, post.tag,   post.check,
                                            post.context, false,     Status::kOk};
  ++out.posted;
  to.out.count_posted();
  push(lane);
  state_.check_lane(lane);
  return Status::kOk;
}

Status LaneSender::post_control(std::uint32_t link, const Control& control) {
  const auto kind = static_cast<std::uint32_t>(control.kind);
  if (link >= state_.links.size() || kind >= kControlKinds) return Status::kBadArgument;
  Lane& lane = state_.lanes[state_.links[link].first_lane];
  ESPALIER_ASSERT(lane.link == link);
  // No peer awaits a control on a link that is not connected.
  if (!lane.is_open && lane.connect_until_ns == 0) return Status::kOk;
  lane.outbox.control[kind] = control;
  lane.outbox.controls |= static_cast<std::uint8_t>(bit(kind));
  push(lane);
  return Status::kOk;
}

void LaneSender::push(Lane& lane) {
  const bool done = announcer_.push_greeting(lane) &&
                    (!lane.is_open || announcer_.push_controls(lane)) &&
                    (!lane.is_open || lane.down || state_.released ||
                     (announcer_.push_answers(lane) && announcer_.push_clear_to_send(lane) &&
                      push_messages(lane))) &&
                    (!lane.is_open || announcer_.push_goodbye(lane));
  if (done) {
    state_.to_push.erase(lane.index);
  } else {
    state_.to_push.insert(lane.index);
  }
}

// In order: a message that cannot be sent yet holds back the later ones.
bool LaneSender::push_messages(Lane& lane) {
  Outgoing& out = lane.out;
  while (out.sent < out.posted) {
    const std::uint64_t number = out.sent;
    ESPALIER_ASSERT(out.posted - number <= state_.layout.ring());
    const bool large = out.posts[state_.position(number)].size > state_.config.eager_bytes;
    if (!(large ? send_large(lane, number) : send_eager(lane, number))) return false;
    ESPALIER_ASSERT(out.sent == number || out.sent == number + 1);
    if (out.sent == number) return true;  // It waits for the peer.
  }
  return true;
}

bool LaneSender::send_eager(Lane& lane, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t position = state_.position(number);
  Outgoing::Post& post = out.posts[position];
  ESPALIER_ASSERT(number == out.sent && post.size <= state_.config.eager_bytes && !post.done);
  // The peer's receive is large: a mismatch.
  if ((out.clear_to_send & bit(position)) != 0) return withdraw(lane, number);
  const bool free =
      (out.in_slot & bit(position)) == 0 || out.consumed + state_.layout.ring() > number;
  if (!free || (out.writing & bit(position)) != 0) return true;

  std::byte* staged = state_.staging.get() + state_.layout.slot(lane.index, position);
  const MessageHeader header = header_of(lane, post);
  std::memcpy(staged, &header, sizeof(header));
  if (post.size != 0) std::memcpy(staged + sizeof(header), post.bytes, post.size);
  const std::uint64_t code = state_.authentication.word_code(lane.send_key, Opcode::kEager, number,
                                                             staged, sizeof(MessageHeader));
  const Immediate immediate = {Opcode::kEager, lane.remote_id, static_cast<std::uint8_t>(number),
                               code};
  if (!writer_.write_message(
          lane, lane.target, immediate, staged, sizeof(MessageHeader) + post.size,
          lane.remote_base + state_.layout.slot(lane.remote_lane, position), lane.remote_key)) {
    return false;
  }
  announcer_.count_credited(lane, header.credit);
  lane.sent.add(post.size);
  out.own_bytes &= ~bit(position);
  out.in_slot |= bit(position);
  out.may_mismatch |= bit(position);
  out.slot_cookies[position] = post.context;
  post.done = true;
  count_sent(lane);
  return true;
}

MessageHeader LaneSender::header_of(const Lane& lane, const Outgoing::Post& post) const {
  MessageHeader header{.tag = post.tag,
                       .size = static_cast<std::uint32_t>(post.size),
                       .credit = static_cast<std::uint32_t>(lane.in.consumed),
                       .check = post.check};
  if (state_.has_payload_code(post.size)) {
    header.payload_code = state_.authentication.payload_code(lane.send_key, post.bytes, post.size);
  }
  return header;
}

bool LaneSender::send_large(Lane& lane, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t position = state_.position(number);
  Outgoing::Post& post = out.posts[position];
  ESPALIER_ASSERT(number == out.sent && post.size > state_.config.eager_bytes && !post.done);
  if ((out.clear_to_send & bit(position)) == 0) {
    if (out.requested_below > number || !is_request_due(lane, number)) return true;
    const RequestToSendEntry entry = {post.tag, post.size};
    const std::uint64_t code = state_.authentication.word_code(
        lane.send_key, Opcode::kRequestToSend, number, &entry, sizeof(entry));
    if (!writer_.write_entry(
            lane, {Opcode::kRequestToSend, lane.remote_id, static_cast<std::uint8_t>(number), code},
            state_.layout.request_to_send(lane.remote_lane), &entry, sizeof(entry))) {
      return false;
    }
    out.requested_below = number + 1;
    return true;
  }
  if ((out.writing & bit(position)) != 0) return true;
  ClearToSendEntry clear;
  if (!read_clear_to_send(lane, position, clear) || clear.number != number) {
    out.clear_to_send &= ~bit(position);
    return true;
  }
  if (clear.tag != post.tag || clear.size != post.size) return withdraw(lane, number);
  if (!state_.find_long_target(lane, clear.port)) {
    out.clear_to_send &= ~bit(position);
    out.in_slot &= ~bit(position);
    post.status = Status::kBackEnd;
    post.done = true;
    count_sent(lane);
    return true;
  }
  const bool has_header = post.check != 0 || state_.config.authenticate_data;
  if (!has_header) return send_placed(lane, number, clear, Opcode::kPlaced, nullptr);
  MessageHeader& header = out.large_header;
  if (out.header_of != number + 1) {
    header = header_of(lane, post);
    out.header_of = number + 1;
  }
  // The peer has consumed the message that was in this slot, because it posted this receive.
  if (!writer_.write_header(lane, state_.long_target(lane),
                            state_.layout.slot(lane.remote_lane, position), &header,
                            sizeof(header))) {
    return false;
  }
  return send_placed(lane, number, clear, Opcode::kPlacedWithHeader, &header);
}

bool LaneSender::is_request_due(Lane& lane, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t time_ns = monotonic_ns();
  if (out.request_of != number + 1) {
    out.request_of = number + 1;
    out.request_at_ns = time_ns + kRequestDelayNs;
  }
  const bool is_due = time_ns >= out.request_at_ns;
  if (is_due) {
    state_.requesting.erase(lane.index);
  } else {
    state_.requesting.insert(lane.index);
  }
  return is_due;
}

void LaneSender::push_requests() {
  const std::uint64_t time_ns = monotonic_ns();
  state_.requesting.for_each([&](std::uint32_t index) {
    Lane& lane = state_.lanes[index];
    ESPALIER_ASSERT(lane.out.request_of == lane.out.sent + 1);
    if (time_ns < lane.out.request_at_ns) return;
    state_.requesting.erase(index);
    push(lane);
  });
}

std::uint64_t LaneSender::next_request_ns() const {
  std::uint64_t next = UINT64_MAX;
  state_.requesting.for_each(
      [&](std::uint32_t index) { next = std::min(next, state_.lanes[index].out.request_at_ns); });
  return next;
}

// Writes message `number` to its final place. `header` is in the peer's slot unless it is null.
bool LaneSender::send_placed(Lane& lane, std::uint64_t number, const ClearToSendEntry& clear,
                             Opcode opcode, const MessageHeader* header) {
  Outgoing& out = lane.out;
  const std::uint64_t position = state_.position(number);
  Outgoing::Post& post = out.posts[position];
  ESPALIER_ASSERT(number == out.sent && clear.size == post.size && clear.tag == post.tag);
  const std::uint64_t code = state_.authentication.word_code(
      lane.send_key, opcode, number, header, header != nullptr ? sizeof(*header) : 0);
  const Immediate immediate = {opcode, lane.remote_id, static_cast<std::uint8_t>(number), code};
  if (!writer_.write_message(lane, state_.long_target(lane), immediate, post.bytes, post.size,
                             clear.address, clear.key)) {
    return false;
  }
  out.clear_to_send &= ~bit(position);
  out.in_slot &= ~bit(position);
  if (header != nullptr) {
    out.in_slot |= bit(position);
    announcer_.count_credited(lane, header->credit);
  }
  lane.sent.add(post.size);
  out.may_mismatch &= ~bit(position);
  out.own_bytes |= bit(position);
  post.done = (out.writing & bit(position)) == 0;
  if (!post.done) ++state_.long_port.messages;
  count_sent(lane);
  return true;
}

// The peer's receive is known not to match message `number`: both ends complete with kMismatch.
bool LaneSender::withdraw(Lane& lane, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t position = state_.position(number);
  ESPALIER_ASSERT(number == out.sent && number < out.posted);
  out.clear_to_send &= ~bit(position);
  out.in_slot &= ~bit(position);
  out.may_mismatch &= ~bit(position);
  out.posts[position].status = Status::kMismatch;
  out.posts[position].done = true;
  count_sent(lane);
  lane.outbox.withdrawn |= bit(position);
  return announcer_.push_answers(lane);
}

void LaneSender::count_sent(Lane& lane) {
  ESPALIER_ASSERT(lane.out.sent < lane.out.posted);
  ESPALIER_ASSERT(lane.out.posts[state_.position(lane.out.sent)].done ||
                  (lane.out.writing & bit(state_.position(lane.out.sent))) != 0);
  ++lane.out.sent;
  state_.requesting.erase(lane.index);
  state_.to_report.insert(lane.index);
}

void LaneSender::write_completed(Lane& lane, std::uint32_t position) {
  Outgoing& out = lane.out;
  ESPALIER_ASSERT(position < state_.layout.ring());
  ESPALIER_ASSERT(state_.released || (out.writing & bit(position)) != 0);
  out.writing &= ~bit(position);
  if ((out.own_bytes & bit(position)) != 0 && !state_.released) {
    SharedFabric::end_message(state_.long_port);
    out.posts[position].done = true;
    state_.to_report.insert(lane.index);
  }
  if (out.sent < out.posted) state_.to_push.insert(lane.index);
  state_.check_lane(lane);
}

void LaneSender::write_failed(Lane& lane) {
  lane.down = true;
  state_.to_report.insert(lane.index);
}

void LaneSender::credit_arrived(Lane& lane, std::uint32_t count) {
  Outgoing& out = lane.out;
  const auto more = static_cast<std::int32_t>(count - static_cast<std::uint32_t>(out.consumed));
  if (more <= 0) return;
  out.consumed += static_cast<std::uint32_t>(more);
  if (out.sent < out.posted) state_.to_push.insert(lane.index);
}

bool LaneSender::authentic(const Lane& lane, const Immediate& immediate, std::uint64_t number) {
  const std::uint64_t code =
      state_.authentication.word_code(lane.receive_key, immediate.opcode, number);
  if (has_code(immediate, code)) return true;
  state_.reject(lane.peer, "word of flow control");
  return false;
}

void LaneSender::credit_word_arrived(Lane& lane, const Immediate& immediate) {
  const std::uint64_t count = widen(immediate.number, lane.out.sent);
  if (authentic(lane, immediate, count)) credit_arrived(lane, static_cast<std::uint32_t>(count));
}

// Reads the newest clear to send at `position`; false: it is not authentic.
bool LaneSender::read_clear_to_send(Lane& lane, std::uint64_t position, ClearToSendEntry& entry) {
  std::memcpy(&entry, state_.arena.get() + state_.layout.clear_to_send(lane.index, position),
              sizeof(entry));
  if (entry.code == state_.authentication.entry_code(lane.receive_key, Opcode::kClearToSend, &entry,
                                                     kCovered<ClearToSendEntry>)) {
    return true;
  }
  state_.reject(lane.peer, "clear to send");
  return false;
}

void LaneSender::clear_to_send_arrived(Lane& lane, const Immediate& immediate) {
  Outgoing& out = lane.out;
  const std::uint64_t number = widen(immediate.number, out.sent);
  const std::uint64_t position = state_.position(number);
  ClearToSendEntry clear;
  if (!authentic(lane, immediate, number) || !read_clear_to_send(lane, position, clear)) return;
  // The entry may already hold a newer clear to send: its credit is valid, too.
  credit_arrived(lane, clear.credit);
  if (number < out.sent) {
    // This end sent the message into a slot; the peer expects a large one.
    mismatch_after_send(lane, number);
    return;
  }
  out.clear_to_send |= bit(position);
  if (out.sent < out.posted) state_.to_push.insert(lane.index);
}

void LaneSender::rejection_arrived(Lane& lane, const Immediate& immediate) {
  Outgoing& out = lane.out;
  const std::uint64_t number = widen(immediate.number, out.sent);
  if (!authentic(lane, immediate, number)) return;
  if (number < out.sent) {
    mismatch_after_send(lane, number);
  } else if (number == out.sent && number < out.posted) {
    // It was waiting for a clear to send, which the peer will not send.
    const std::uint64_t position = state_.position(number);
    out.posts[position].status = Status::kMismatch;
    out.posts[position].done = true;
    out.clear_to_send &= ~bit(position);
    out.in_slot &= ~bit(position);
    count_sent(lane);
    if (out.sent < out.posted) state_.to_push.insert(lane.index);
  }
}

// The peer found that eager message `number` does not match. The send may already have completed.
void LaneSender::mismatch_after_send(Lane& lane, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t position = state_.position(number);
  ESPALIER_ASSERT(number < out.sent && position < state_.layout.ring());
  const bool replaced = number + state_.layout.ring() < out.sent;
  if (replaced || (out.may_mismatch & bit(position)) == 0) return;
  out.may_mismatch &= ~bit(position);
  if (number >= out.reported) {
    out.posts[position].status = Status::kMismatch;
  } else {
    out.late_mismatch |= bit(position);
  }
  state_.to_report.insert(lane.index);
}

}  // namespace espalier::ofi
