// Sending on a link: a frame carries all changes since the previous frame, as far as it has room.
// Functions with one caller are inline, which makes the code smaller.

#include <cstring>

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"
#include "espalier/internal/hal/serial/serial_link.h"
#include "espalier/internal/hal/serial/serial_port.h"

namespace espalier {
namespace serial {

// A frame under construction; room for its trailer is reserved.
class Writer {
 public:
  Writer(std::uint8_t* frame, std::uint32_t room) : at_(frame), end_(frame + room) {}
  [[nodiscard]] std::uint8_t* at() const { return at_; }
  [[nodiscard]] std::uint32_t room() const { return static_cast<std::uint32_t>(end_ - at_); }
  void skip(std::uint32_t bytes) {
    ESPALIER_ASSERT(bytes <= room());
    at_ += bytes;
  }
  void put(std::uint32_t value) {
    store_u32(at_, value);
    at_ += 4;
  }
  void put(std::uint64_t value) {
    put(static_cast<std::uint32_t>(value));
    put(static_cast<std::uint32_t>(value >> 32));
  }
  // Begins a record. False: there is no room for its `size` bytes.
  [[nodiscard]] bool record(Record type, std::uint8_t number, std::uint32_t size) {
    ESPALIER_ASSERT(at_ <= end_);
    if (room() < kRecordBytes + size) return false;
    put(static_cast<std::uint32_t>(type) | std::uint32_t{number} << 8 | size << 16);
    return true;
  }

 private:
  std::uint8_t* at_;
  std::uint8_t* end_;
};

}  // namespace serial

namespace {

using serial::Record;

// The smallest piece of a message that is put into the remaining room of a frame.
constexpr std::uint32_t kMinPiece = 24;
// An interval of at least 2^kLongIntervalBits ticks of 1024 ns (268 ms) is not doubled
// (docs/firmware_in_c.md, "Loss").
constexpr unsigned kLongIntervalBits = 18;

[[nodiscard]] bool put_opening(serial::Writer& frame, std::uint8_t number, std::uint64_t tag,
                               std::uint32_t size, std::uint32_t check) {
  if (!frame.record(Record::kOpening, number, serial::kOpeningBytes)) return false;
  frame.put(tag);
  frame.put(size);
  frame.put(check);
  return true;
}

}  // namespace

// Whether grants, openings or controls were sent and not yet taken.
bool SerialLinks::told_records(const SerialLink& link) const {
  if (link.controls_.wanted(true)) return true;
  return !released_ && (link.in_.told != link.in_.taken || link.out_.told != link.out_.opened);
}

// Whether anything was sent to which the peer has not replied. Frames that repeat data count even
// if the data was acknowledged in the meantime: while they are in flight, no others may be sent.
bool SerialLinks::awaits(const SerialLink& link) const {
  if (link.peer_ == 0) return link.out_.ask;
  const SerialLink::Outgoing& out = link.out_;
  return told_records(link) ||
         (!released_ && (out.next != out.settled || out.offset != out.acked || out.flying != 0));
}

bool SerialLinks::may_send(const SerialLink::Outgoing& out) const {
  ESPALIER_ASSERT(out.flying <= port_->frames_in_flight_);
  return out.next != out.posted && SerialLink::ahead(out.granted, out.next) &&
         out.flying < port_->frames_in_flight_;
}

// Whether there is something that was not yet sent.
inline bool SerialLinks::has_more(const SerialLink& link) const {
  const SerialLink::Outgoing& out = link.out_;
  return link.stranger_ != 0 || link.controls_.wanted(false) ||
         (!released_ && (link.in_.told != link.in_.posted ||
                         SerialLink::ahead(out.announced, out.told) || may_send(out)));
}

// Whether a frame must be sent now.
bool SerialLinks::wants(SerialLink& link, std::uint32_t now, std::uint32_t interval) const {
  const std::uint32_t after = interval << link.out_.back_off;
  ESPALIER_ASSERT(interval > 0 && link.out_.back_off <= kLongIntervalBits);
  if (awaits(link) && now - link.sent_at_ >= after) {
    SerialLink::Outgoing& out = link.out_;
    link.in_.told = link.in_.taken;
    link.controls_.state &= SerialLink::Controls::kTold - 1;
    out.told = out.opened;
    go_back(link);
    link.out_.ask = true;
    link.out_.due = true;
    link.sent_at_ = now;
    if (after >> kLongIntervalBits == 0) ++link.out_.back_off;
  }
  return link.out_.due;
}

// Writes the link's next frame; returns its size in bytes.
std::uint32_t SerialLinks::build(std::uint32_t link, std::uint8_t* frame, std::uint32_t now) {
  ESPALIER_ASSERT(link < count_);
  SerialLink& link_state = links_[link];
  const bool awaited = awaits(link_state);
  ++link_state.sequence_;
  std::memset(frame, 0, serial::kHeaderBytes);
  serial::Writer writer(frame, port_->carrier_->mtu() - trailer_bytes());
#if ESPALIER_SERIAL_MAC
  const std::uint32_t echo =
      link_state.stranger_ != 0 ? link_state.stranger_echo_ : link_state.echo_;
#endif
  std::uint8_t flags = link_state.out_.ask ? serial::kAsk : 0;
  if (link_state.in_.gap) flags |= serial::kGap;
  serial::set<serial::header::kFormat>(frame, serial::kFormat);
  serial::set<serial::header::kChannel>(frame, first_channel_ + link);
  serial::set<serial::header::kFlags>(frame, flags);
  serial::set<serial::header::kSession>(frame, session_);
  serial::set<serial::header::kSequence>(frame, link_state.sequence_);
  writer.skip(serial::kHeaderBytes);
  if (link_state.stranger_ != 0) {
    serial::set<serial::header::kPeerSession>(frame, link_state.stranger_);
    link_state.stranger_ = 0;
    link_state.out_.due = link_state.peer_ != 0 || has_more(link_state);
  } else if (link_state.peer_ == 0) {
    link_state.out_.ask = true;  // until the peer replies
    link_state.out_.due = false;
  } else {
    link_state.out_.ask = false;
    put_state(link_state, frame);
    put_controls(link_state, writer);
    if (!released_) {
      put_grants(link_state, writer);
      put_openings(link_state, writer);
      put_data(link_state, writer);
    }
    link_state.out_.due = has_more(link_state);
  }
  if (!awaited) link_state.sent_at_ = now;
  const auto size = static_cast<std::uint32_t>(writer.at() - frame);
  ESPALIER_ASSERT(size <= port_->carrier_->mtu() - trailer_bytes());
  check_invariants(link);
#if ESPALIER_SERIAL_MAC
  if (key_ != nullptr) {
    serial::set<serial::header::kFormat>(frame, serial::kCodedFormat);
    writer.put(nonce_ + link_state.admissions_);
    writer.put(echo);
    writer.put(static_cast<std::uint32_t>(link_state.sequence_ >> 32));
    const std::uint32_t covered = size + serial::trailer::kCode.offset;
    writer.put(code(link, false, frame, covered));
    return size + serial::kTrailerBytes;
  }
#endif
  writer.put(crc32(0, frame, size));
  return size + serial::kCrcBytes;
}

inline void SerialLinks::put_state(const SerialLink& link, std::uint8_t* frame) const {
  const SerialLink::Incoming& in = link.in_;
  serial::set<serial::header::kGranted>(frame, link.out_.granted);
  serial::set<serial::header::kPeerSession>(frame, link.peer_);
  serial::set<serial::header::kHeard>(frame, link.heard_);
  serial::set<serial::header::kAcked>(frame, in.offset);
  serial::set<serial::header::kArrived>(frame, in.arrived);
  serial::set<serial::header::kSettled>(frame, in.settled);
  serial::set<serial::header::kOpened>(frame, in.opened);
  static_assert(serial::header::kControls.bytes == kControlKinds);
  std::memcpy(frame + serial::header::kControls.offset, link.controls_.heard, kControlKinds);
  serial::set<serial::header::kRejected>(frame, in.rejected);
}

inline void SerialLinks::put_controls(SerialLink& link, serial::Writer& frame) const {
  using C = SerialLink::Controls;
  C& controls = link.controls_;
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if ((controls.state >> kind & (C::kWanted | C::kTold)) != C::kWanted) continue;
    if (!frame.record(Record::kControl, controls.version[kind], serial::kControlBytes)) return;
    frame.put(kind | static_cast<std::uint32_t>(controls.status) << 8);
    frame.put(kind < 2 ? controls.number[kind] : 0);
    frame.put(controls.detector);
    frame.put(controls.peer);
    controls.state |= (C::kTold | C::kGone) << kind;
  }
}

inline void SerialLinks::put_grants(SerialLink& link, serial::Writer& frame) const {
  SerialLink::Incoming& in = link.in_;
  while (in.told != in.posted && frame.record(Record::kGrant, in.told, serial::kGrantBytes)) {
    const SerialLink::Receive& post = in.posts[in.told & SerialLink::kMask];
    ESPALIER_ASSERT(post.size <= serial::kMaxSize);
    frame.put(post.tag);
    frame.put(post.size);
    ++in.told;
  }
}

// The opening of a granted message is sent with its bytes.
inline void SerialLinks::put_openings(SerialLink& link, serial::Writer& frame) const {
  SerialLink::Outgoing& out = link.out_;
  if (SerialLink::ahead(out.granted, out.opened)) out.opened = out.granted;
  if (SerialLink::ahead(out.opened, out.told)) out.told = out.opened;
  while (SerialLink::ahead(out.announced, out.told)) {
    const SerialLink::Send& post = out.posts[out.told & SerialLink::kMask];
    if (!put_opening(frame, out.told, post.tag, post.size, post.check)) return;
    ++out.told;
  }
}

inline void SerialLinks::put_data(SerialLink& link, serial::Writer& frame) const {
  SerialLink::Outgoing& out = link.out_;
  bool any = false;
  while (may_send(out)) {
    const SerialLink::Send& post = out.posts[out.next & SerialLink::kMask];
    const std::uint32_t size = post.to_go();
    constexpr std::uint32_t kBefore = serial::kRecordBytes + serial::kDataBytes;
    ESPALIER_ASSERT(out.offset <= size);
    const std::uint32_t opening =
        out.offset == 0 ? serial::kRecordBytes + serial::kOpeningBytes : 0;
    if (frame.room() < opening + kBefore + std::min(size - out.offset, kMinPiece)) break;
    if (opening != 0) {
      const bool has_room = put_opening(frame, out.next, post.tag, post.size, post.check);
      ESPALIER_ASSERT(has_room);
    }
    const std::uint32_t piece = std::min(size - out.offset, frame.room() - kBefore);
    if (piece != 0) {
      const bool has_room = frame.record(Record::kData, out.next, serial::kDataBytes + piece);
      ESPALIER_ASSERT(has_room);
      frame.put(out.offset);
      std::memcpy(frame.at(), post.bytes + out.offset, piece);
      frame.skip(piece);
      out.offset += piece;
    }
    if (out.offset == size) {
      ++out.next;
      out.offset = 0;
    }
    any = true;
  }
  if (!any) return;
  ESPALIER_ASSERT(out.flying < port_->frames_in_flight_);
  ++out.flying;
  out.data_at = static_cast<std::uint16_t>(link.sequence_);
}

}  // namespace espalier
