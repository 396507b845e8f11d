// Everything that writes to a peer.

#include <algorithm>
#include <cstring>

#include "hal/ofi/libfabric_endpoint.h"

namespace espalier::ofi {
namespace {

constexpr std::uint32_t kPatience = 256;    // refusals in a row before retries slow down
constexpr std::uint64_t kSlowerNs = 1'000;  // for each refusal
constexpr std::uint64_t kSlowestRetryNs = 5'000'000;
constexpr std::uint32_t kPieces = 16;  // of a message in one call, so that calls stay short

}  // namespace

Status LibfabricEndpoint::post_send(std::uint32_t to, const SendPost& post) {
  if (to >= links() || (post.bytes == nullptr && post.size != 0)) return Status::kBadArgument;
  Link& link = links_[to];
  if (released_ || link.out.lanes == 0) return Status::kBadArgument;
  if (link.out.outstanding >= config_.window) return Status::kTooLarge;
  const std::uint32_t index = link.first + link.out.post;
  Outgoing& out = lanes_[index].out;
  out.posts[position(out.posted)] = {post.bytes,  post.size, post.tag,   post.check,
                                     post.cookie, false,     Status::kOk};
  ++out.posted;
  link.out.posted();
  push(index);
  return Status::kOk;
}

Status LibfabricEndpoint::post_control(std::uint32_t to, const Control& control) {
  const auto kind = static_cast<std::uint32_t>(control.kind);
  if (to >= links() || kind >= kControlKinds) return Status::kBadArgument;
  const std::uint32_t index = links_[to].first;
  Outbox& box = lanes_[index].box;
  box.control[kind] = control;
  box.controls |= static_cast<std::uint8_t>(bit(kind));
  push(index);
  return Status::kOk;
}

// Tells the peer all that waits and can go. Controls first: they must get through when messages
// cannot.
void LibfabricEndpoint::push(std::uint32_t index) {
  Lane& lane = lanes_[index];
  if (!connected_) return;
  const bool done = push_controls(lane) &&
                    (lane.down || released_ ||
                     (push_answers(lane) && push_grants(lane) && push_messages(lane, index)));
  if (done) {
    pending_.erase(index);
  } else {
    pending_.insert(index);
  }
}

bool LibfabricEndpoint::push_controls(Lane& lane) {
  Outbox& box = lane.box;
  if (box.hello) {
    if (!tell(lane, Word::kHello, 0, 0)) return false;
    box.hello = false;
  }
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if ((box.controls & bit(kind)) == 0) continue;
    const Control& control = box.control[kind];
    bool done = false;
    switch (control.kind) {
      case ControlKind::kProbe: done = tell(lane, Word::kProbe, 0, control.number); break;
      case ControlKind::kAnswer: done = tell(lane, Word::kAnswer, 0, control.number); break;
      case ControlKind::kCause: {
        const CauseEntry entry = {static_cast<std::uint32_t>(control.cause.status),
                                  control.cause.detector, control.cause.peer,
                                  control.cause.deaf ? 1u : 0u};
        done = tell(lane, Word::kCause, 0, digest(entry), layout_.cause(lane.remote), &entry,
                    sizeof(entry));
        break;
      }
    }
    if (!done) return false;
    box.controls &= static_cast<std::uint8_t>(~bit(kind));
  }
  return true;
}

bool LibfabricEndpoint::push_answers(Lane& lane) {
  Outbox& box = lane.box;
  while (box.withdrawn != 0) {
    const auto at = static_cast<std::uint64_t>(std::countr_zero(box.withdrawn));
    if (!tell(lane, Word::kWithdrawn, last_before(lane.out.sent, at), 0)) return false;
    box.withdrawn &= ~bit(at);
  }
  while (box.rejected != 0) {
    const auto at = static_cast<std::uint64_t>(std::countr_zero(box.rejected));
    if (!tell(lane, Word::kRejected, last_before(lane.in.consumed, at), 0)) return false;
    box.rejected &= ~bit(at);
  }
  if (box.credit) {
    if (!tell(lane, Word::kCredit, 0, static_cast<std::uint32_t>(lane.in.consumed))) return false;
    told(lane, static_cast<std::uint32_t>(lane.in.consumed));
  }
  return true;
}

bool LibfabricEndpoint::push_grants(Lane& lane) {
  const Incoming& in = lane.in;
  while (lane.box.grants != 0) {
    // The lowest number first.
    std::uint64_t number = in.consumed;
    while ((lane.box.grants & bit(position(number))) == 0) ++number;
    const Incoming::Post& post = in.posts[position(number)];
    const GrantEntry entry = {post.tag, post.size, post.address, post.key, in.consumed};
    if (!tell(lane, Word::kGrant, number, 0,
              layout_.grant(lane.remote, static_cast<std::uint32_t>(position(number))), &entry,
              sizeof(entry))) {
      return false;
    }
    lane.box.grants &= ~bit(position(number));
    told(lane, static_cast<std::uint32_t>(entry.credit));
  }
  return true;
}

// The peer has been told that messages below `count` (low 32 bits) are consumed.
void LibfabricEndpoint::told(Lane& lane, std::uint32_t count) {
  Incoming& in = lane.in;
  in.told = in.consumed - (static_cast<std::uint32_t>(in.consumed) - count);
  if (in.told != in.consumed) return;
  in.slot_consumed = false;
  lane.box.credit = false;
}

// In order: a message that cannot go yet keeps those behind it.
bool LibfabricEndpoint::push_messages(Lane& lane, std::uint32_t index) {
  Outgoing& out = lane.out;
  while (out.sent < out.posted) {
    const std::uint64_t number = out.sent;
    const std::uint64_t before = out.sent;
    const bool large = out.posts[position(number)].size > config_.eager_bytes;
    if (!(large ? send_large(lane, index, number) : send_eager(lane, index, number))) return false;
    if (out.sent == before) return true;  // waits for the peer
  }
  return true;
}

bool LibfabricEndpoint::send_eager(Lane& lane, std::uint32_t index, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t at = position(number);
  Outgoing::Post& post = out.posts[at];
  if ((out.granted & bit(at)) != 0) return withdraw(lane, index, number);
  const bool free = (out.eager & bit(at)) == 0 || out.consumed + layout_.ring() > number;
  if (!free || (out.busy & bit(at)) != 0) return true;

  const auto slot = static_cast<std::uint32_t>(at);
  std::byte* staged = staging_.get() + layout_.slot(index, slot);
  if (out.written == 0) {
    const EagerHeader header = {post.tag, static_cast<std::uint32_t>(post.size),
                                static_cast<std::uint32_t>(lane.in.consumed)};
    std::memcpy(staged, &header, sizeof(header));
    if (post.size != 0) std::memcpy(staged + sizeof(header), post.bytes, post.size);
  }
  const Immediate immediate = {Word::kEager, lane.remote, static_cast<std::uint16_t>(number),
                               post.check};
  if (!write(lane, index, immediate, staged, sizeof(EagerHeader) + post.size,
             lane.base + layout_.slot(lane.remote, slot), lane.key)) {
    return false;
  }
  EagerHeader header;
  std::memcpy(&header, staged, sizeof(header));
  told(lane, header.credit);
  out.direct &= ~bit(at);
  out.eager |= bit(at);
  out.doubtful |= bit(at);
  out.cookies[at] = post.cookie;
  post.done = true;
  ++out.sent;
  ready_.insert(index);
  return true;
}

bool LibfabricEndpoint::write(Lane& lane, std::uint32_t index, const Immediate& immediate,
                              const void* bytes, std::uint64_t size, std::uint64_t address,
                              std::uint64_t key) {
  Outgoing& out = lane.out;
  const std::uint64_t at = position(out.sent);
  const std::uint64_t data = pack(immediate);
  const std::uint64_t most = fabric_.inject_bytes();
  const auto* from = static_cast<const std::byte*>(bytes);
  if (size > most && !fabric_.copies()) {
    Context& context = contexts_[index * layout_.ring() + at];
    if (!accepted(lane, fabric_.write(lane.target, bytes, size, data, address, key, &context))) {
      return false;
    }
    out.busy |= bit(at);
    return true;
  }
  for (std::uint32_t pieces = 0; size - out.written > most; ++pieces) {
    if (pieces == kPieces ||
        !accepted(lane, fabric_.inject_piece(lane.target, from + out.written, most,
                                             address + out.written, key))) {
      return false;
    }
    out.written += most;
  }
  if (!accepted(lane, fabric_.inject(lane.target, from + out.written, size - out.written, data,
                                     address + out.written, key))) {
    return false;
  }
  out.written = 0;
  return true;
}

bool LibfabricEndpoint::send_large(Lane& lane, std::uint32_t index, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t at = position(number);
  Outgoing::Post& post = out.posts[at];
  if ((out.granted & bit(at)) == 0) {
    if (out.announced > number) return true;
    const OpenEntry entry = {post.tag, post.size};
    if (!tell(lane, Word::kOpen, number, 0, layout_.open(lane.remote), &entry, sizeof(entry))) {
      return false;
    }
    out.announced = number + 1;
    return true;
  }
  if ((out.busy & bit(at)) != 0) return true;
  GrantEntry grant;
  std::memcpy(&grant, arena_.get() + layout_.grant(index, static_cast<std::uint32_t>(at)),
              sizeof(grant));
  if (grant.tag != post.tag || grant.size != post.size) return withdraw(lane, index, number);
  const Immediate immediate = {Word::kDirect, lane.remote, static_cast<std::uint16_t>(number),
                               post.check};
  if (!write(lane, index, immediate, post.bytes, post.size, grant.address, grant.key)) return false;
  out.granted &= ~bit(at);
  out.eager &= ~bit(at);
  out.doubtful &= ~bit(at);
  out.direct |= bit(at);
  post.done = (out.busy & bit(at)) == 0;
  if (post.done) ready_.insert(index);
  ++out.sent;
  return true;
}

// The peer's receive is known not to fit message `number`: both ends complete with kMismatch.
bool LibfabricEndpoint::withdraw(Lane& lane, std::uint32_t index, std::uint64_t number) {
  Outgoing& out = lane.out;
  const std::uint64_t at = position(number);
  out.granted &= ~bit(at);
  out.eager &= ~bit(at);
  out.doubtful &= ~bit(at);
  out.posts[at].status = Status::kMismatch;
  out.posts[at].done = true;
  ++out.sent;
  ready_.insert(index);
  lane.box.withdrawn |= bit(at);
  return push_answers(lane);
}

bool LibfabricEndpoint::tell(Lane& lane, Word word, std::uint64_t number, std::uint32_t value,
                             std::uint64_t offset, const void* bytes, std::size_t size) {
  const std::uint64_t data = pack({word, lane.remote, static_cast<std::uint16_t>(number), value});
  return accepted(lane,
                  fabric_.inject(lane.target, bytes, size, data, lane.base + offset, lane.key));
}

bool LibfabricEndpoint::tell(Lane& lane, Word word, std::uint64_t number, std::uint32_t value) {
  const std::uint64_t nothing = 0;
  return tell(lane, word, number, value, layout_.sink(lane.remote), &nothing, sizeof(nothing));
}

// A broken link refuses like a full one: the machine's probes decide what is dead, and a peer's
// libfabric may only be slow to come up. Retries slow down so that they cost nothing.
bool LibfabricEndpoint::accepted(Lane& lane, Fabric::Result result) {
  if (result == Fabric::Result::kDone) {
    lane.refusals = 0;
    ++writes_;
    return true;
  }
  if (++lane.refusals > kPatience) {
    lane.retry_at = now() + std::min(kSlowestRetryNs, lane.refusals * kSlowerNs);
  }
  return false;
}

void LibfabricEndpoint::fail(Lane& lane, std::uint32_t index) {
  lane.down = true;
  ready_.insert(index);
}

}  // namespace espalier::ofi
