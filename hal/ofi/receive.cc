// Everything that comes from a peer, and receives.

#include <cstring>

#include "hal/ofi/libfabric_endpoint.h"

namespace espalier::ofi {

Status LibfabricEndpoint::prepare(const Region* regions, std::uint32_t count) {
  if (count > kMaxRegions) return Status::kTooLarge;
  bool outstanding = released_;
  for (const Link& link : links_) {
    outstanding = outstanding || link.in.outstanding != 0 || link.out.outstanding != 0;
  }
  if (outstanding) return Status::kBadArgument;
  std::array<Prepared, kMaxRegions> next;
  std::uint32_t filled = 0;
  const auto named = [&](const Region& region) {
    for (std::uint32_t i = 0; i < filled; ++i) {
      if (next[i].region.bytes == region.bytes && next[i].region.size == region.size) return true;
    }
    return false;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const Region& region = regions[i];
    if (region.bytes == nullptr || region.size == 0 || named(region)) continue;
    next[filled].region = region;
    for (Prepared& old : prepared_) {
      if (old.region.bytes != region.bytes || old.region.size != region.size) continue;
      next[filled].exposed = old.exposed;
      old = {};
    }
    ++filled;
  }
  for (Prepared& old : prepared_) fabric_.hide(old.exposed);
  prepared_ = next;
  for (std::uint32_t i = 0; i < filled; ++i) {
    Prepared& it = prepared_[i];
    if (it.exposed.region != nullptr) continue;
    if (!fabric_.expose(it.region.bytes, it.region.size, it.exposed)) {
      it.region = {};
      return Status::kBackEnd;
    }
  }
  return Status::kOk;
}

Status LibfabricEndpoint::post_receive(std::uint32_t to, const ReceivePost& post) {
  if (to >= links() || (post.bytes == nullptr && post.size != 0)) return Status::kBadArgument;
  Link& link = links_[to];
  if (released_ || link.in.lanes == 0) return Status::kBadArgument;
  if (link.in.outstanding >= config_.window) return Status::kTooLarge;
  const std::uint32_t index = link.first + link.in.post;
  Lane& lane = lanes_[index];
  Incoming& in = lane.in;
  const std::uint64_t at = position(in.posted);
  Incoming::Post& mine = in.posts[at];
  mine = {post.bytes, post.size, post.tag, 0, 0, post.cookie, 0, Status::kOk};
  if (post.size > config_.eager_bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(post.bytes);
    const Prepared* found = nullptr;
    for (const Prepared& prepared : prepared_) {
      const auto base = reinterpret_cast<std::uintptr_t>(prepared.region.bytes);
      if (prepared.exposed.region != nullptr && first >= base &&
          post.size <= prepared.region.size && first - base <= prepared.region.size - post.size) {
        found = &prepared;
        mine.address = prepared.exposed.base + (first - base);
        mine.key = prepared.exposed.key;
      }
    }
    if (found == nullptr) return Status::kBadArgument;
    const Incoming::Arrival& arrival = in.arrivals[at];
    const bool fits = arrival.what == Incoming::What::kNothing ||
                      (arrival.what == Incoming::What::kOpen && arrival.tag == post.tag &&
                       arrival.size == post.size);
    if (fits) lane.box.grants |= bit(at);
  }
  ++in.posted;
  link.in.posted();
  in.early &= ~bit(at);
  consume(lane, index);
  push(index);
  return Status::kOk;
}

void LibfabricEndpoint::written(std::uint64_t data) {
  const Immediate immediate = unpack(data);
  if (immediate.lane >= lanes_.size()) return;
  Lane& lane = lanes_[immediate.lane];
  switch (immediate.word) {
    case Word::kHello:
    case Word::kProbe:
    case Word::kAnswer:
    case Word::kCause: control_event(lane, immediate.lane, immediate); break;
    default:
      if (!released_) message_event(lane, immediate.lane, immediate);
  }
}

void LibfabricEndpoint::control_event(Lane& lane, std::uint32_t index, const Immediate& immediate) {
  Control control;
  control.number = immediate.value;
  switch (immediate.word) {
    case Word::kHello:
      lane.hello = true;
      lane.box.hello = lane.box.hello || lane.peer < config_.node;
      if (lane.box.hello) pending_.insert(index);
      return;
    case Word::kProbe: control.kind = ControlKind::kProbe; break;
    case Word::kAnswer: control.kind = ControlKind::kAnswer; break;
    default: {
      CauseEntry entry;
      std::memcpy(&entry, arena_.get() + layout_.cause(index), sizeof(entry));
      // A newer cause may be on its way into the entry; its own word follows.
      if (digest(entry) != immediate.value) return;
      control = {ControlKind::kCause,
                 0,
                 {static_cast<Status>(entry.status), entry.detector, entry.peer, entry.deaf != 0}};
    }
  }
  const auto kind = static_cast<std::uint32_t>(control.kind);
  lane.control[kind] = control;
  lane.controls |= static_cast<std::uint8_t>(bit(kind));
  ready_.insert(index);
}

void LibfabricEndpoint::message_event(Lane& lane, std::uint32_t index, const Immediate& immediate) {
  switch (immediate.word) {
    case Word::kEager:
    case Word::kDirect:
    case Word::kOpen:
    case Word::kWithdrawn: arrived(lane, index, immediate); break;
    case Word::kGrant: granted(lane, index, immediate.number); break;
    case Word::kRejected: rejected(lane, index, immediate.number); break;
    case Word::kCredit: credited(lane, index, immediate.value); break;
    default: break;
  }
}

void LibfabricEndpoint::credited(Lane& lane, std::uint32_t index, std::uint32_t count) {
  Outgoing& out = lane.out;
  const auto more = static_cast<std::int32_t>(count - static_cast<std::uint32_t>(out.consumed));
  if (more <= 0) return;
  out.consumed += static_cast<std::uint32_t>(more);
  if (out.sent < out.posted) pending_.insert(index);
}

void LibfabricEndpoint::granted(Lane& lane, std::uint32_t index, std::uint16_t low) {
  Outgoing& out = lane.out;
  const std::uint64_t number = widen(low, out.sent);
  const std::uint64_t at = position(number);
  // A newer grant may stand there by now: its credit is as good.
  GrantEntry grant;
  std::memcpy(&grant, arena_.get() + layout_.grant(index, static_cast<std::uint32_t>(at)),
              sizeof(grant));
  credited(lane, index, static_cast<std::uint32_t>(grant.credit));
  if (number < out.sent) {
    // We sent it into a slot, the peer expects it large.
    mismatched_late(lane, index, number);
    return;
  }
  out.granted |= bit(at);
  if (out.sent < out.posted) pending_.insert(index);
}

void LibfabricEndpoint::rejected(Lane& lane, std::uint32_t index, std::uint16_t low) {
  Outgoing& out = lane.out;
  const std::uint64_t number = widen(low, out.sent);
  if (number < out.sent) {
    mismatched_late(lane, index, number);
  } else if (number == out.sent && number < out.posted) {
    // It was waiting for a grant that will not come.
    Outgoing::Post& post = out.posts[position(number)];
    post.status = Status::kMismatch;
    post.done = true;
    out.granted &= ~bit(position(number));
    out.eager &= ~bit(position(number));
    ++out.sent;
    ready_.insert(index);
    if (out.sent < out.posted) pending_.insert(index);
  }
}

// The peer found that eager message `number` does not fit. The send may have been completed before.
void LibfabricEndpoint::mismatched_late(Lane& lane, std::uint32_t index, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t at = position(number);
  if (number + layout_.ring() < out.sent || (out.doubtful & bit(at)) == 0) return;
  out.doubtful &= ~bit(at);
  if (number >= out.reported) {
    out.posts[at].status = Status::kMismatch;
  } else {
    out.late |= bit(at);
  }
  ready_.insert(index);
}

void LibfabricEndpoint::arrived(Lane& lane, std::uint32_t index, const Immediate& immediate) {
  Incoming& in = lane.in;
  const std::uint64_t number = widen(immediate.number, in.consumed);
  if (number < in.consumed || number >= in.consumed + layout_.ring()) return;  // ended already
  const std::uint64_t at = position(number);
  const bool posted = number < in.posted;
  Incoming::Arrival& arrival = in.arrivals[at];
  switch (immediate.word) {
    case Word::kEager: {
      EagerHeader header;
      std::memcpy(&header, arena_.get() + layout_.slot(index, static_cast<std::uint32_t>(at)),
                  sizeof(header));
      arrival = {Incoming::What::kEager, immediate.value, header.tag, header.size};
      credited(lane, index, header.credit);
      break;
    }
    case Word::kOpen: {
      // A large receive has sent its grant; the sender compares.
      if (posted && in.posts[at].size > config_.eager_bytes) return;
      OpenEntry entry;
      std::memcpy(&entry, arena_.get() + layout_.open(index), sizeof(entry));
      arrival = {Incoming::What::kOpen, 0, entry.tag, entry.size};
      break;
    }
    case Word::kDirect: arrival = {Incoming::What::kDirect, immediate.value, 0, 0}; break;
    default: arrival = {Incoming::What::kWithdrawn, 0, 0, 0}; break;
  }
  if (posted) {
    consume(lane, index);
  } else if (arrival.what == Incoming::What::kEager || arrival.what == Incoming::What::kOpen) {
    in.early |= bit(at);
    ready_.insert(index);
  }
}

// Completes receives in order, as far as their messages are there.
void LibfabricEndpoint::consume(Lane& lane, std::uint32_t index) {
  Incoming& in = lane.in;
  while (in.consumed < in.posted && consume_next(lane, index)) {
    lane.box.grants &= ~bit(position(in.consumed));
    ++in.consumed;
    ready_.insert(index);
  }
  // A quarter of the window at a time: the sender does not run dry, and most messages need no
  // credit.
  const std::uint64_t enough = (config_.window + 3) / 4;
  if (in.slot_consumed && in.consumed - in.told >= enough) {
    lane.box.credit = true;
    pending_.insert(index);
  }
  if (lane.box.rejected != 0) pending_.insert(index);
}

bool LibfabricEndpoint::consume_next(Lane& lane, std::uint32_t index) {
  Incoming& in = lane.in;
  const std::uint64_t at = position(in.consumed);
  Incoming::Arrival& arrival = in.arrivals[at];
  Incoming::Post& post = in.posts[at];
  post.check = arrival.check;
  switch (arrival.what) {
    case Incoming::What::kNothing: return false;
    case Incoming::What::kDirect: break;
    case Incoming::What::kWithdrawn: post.status = Status::kMismatch; break;
    case Incoming::What::kOpen:
      if (arrival.tag == post.tag && arrival.size == post.size) return false;  // its grant is out
      post.status = Status::kMismatch;
      lane.box.rejected |= bit(at);
      break;
    case Incoming::What::kEager:
      in.slot_consumed = true;
      if (arrival.tag == post.tag && arrival.size == post.size) {
        const std::byte* slot = arena_.get() + layout_.slot(index, static_cast<std::uint32_t>(at));
        if (post.size != 0) std::memcpy(post.bytes, slot + sizeof(EagerHeader), post.size);
      } else {
        post.status = Status::kMismatch;
        lane.box.rejected |= bit(at);
      }
      break;
  }
  arrival = {};
  return true;
}

}  // namespace espalier::ofi
