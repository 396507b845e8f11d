#include "hal/ofi/lane_receiver.h"

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
  Incoming& in = lane.in;
  const std::uint64_t position = state_.position(in.posted);
  Incoming::Post& mine = in.posts[position];
  mine = {post.bytes, post.size, post.tag, 0, 0, post.context, 0, Status::kOk};
  if (post.size > state_.config.eager_bytes) {
    if (!regions_.find(post.bytes, post.size, mine.address, mine.key)) return Status::kBadArgument;
    const Incoming::Arrival& arrival = in.arrivals[position];
    const bool may_match =
        arrival.what == Incoming::What::kNothing ||
        (arrival.what == Incoming::What::kRequestToSend && matches(arrival, post.tag, post.size));
    if (may_match) lane.outbox.clear_to_send |= bit(position);
  }
  ++in.posted;
  from.in.count_posted();
  in.unexpected &= ~bit(position);
  consume(lane);
  sender_.push(lane);
  return Status::kOk;
}

void LaneReceiver::data_arrived(std::uint64_t data) {
  const Immediate immediate = unpack(data);
  if (immediate.opcode == Opcode::kGreeting) return connector_.greeting_arrived(immediate.value);
  if (immediate.lane >= state_.lanes.size()) return;
  Lane& lane = state_.lanes[immediate.lane];
  switch (immediate.opcode) {
    case Opcode::kHello: return connector_.hello_arrived(lane);
    case Opcode::kProbe:
    case Opcode::kAnswer:
    case Opcode::kCause: return control_arrived(lane, immediate);
    default: break;
  }
  if (state_.released) return;
  switch (immediate.opcode) {
    case Opcode::kEager:
    case Opcode::kPlaced:
    case Opcode::kRequestToSend:
    case Opcode::kWithdrawn: return message_arrived(lane, immediate);
    case Opcode::kClearToSend: return sender_.clear_to_send_arrived(lane, immediate.number);
    case Opcode::kRejected: return sender_.rejection_arrived(lane, immediate.number);
    case Opcode::kCredit: return sender_.credit_arrived(lane, immediate.value);
    default: return;
  }
}

void LaneReceiver::control_arrived(Lane& lane, const Immediate& immediate) {
  Control control;
  control.number = immediate.value;
  if (immediate.opcode == Opcode::kProbe) {
    control.kind = ControlKind::kProbe;
  } else if (immediate.opcode == Opcode::kAnswer) {
    control.kind = ControlKind::kAnswer;
  } else {
    CauseEntry entry;
    std::memcpy(&entry, state_.arena.get() + state_.layout.cause(lane.index), sizeof(entry));
    // A newer cause may be arriving in the entry; its own immediate data follows.
    if (digest(entry) != immediate.value) return;
    control = {ControlKind::kCause,
               0,
               {static_cast<Status>(entry.status), entry.detector, entry.peer,
                entry.reception_blocked != 0}};
  }
  const auto kind = static_cast<std::uint32_t>(control.kind);
  lane.control[kind] = control;
  lane.unread_controls |= static_cast<std::uint8_t>(bit(kind));
  state_.to_report.insert(lane.index);
}

void LaneReceiver::message_arrived(Lane& lane, const Immediate& immediate) {
  Incoming& in = lane.in;
  const std::uint64_t number = widen(immediate.number, in.consumed);
  const bool ended = number < in.consumed || number >= in.consumed + state_.layout.ring();
  if (ended) return;
  const std::uint64_t position = state_.position(number);
  const bool posted = number < in.posted;
  if (!read_arrival(lane, immediate, position, posted)) return;
  const Incoming::What what = in.arrivals[position].what;
  if (posted) {
    consume(lane);
  } else if (what == Incoming::What::kEager || what == Incoming::What::kRequestToSend) {
    in.unexpected |= bit(position);
    state_.to_report.insert(lane.index);
  }
}

bool LaneReceiver::read_arrival(Lane& lane, const Immediate& immediate, std::uint64_t position,
                                bool posted) {
  Incoming::Arrival& arrival = lane.in.arrivals[position];
  switch (immediate.opcode) {
    case Opcode::kEager: {
      EagerHeader header;
      std::memcpy(&header, state_.arena.get() + state_.layout.slot(lane.index, position),
                  sizeof(header));
      arrival = {Incoming::What::kEager, immediate.value, header.tag, header.size};
      sender_.credit_arrived(lane, header.credit);
      return true;
    }
    case Opcode::kRequestToSend: {
      // A large receive is posted, so its clear to send is on its way; the sender compares.
      if (posted && lane.in.posts[position].size > state_.config.eager_bytes) return false;
      RequestToSendEntry entry;
      std::memcpy(&entry, state_.arena.get() + state_.layout.request_to_send(lane.index),
                  sizeof(entry));
      arrival = {Incoming::What::kRequestToSend, 0, entry.tag, entry.size};
      return true;
    }
    case Opcode::kPlaced: arrival = {Incoming::What::kPlaced, immediate.value, 0, 0}; return true;
    default: arrival = {Incoming::What::kWithdrawn, 0, 0, 0}; return true;
  }
}

// Completes receives in order, as far as their messages have arrived.
void LaneReceiver::consume(Lane& lane) {
  Incoming& in = lane.in;
  while (in.consumed < in.posted && consume_next(lane)) {
    lane.outbox.clear_to_send &= ~bit(state_.position(in.consumed));
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
}

// Ends the next receive if its message has arrived or is known not to match; false otherwise.
bool LaneReceiver::consume_next(Lane& lane) {
  Incoming& in = lane.in;
  const std::uint64_t position = state_.position(in.consumed);
  Incoming::Arrival& arrival = in.arrivals[position];
  Incoming::Post& post = in.posts[position];
  post.check = arrival.check;
  switch (arrival.what) {
    case Incoming::What::kNothing: return false;
    case Incoming::What::kPlaced: break;
    case Incoming::What::kWithdrawn: post.status = Status::kMismatch; break;
    case Incoming::What::kRequestToSend:
      if (matches(arrival, post.tag, post.size)) return false;  // The clear to send is on its way.
      post.status = Status::kMismatch;
      lane.outbox.rejected |= bit(position);
      break;
    case Incoming::What::kEager:
      in.slot_consumed = true;
      if (matches(arrival, post.tag, post.size)) {
        const std::byte* slot = state_.arena.get() + state_.layout.slot(lane.index, position);
        if (post.size != 0) std::memcpy(post.bytes, slot + sizeof(EagerHeader), post.size);
      } else {
        post.status = Status::kMismatch;
        lane.outbox.rejected |= bit(position);
      }
      break;
  }
  arrival = {};
  return true;
}

}  // namespace espalier::ofi
