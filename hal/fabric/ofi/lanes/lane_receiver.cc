#include "hal/fabric/ofi/lanes/lane_receiver.h"

#include <cstring>

namespace espalier::ofi {
namespace {

bool matches(const Incoming::Arrival& arrival, std::uint64_t tag, std::uint64_t size) {
  return arrival.tag == tag && arrival.size == size;
}

}  // namespace

Status LaneReceiver::post(std::uint32_t link, const ReceivePost& post) {
  if (link >= state_.links.size() || (post.bytes == nullptr && post.size != 0)) {
    return Status::kBadArgument;
  }
  LinkState& from = state_.links[link];
  if (state_.released || from.in.lanes == 0) return Status::kBadArgument;
  if (from.in.outstanding >= state_.config.window) return Status::kTooLarge;
  Lane& lane = state_.lanes[from.first_lane + from.in.post_lane];
  ESPALIER_ASSERT(lane.link == link && from.in.post_lane < from.in.lanes);
  Incoming& in = lane.in;
  const std::uint64_t position = state_.position(in.posted);
  ESPALIER_ASSERT(in.posted - in.reported < state_.layout.ring());
  Incoming::Post& mine = in.posts[position];
  mine = {post.bytes, post.size, post.tag, 0, 0, post.context, 0, Status::kOk};
  if (post.size > state_.config.eager_bytes) {
    const Status found = regions_.find(*state_.domain, lane.target.port, post.bytes, post.size,
                                       mine.address, mine.key);
    if (found != Status::kOk) return found;
    if (!state_.has_long_port()) return Status::kBackEnd;
    const Incoming::Arrival& arrival = in.arrivals[position];
    const bool may_match =
        arrival.what == Incoming::What::kNothing ||
        (arrival.what == Incoming::What::kRequestToSend && matches(arrival, post.tag, post.size));
    if (may_match) lane.outbox.clear_to_send |= bit(position);
  }
  if (post.size > state_.config.eager_bytes) ++state_.long_port.messages;
  ++in.posted;
  from.in.count_posted();
  in.unexpected &= ~bit(position);
  consume(lane);
  sender_.push(lane);
  state_.check_lane(lane);
  return Status::kOk;
}

void LaneReceiver::data_arrived(const Immediate& immediate, std::uint32_t index) {
  if (immediate.opcode == Opcode::kGreeting) {
    return connector_.greeting_arrived(static_cast<std::uint32_t>(immediate.code));
  }
  if (index >= state_.lanes.size()) return;
  Lane& lane = state_.lanes[index];
  switch (immediate.opcode) {
    case Opcode::kHello: return connector_.hello_arrived(lane, immediate.code);
    case Opcode::kGoodbye: return goodbye_arrived(lane, immediate);
    case Opcode::kProbe: return control_arrived(lane, ControlKind::kProbe, immediate.opcode);
    case Opcode::kAnswer: return control_arrived(lane, ControlKind::kAnswer, immediate.opcode);
    case Opcode::kCause: return control_arrived(lane, ControlKind::kCause, immediate.opcode);
    default: break;
  }
  if (state_.released) return;
  switch (immediate.opcode) {
    case Opcode::kEager:
    case Opcode::kPlaced:
    case Opcode::kPlacedWithHeader:
    case Opcode::kRequestToSend:
    case Opcode::kWithdrawn: return message_arrived(lane, immediate);
    case Opcode::kClearToSend: return sender_.clear_to_send_arrived(lane, immediate);
    case Opcode::kRejected: return sender_.rejection_arrived(lane, immediate);
    case Opcode::kCredit: return sender_.credit_word_arrived(lane, immediate);
    default: return;
  }
}

void LaneReceiver::control_arrived(Lane& lane, ControlKind kind, Opcode opcode) {
  ControlEntry entry;
  std::memcpy(&entry, state_.arena.get() + state_.layout.control(lane.index, kind), sizeof(entry));
  const auto index = static_cast<std::uint32_t>(kind);
  ESPALIER_ASSERT(index < kControlKinds && lane.index < state_.lanes.size());
  if (entry.code !=
      state_.authentication.entry_code(lane.receive_key, opcode, &entry, kCovered<ControlEntry>)) {
    // Without a secret, a newer control may be arriving; its own immediate data follows.
    if (state_.authentication.has_secret()) state_.reject(lane.peer, "control");
    return;
  }
  // The immediate data of an earlier control found this one.
  if (entry.sequence <= lane.controls_received[index]) return;
  lane.controls_received[index] = entry.sequence;
  Control control = {kind, entry.number, {}};
  if (kind == ControlKind::kCause) {
    control.cause = {static_cast<Status>(std::uint32_t{entry.status}), entry.detector, entry.peer};
  }
  lane.control[index] = control;
  lane.unread_controls |= static_cast<std::uint8_t>(bit(index));
  state_.to_report.insert(lane.index);
}

void LaneReceiver::goodbye_arrived(Lane& lane, const Immediate& immediate) {
  if (!has_code(immediate,
                state_.authentication.word_code(lane.receive_key, Opcode::kGoodbye, 0))) {
    return state_.reject(lane.peer, "goodbye");
  }
  lane.goodbye_received = true;
}

void LaneReceiver::message_arrived(Lane& lane, const Immediate& immediate) {
  Incoming& in = lane.in;
  const std::uint64_t number = widen(immediate.number, in.consumed);
  const bool ended = number < in.consumed || number >= in.consumed + state_.layout.ring();
  if (ended) return;
  const std::uint64_t position = state_.position(number);
  const bool posted = number < in.posted;
  if (!read_arrival(lane, immediate, number, posted)) return;
  ESPALIER_ASSERT(in.arrivals[position].what != Incoming::What::kNothing);
  const Incoming::What what = in.arrivals[position].what;
  if (posted) {
    consume(lane);
  } else if (what == Incoming::What::kEager || what == Incoming::What::kRequestToSend) {
    in.unexpected |= bit(position);
    state_.to_report.insert(lane.index);
    ESPALIER_ASSERT(in.posted <= number);
  }
}

bool LaneReceiver::read_arrival(Lane& lane, const Immediate& immediate, std::uint64_t number,
                                bool posted) {
  const std::uint64_t position = state_.position(number);
  Incoming::Arrival& arrival = lane.in.arrivals[position];
  ESPALIER_ASSERT(posted == (number < lane.in.posted));
  const auto authentic = [&](const void* bytes, std::size_t size) {
    const std::uint64_t code =
        state_.authentication.word_code(lane.receive_key, immediate.opcode, number, bytes, size);
    if (has_code(immediate, code)) return true;
    state_.reject(lane.peer, "message");
    return false;
  };
  switch (immediate.opcode) {
    case Opcode::kEager:
    case Opcode::kPlacedWithHeader: {
      MessageHeader header;
      std::memcpy(&header, state_.arena.get() + state_.layout.slot(lane.index, position),
                  sizeof(header));
      if (!authentic(&header, sizeof(header))) return false;
      const bool eager = immediate.opcode == Opcode::kEager;
      // The size was written by the peer: it must not lead beyond the slot.
      if (eager && header.size > state_.config.eager_bytes) return false;
      arrival = {eager ? Incoming::What::kEager : Incoming::What::kPlacedWithHeader, header.check,
                 header.tag, header.size, header.payload_code};
      sender_.credit_arrived(lane, header.credit);
      return true;
    }
    case Opcode::kRequestToSend: {
      // A large receive is posted, so its clear to send is on its way; the sender compares.
      if (posted && lane.in.posts[position].size > state_.config.eager_bytes) return false;
      RequestToSendEntry entry;
      std::memcpy(&entry, state_.arena.get() + state_.layout.request_to_send(lane.index),
                  sizeof(entry));
      if (!authentic(&entry, sizeof(entry))) return false;
      arrival = {Incoming::What::kRequestToSend, 0, entry.tag, entry.size, 0};
      return true;
    }
    case Opcode::kPlaced:
      if (!authentic(nullptr, 0)) return false;
      arrival = {Incoming::What::kPlaced, 0, 0, 0, 0};
      return true;
    default:
      if (!authentic(nullptr, 0)) return false;
      arrival = {Incoming::What::kWithdrawn, 0, 0, 0, 0};
      return true;
  }
}

// Completes receives in order, as far as their messages have arrived.
void LaneReceiver::consume(Lane& lane) {
  Incoming& in = lane.in;
  while (in.consumed < in.posted && consume_next(lane)) {
    const std::uint64_t position = state_.position(in.consumed);
    lane.outbox.clear_to_send &= ~bit(position);
    if (in.posts[position].size > state_.config.eager_bytes) {
      SharedFabric::end_message(state_.long_port);
    }
    if (in.posts[position].status == Status::kOk) lane.received.add(in.posts[position].size);
    ++in.consumed;
    state_.to_report.insert(lane.index);
  }
  // One credit per quarter of the window: the sender always has slots left, and most messages need
  // no credit of their own.
  const std::uint64_t enough = (state_.config.window + 3) / 4;
  if (in.slot_consumed && in.consumed - in.credited >= enough) {
    lane.outbox.credit = true;
    state_.to_push.insert(lane.index);
  }
  if (lane.outbox.rejected != 0) state_.to_push.insert(lane.index);
  state_.check_lane(lane);
}

// Ends the next receive if its message has arrived or is known not to match; false otherwise.
bool LaneReceiver::consume_next(Lane& lane) {
  Incoming& in = lane.in;
  ESPALIER_ASSERT(in.consumed < in.posted && in.reported <= in.consumed);
  const std::uint64_t position = state_.position(in.consumed);
  Incoming::Arrival& arrival = in.arrivals[position];
  Incoming::Post& post = in.posts[position];
  post.check = arrival.check;
  switch (arrival.what) {
    case Incoming::What::kNothing: return false;
    case Incoming::What::kPlaced: break;
    case Incoming::What::kPlacedWithHeader:
      in.slot_consumed = true;
      if (!intact(lane, arrival, post.bytes)) post.status = Status::kCorrupt;
      break;
    case Incoming::What::kWithdrawn: post.status = Status::kMismatch; break;
    case Incoming::What::kRequestToSend:
      if (matches(arrival, post.tag, post.size)) return false;  // The clear to send is on its way.
      post.status = Status::kMismatch;
      lane.outbox.rejected |= bit(position);
      break;
    case Incoming::What::kEager:
      in.slot_consumed = true;
      ESPALIER_ASSERT(arrival.size <= state_.config.eager_bytes);
      if (matches(arrival, post.tag, post.size)) {
        const std::byte* bytes =
            state_.arena.get() + state_.layout.slot(lane.index, position) + sizeof(MessageHeader);
        if (post.size != 0) std::memcpy(post.bytes, bytes, post.size);
        // The copy is checked: nothing changes it any more.
        if (!intact(lane, arrival, post.bytes)) post.status = Status::kCorrupt;
      } else {
        post.status = Status::kMismatch;
        lane.outbox.rejected |= bit(position);
      }
      break;
  }
  arrival = {};
  return true;
}

bool LaneReceiver::intact(const Lane& lane, const Incoming::Arrival& arrival,
                          const void* bytes) const {
  return !state_.has_payload_code(arrival.size) ||
         state_.authentication.payload_code(lane.receive_key, bytes, arrival.size) ==
             arrival.payload_code;
}

}  // namespace espalier::ofi
