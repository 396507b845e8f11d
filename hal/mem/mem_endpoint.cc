#include "espalier/hal/mem/mem_endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "hal/mem/inbox.h"

namespace espalier::mem {
namespace {

// Bytes that one call copies for one link, so that calls stay short.
constexpr std::uint64_t kCopyBudget = 262'144;
// Looks at a link per look at what its peer has consumed.
constexpr std::uint32_t kLooksPerJudgement = 64;

// Whether count `a` is below `b`; both wrap.
constexpr bool below(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace

std::size_t inbox_bytes(const Shape& shape) { return InboxLayout(shape).bytes(); }

MemEndpoint::MemEndpoint(MemLink* links, std::uint32_t count, const MemConfig& config)
    : links_(links), count_(count), config_(config) {
  ESPALIER_ASSERT(std::has_single_bit(config.shape.ring) && config.shape.ring <= 2 * kMaxWindow);
  ESPALIER_ASSERT(1 <= config.window && config.window <= kMaxWindow);
  ESPALIER_ASSERT(config.window <= config.shape.ring);
  ESPALIER_ASSERT(config.shape.slot_bytes % kLineBytes == 0 && config.shape.pieces >= 1);
  ESPALIER_ASSERT(config.shape.piece_bytes != 0 && config.shape.piece_bytes % kLineBytes == 0);
}

Inbox MemEndpoint::inbox(const MemLink& link) const { return {link.in_, config_.shape}; }
Inbox MemEndpoint::outbox(const MemLink& link) const { return {link.out_, config_.shape}; }

Status MemEndpoint::prepare(const Region* /*regions*/, std::uint32_t count) {
  return count > kMaxRegions ? Status::kTooLarge : Status::kOk;
}

Status MemEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (released_ || link >= count_ || (post.bytes == nullptr && post.size != 0)) {
    return Status::kBadArgument;
  }
  MemLink& to = links_[link];
  Receiving& receiving = to.receiving_;
  if (receiving.posted - receiving.reported >= config_.window) return Status::kTooLarge;
  receiving.posts[receiving.posted] = {
      static_cast<std::uint8_t*>(post.bytes), post.size, post.tag, post.context, 0, false};
  ++receiving.posted;
  bool tells = grant(to);
  // A short message that is here is complete at once.
  if (post.size <= config_.shape.slot_bytes) tells = take(link) || tells;
  if (tells) notify(link);
  check_link(link);
  return Status::kOk;
}

Status MemEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  if (released_ || link >= count_ || (post.bytes == nullptr && post.size != 0)) {
    return Status::kBadArgument;
  }
  MemLink& to = links_[link];
  Sending& sending = to.sending_;
  if (sending.posted - sending.reported >= config_.window) return Status::kTooLarge;
  sending.posts[sending.posted] = {static_cast<const std::uint8_t*>(post.bytes), post.size,
                                   post.tag, post.context, post.check};
  ++sending.posted;
  if (announce(link)) notify(link);
  check_link(link);
  return Status::kOk;
}

Status MemEndpoint::post_control(std::uint32_t link, const Control& control) {
  const auto kind = static_cast<std::uint32_t>(control.kind);
  if (link >= count_ || kind >= kControlKinds) return Status::kBadArgument;
  ControlBox& box = outbox(links_[link]).control(kind);
  const std::uint32_t sequence = box.sequence.load(std::memory_order_relaxed);
  box.sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  box.number.store(control.number, std::memory_order_relaxed);
  box.status.store(static_cast<std::uint32_t>(control.cause.status), std::memory_order_relaxed);
  box.detector.store(control.cause.detector, std::memory_order_relaxed);
  box.peer.store(control.cause.peer, std::memory_order_relaxed);
  box.sequence.store(sequence + 2, std::memory_order_release);
  Word& controls = outbox(links_[link]).sender().controls;
  controls.store(controls.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  notify(link);
  return Status::kOk;
}

// A peer that still reads in place finds out afterwards, and does not complete.
void MemEndpoint::release() {
  released_ = true;
  for (std::uint32_t number = 0; number < count_; ++number) {
    outbox(links_[number]).sender().released.store(1, std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void MemEndpoint::read_in_place(std::uint32_t link) {
  ESPALIER_ASSERT(link < count_);
  inbox(links_[link]).receiver().reads.store(1, std::memory_order_release);
}

// What a wait has just moved is not looked for again.
bool MemEndpoint::poll(Completion& completion) {
  ESPALIER_ASSERT(turn_ <= count_);
  const bool has_moved = std::exchange(has_moved_, false);
  std::uint32_t number = turn_ < count_ ? turn_ : 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (!has_moved) progress(number);
    if (next(number, completion)) {
      turn_ = number + 1;
      has_moved_ = has_moved;
      return true;
    }
    if (++number == count_) number = 0;
  }
  return false;
}

bool MemEndpoint::progress() {
  bool moved = false;
  for (std::uint32_t number = 0; number < count_; ++number) {
    moved = progress(number) || moved;
  }
  has_moved_ = moved;
  return moved;
}

// Whether there is something to receive; mostly not, which takes a few loads.
bool MemEndpoint::has_arrivals(const MemLink& link) const {
  const Receiving& receiving = link.receiving_;
  return (receiving.consumed != receiving.arrived && receiving.consumed != receiving.posted) ||
         inbox(link).entry(receiving.arrived).number.load(std::memory_order_relaxed) ==
             receiving.arrived + 1;
}

// Whether there is something to send, or to learn about what was sent. The word that says what the
// peer has consumed is read if a send waits for it, and otherwise now and then, for one that did
// not match: each reading takes the word's line from the peer, which writes it.
bool MemEndpoint::has_departures(const MemLink& link, bool judges) const {
  const Sending& sending = link.sending_;
  return sending.streamed != sending.posted || sending.has_late ||
         (judges && sending.judged != sending.announced &&
          outbox(link).receiver().consumed.load(std::memory_order_relaxed) != sending.judged);
}

bool MemEndpoint::has_control() const {
  for (std::uint32_t number = 0; number < count_; ++number) {
    if (has_control(links_[number])) return true;
  }
  return false;
}

bool MemEndpoint::has_control(const MemLink& link) const {
  return inbox(link).sender().controls.load(std::memory_order_acquire) !=
         link.receiving_.looked_at_controls;
}

bool MemEndpoint::progress(std::uint32_t number) {
  if (released_) return false;
  ESPALIER_ASSERT(number < count_);
  MemLink& link = links_[number];
  bool tells = false;
  bool moved = false;
  if (has_arrivals(link)) {
    const std::uint64_t taken = link.receiving_.taken;
    moved = look(link);
    tells = grant(link);
    tells = take(number) || tells;
    moved = moved || link.receiving_.taken != taken;
  }
  const bool judges = ++link.sending_.looks % kLooksPerJudgement == 0;
  if (has_departures(link, judges)) {
    const std::uint32_t streamed = link.sending_.streamed;
    judge(link);
    moved = link.sending_.has_late || moved;
    tells = announce(number) || tells;
    tells = stream(link) || tells;
    moved = moved || link.sending_.streamed != streamed;
  }
  if (tells) notify(number);
  check_link(number);
  return moved || tells;
}

// Finds what the peer has announced.
bool MemEndpoint::look(MemLink& link) {
  Receiving& receiving = link.receiving_;
  const Inbox in = inbox(link);
  ESPALIER_ASSERT(receiving.arrived - receiving.consumed <= config_.shape.ring);
  const std::uint32_t before = receiving.arrived;
  while (receiving.arrived - receiving.consumed < config_.shape.ring &&
         in.entry(receiving.arrived).number.load(std::memory_order_acquire) ==
             receiving.arrived + 1) {
    ++receiving.arrived;
  }
  return receiving.arrived != before;
}

// Grants the messages that match their receives. Returns whether the peer waits for one.
bool MemEndpoint::grant(MemLink& link) {
  Receiving& receiving = link.receiving_;
  const Inbox in = inbox(link);
  bool is_awaited = false;
  while (below(receiving.granted, receiving.arrived) &&
         below(receiving.granted, receiving.posted)) {
    const Entry& entry = in.entry(receiving.granted);
    const MemLink::Receive& post = receiving.posts[receiving.granted];
    // One that does not match is never granted: take() ends it, and passes it.
    if (entry.tag != post.tag || entry.size != post.size) break;
    is_awaited = is_awaited || (post.size > config_.shape.slot_bytes && entry.place == 0);
    ++receiving.granted;
  }
  if (is_awaited) {
    in.receiver().granted.store(receiving.granted, std::memory_order_release);
  }
  return is_awaited;
}

// Completes receives in order, as far as their messages are here. Returns whether the peer can go
// on.
bool MemEndpoint::take(std::uint32_t number) {
  MemLink& link = links_[number];
  Receiving& receiving = link.receiving_;
  const Inbox in = inbox(link);
  const std::uint32_t drained = receiving.drained;
  const std::uint32_t consumed = receiving.consumed;
  std::uint64_t budget = kCopyBudget;
  while (below(receiving.consumed, receiving.arrived) &&
         below(receiving.consumed, receiving.posted)) {
    const Entry& entry = in.entry(receiving.consumed);
    MemLink::Receive& post = receiving.posts[receiving.consumed];
    const bool is_granted = below(receiving.consumed, receiving.granted);
    if (is_granted && !drain(number, budget)) break;
    ESPALIER_ASSERT(is_granted || receiving.granted == receiving.consumed);
    post.mismatched = !is_granted;
    post.check = entry.check;
    in.verdict(receiving.consumed).mismatched.store(is_granted ? 0 : 1, std::memory_order_relaxed);
    ++receiving.consumed;
    in.receiver().consumed.store(receiving.consumed, std::memory_order_release);
    ESPALIER_ASSERT(receiving.taken == 0);
    if (!is_granted) {
      receiving.granted = receiving.consumed;
      grant(link);
    }
  }
  return receiving.drained != drained || receiving.consumed != consumed;
}

// Copies message `consumed` to where it belongs. False: not all of it is here, or the budget is
// spent.
bool MemEndpoint::drain(std::uint32_t number, std::uint64_t& budget) {
  Receiving& receiving = links_[number].receiving_;
  const Inbox in = inbox(links_[number]);
  const std::uint32_t message = receiving.consumed;
  const MemLink::Receive& post = receiving.posts[message];
  ESPALIER_ASSERT(below(message, receiving.granted) && below(message, receiving.posted));
  ESPALIER_ASSERT(receiving.taken <= receiving.posts[message].size);
  if (post.size <= config_.shape.slot_bytes) {
    const Entry& entry = in.entry(message);
    const auto slot = static_cast<std::uint32_t>(entry.place) & (config_.shape.ring - 1);
    const std::uint8_t* from = post.size <= kInlineBytes ? entry.bytes : in.slot(slot);
    if (post.size != 0) copy_bytes(post.bytes, from, post.size);
    return true;
  }
  if (in.entry(message).place != 0) return read(number, budget);
  while (receiving.taken < post.size) {
    const std::uint32_t filled = in.sender().filled.load(std::memory_order_acquire);
    if (filled == receiving.drained || budget == 0) return false;
    const std::uint64_t size =
        std::min<std::uint64_t>(config_.shape.piece_bytes, post.size - receiving.taken);
    copy_bytes(post.bytes + receiving.taken, in.piece(receiving.drained), size);
    receiving.taken += size;
    ++receiving.drained;
    in.receiver().drained.store(receiving.drained, std::memory_order_release);
    budget -= std::min(budget, size);
    ESPALIER_ASSERT(receiving.taken <= post.size);
  }
  receiving.taken = 0;
  return true;
}

// drain() from the sender's memory.
bool MemEndpoint::read(std::uint32_t number, std::uint64_t& budget) {
  Receiving& receiving = links_[number].receiving_;
  const Inbox in = inbox(links_[number]);
  ESPALIER_ASSERT(below(receiving.consumed, receiving.granted));
  const MemLink::Receive& post = receiving.posts[receiving.consumed];
  if (in.sender().released.load(std::memory_order_acquire) != 0) return false;
  const std::uint8_t* const from =
      at_place(number, in.entry(receiving.consumed).place - 1, post.size);
  if (from == nullptr) return false;
  const std::uint64_t size = std::min(budget, post.size - receiving.taken);
  copy_bytes(post.bytes + receiving.taken, from + receiving.taken, size);
  receiving.taken += size;
  ESPALIER_ASSERT(receiving.taken <= post.size);
  budget -= size;
  if (receiving.taken < post.size) return false;
  // If any byte was read after the sender's release(), this sees the release, too.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (in.sender().released.load(std::memory_order_relaxed) != 0) return false;
  receiving.taken = 0;
  return true;
}

// Reads what the peer has consumed, and what did not match.
void MemEndpoint::judge(MemLink& link) {
  Sending& sending = link.sending_;
  const Inbox out = outbox(link);
  const std::uint32_t consumed = out.receiver().consumed.load(std::memory_order_acquire);
  while (below(sending.judged, consumed) && below(sending.judged, sending.announced)) {
    const std::uint32_t number = sending.judged++;
    ESPALIER_ASSERT(number - sending.reported < config_.window || below(number, sending.reported));
    const std::uint16_t slot = sending.slots[number & (config_.shape.ring - 1)];
    if (slot != Sending::kNoSlot) sending.free_slots[sending.free_count++] = slot;
    ESPALIER_ASSERT(slot == Sending::kNoSlot || sending.free_count <= sending.used);
    const bool mismatched = out.verdict(number).mismatched.load(std::memory_order_relaxed) != 0;
    if (!below(number, sending.reported)) {
      MemLink::Send& post = sending.posts[number];
      post.mismatched = mismatched;
      post.done = post.done || post.lent || mismatched;
    } else if (mismatched && !sending.has_late) {
      sending.has_late = true;
      sending.late_context = sending.contexts[number & (config_.shape.ring - 1)];
    }
  }
}

// Announces the next sends, with their bytes if they fit, or where those are.
bool MemEndpoint::announce(std::uint32_t link_number) {
  MemLink& link = links_[link_number];
  Sending& sending = link.sending_;
  const Inbox out = outbox(link);
  const std::uint32_t before = sending.announced;
  while (below(sending.announced, sending.posted)) {
    const std::uint32_t number = sending.announced;
    ESPALIER_ASSERT(sending.posted - number <= config_.window);
    MemLink::Send& post = sending.posts[number];
    // A slot that was used is in the caches.
    const std::uint32_t unjudged = number - sending.judged;
    if (unjudged >= config_.shape.ring / 2 || (unjudged != 0 && post.size > kInlineBytes)) {
      judge(link);
    }
    if (number - sending.judged >= config_.shape.ring) break;
    Entry& entry = out.entry(number);
    entry.check = post.check;
    entry.tag = post.tag;
    entry.size = post.size;
    entry.place = 0;
    std::uint16_t slot = Sending::kNoSlot;
    if (post.size <= kInlineBytes) {
      if (post.size != 0) std::memcpy(entry.bytes, post.bytes, post.size);
      post.done = true;
    } else if (post.size <= config_.shape.slot_bytes) {
      slot = sending.take_slot();
      ESPALIER_ASSERT(slot < config_.shape.ring);
      entry.place = slot;
      copy_bytes(out.slot(slot), post.bytes, post.size);
      post.done = true;
    } else if (std::uint64_t place = 0; out.receiver().reads.load(std::memory_order_acquire) != 0 &&
                                        find_place(link_number, post.bytes, post.size, place)) {
      post.lent = true;
      entry.place = place + 1;
    }
    sending.contexts[number & (config_.shape.ring - 1)] = post.context;
    ESPALIER_ASSERT(!(post.done && post.lent));
    sending.slots[number & (config_.shape.ring - 1)] = slot;
    entry.number.store(number + 1, std::memory_order_release);
    ++sending.announced;
    if (post.done && sending.streamed == number) ++sending.streamed;
  }
  return sending.announced != before;
}

// Copies longer messages, which were granted, into pieces; passes those that the peer has read in
// place. Returns whether there is a new piece.
bool MemEndpoint::stream(MemLink& link) {
  Sending& sending = link.sending_;
  const Inbox out = outbox(link);
  const std::uint32_t filled = sending.filled;
  std::uint64_t budget = kCopyBudget;
  for (; below(sending.streamed, sending.announced); ++sending.streamed) {
    MemLink::Send& post = sending.posts[sending.streamed];
    ESPALIER_ASSERT(sending.posted - sending.streamed <= config_.window);
    if (post.done) continue;
    if (post.lent) {
      judge(link);
      if (post.done) continue;
      break;
    }
    const std::uint32_t granted = out.receiver().granted.load(std::memory_order_acquire);
    if (!below(sending.streamed, granted)) break;
    // One that did not match was consumed before a later one was granted.
    judge(link);
    if (post.done) continue;
    const bool takes_turns = pieces_take_turns_ && post.size > config_.shape.piece_bytes;
    ESPALIER_ASSERT(sending.given <= post.size && !post.lent);
    while (sending.given < post.size) {
      const std::uint32_t drained = out.receiver().drained.load(std::memory_order_acquire);
      if (!takes_turns && sending.given == 0 && drained == sending.filled) {
        out.sender().first.store(sending.filled, std::memory_order_relaxed);
      }
      if (sending.filled - drained >= config_.shape.pieces || budget == 0) break;
      const std::uint64_t size =
          std::min<std::uint64_t>(config_.shape.piece_bytes, post.size - sending.given);
      copy_bytes(out.piece(sending.filled), post.bytes + sending.given, size);
      sending.given += size;
      ++sending.filled;
      out.sender().filled.store(sending.filled, std::memory_order_release);
      budget -= std::min(budget, size);
    }
    ESPALIER_ASSERT(sending.given <= post.size);
    if (sending.given < post.size) break;
    sending.given = 0;
    post.done = true;
  }
  return sending.filled != filled;
}

bool MemEndpoint::next(std::uint32_t number, Completion& completion) {
  ESPALIER_ASSERT(number < count_);
  MemLink& link = links_[number];
  completion.link = number;
  return (has_control(link) && next_control(link, completion)) ||
         (!released_ && next_message(link, completion));
}

bool MemEndpoint::next_control(MemLink& link, Completion& completion) const {
  const std::uint32_t controls = inbox(link).sender().controls.load(std::memory_order_acquire);
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    const ControlBox& box = inbox(link).control(kind);
    const std::uint32_t sequence = box.sequence.load(std::memory_order_acquire);
    if (sequence == link.receiving_.controls[kind] || (sequence & 1) != 0) continue;
    Control control = {
        static_cast<ControlKind>(kind), box.number.load(std::memory_order_relaxed), {}};
    if (control.kind == ControlKind::kCause) {
      control.cause = {static_cast<Status>(box.status.load(std::memory_order_relaxed)),
                       box.detector.load(std::memory_order_relaxed),
                       box.peer.load(std::memory_order_relaxed)};
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    // A newer one is being written: the next call finds it.
    if (box.sequence.load(std::memory_order_relaxed) != sequence) continue;
    link.receiving_.controls[kind] = sequence;
    completion.kind = Completion::Kind::kControl;
    completion.control = control;
    return true;
  }
  // What is written from now on counts again.
  link.receiving_.looked_at_controls = controls;
  return false;
}

bool MemEndpoint::next_message(MemLink& link, Completion& completion) const {
  Receiving& receiving = link.receiving_;
  Sending& sending = link.sending_;
  completion.status = Status::kOk;
  if (below(receiving.reported, receiving.consumed)) {
    receiving.check_invariants(config_.window, config_.shape.ring);
    const MemLink::Receive& post = receiving.posts[receiving.reported++];
    completion.kind = Completion::Kind::kReceived;
    completion.context = post.context;
    completion.check = post.check;
    if (post.mismatched) completion.status = Status::kMismatch;
    return true;
  }
  if (below(sending.reported, sending.streamed)) {
    sending.check_invariants(config_.window, config_.shape.ring);
    const MemLink::Send& post = sending.posts[sending.reported++];
    completion.kind = Completion::Kind::kSent;
    completion.context = post.context;
    if (post.mismatched) completion.status = Status::kMismatch;
    return true;
  }
  if (sending.has_late) {
    sending.has_late = false;
    completion.kind = Completion::Kind::kSent;
    completion.context = sending.late_context;
    completion.status = Status::kMismatch;
    return true;
  }
  for (; below(receiving.early, receiving.arrived); ++receiving.early) {
    if (below(receiving.early, receiving.posted)) continue;
    completion.kind = Completion::Kind::kUnexpected;
    completion.tag = inbox(link).entry(receiving.early++).tag;
    return true;
  }
  return false;
}

}  // namespace espalier::mem
