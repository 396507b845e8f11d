// Receiving on a link. Functions with one caller are inline, which makes the code smaller.

#include <cstring>

#include "espalier/internal/hal/serial/serial_link.h"

namespace espalier {
namespace {

constexpr std::uint8_t kMaxPeerWindow = 16;  // maximum window at either end

// Whether sequence number a is newer than b.
[[nodiscard]] bool newer(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}
#if ESPALIER_SERIAL_MAC
[[nodiscard]] bool newer64(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b) > 0;
}
#endif
[[nodiscard]] bool newer16(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int16_t>(a - b) > 0;
}

}  // namespace

// Handles an intact frame of this link.
void SerialLinks::receive(std::uint32_t link, const std::uint8_t* frame, std::uint32_t size,
                          std::uint32_t now) {
#if ESPALIER_SERIAL_MAC
  if (!is_authentic(link, frame, size)) return;
#endif
  const std::uint8_t* end = frame + size - trailer_bytes();
  if (!admit(link, frame, end)) return;
  SerialLink& link_state = links_[link];
  ESPALIER_ASSERT(link_state.peer_ != 0);
  if (!take_state(link_state, frame)) return;
  link_state.out_.back_off = 0;
  // Otherwise lost records would not be sent again as long as data flows.
  if (!told_records(link_state)) link_state.sent_at_ = now;
  const std::uint8_t* at = frame + serial::kHeaderBytes;
  // After release() only controls are taken. A reply to anything else would make the peer send it
  // again at once, without end.
  if ((at != end && !released_) || (serial::get<serial::header::kFlags>(frame) & serial::kAsk) != 0)
    link_state.out_.due = true;
  while (end - at >= static_cast<std::ptrdiff_t>(serial::kRecordBytes)) {
    const std::uint32_t bytes = serial::get<serial::record::kBytes>(at);
    if (bytes > static_cast<std::uint32_t>(end - at) - serial::kRecordBytes) return;
    if (!take_record(link, at, bytes)) return;
    at += serial::kRecordBytes + bytes;
  }
  ESPALIER_ASSERT(at <= end);
  check_invariants(link);
}

// Whether the frame belongs to the current session of both ends and is newer than all earlier
// frames. A sender that does not know this end's session, or is not the known peer, must repeat
// this end's number to prove that it is alive: a late frame cannot. With a key it must also repeat
// this end's challenge, which changes with each session of the peer: then a frame that someone has
// kept cannot either.
inline bool SerialLinks::admit(std::uint32_t link, const std::uint8_t* frame,
                               [[maybe_unused]] const std::uint8_t* trailer) {
  ESPALIER_ASSERT(link < count_);
  SerialLink& link_state = links_[link];
  const std::uint32_t from = serial::get<serial::header::kSession>(frame);
  auto sequence = decltype(link_state.sequence_){serial::get<serial::header::kSequence>(frame)};
  if (from == 0 || from == link_state.former_) return false;
  bool alive = serial::get<serial::header::kPeerSession>(frame) == session_;
#if ESPALIER_SERIAL_MAC
  std::uint32_t challenge = 0;
  if (key_ != nullptr) {
    challenge = serial::get<serial::trailer::kChallenge>(trailer);
    sequence |= std::uint64_t{serial::get<serial::trailer::kSequenceHigh>(trailer)} << 32;
    alive = alive && (from == link_state.peer_ || serial::get<serial::trailer::kEcho>(trailer) ==
                                                      nonce_ + link_state.admissions_);
  }
#endif
  if (!alive) {
    if (from != link_state.peer_) {
      link_state.stranger_ = from;
#if ESPALIER_SERIAL_MAC
      link_state.stranger_echo_ = challenge;
#endif
    }
    link_state.out_.due = true;
    return false;
  }
  if (from != link_state.peer_) {
    const std::uint32_t known = link_state.peer_;
    if (known != 0) {
      const auto last = link_state.sequence_;
#if ESPALIER_SERIAL_MAC
      const std::uint32_t admissions = link_state.admissions_;
#endif
      std::memset(&link_state, 0, sizeof link_state);
#if ESPALIER_SERIAL_MAC
      link_state.admissions_ = admissions;
#endif
      link_state.sequence_ = last;
      link_state.former_ = known;
      broken(link);
    }
    link_state.peer_ = from;
    link_state.stranger_ = 0;
    link_state.heard_ = sequence - 1;
    link_state.out_.due = true;
#if ESPALIER_SERIAL_MAC
    ++link_state.admissions_;
#endif
  }
#if ESPALIER_SERIAL_MAC
  if (key_ != nullptr) {
    if (!newer64(sequence, link_state.heard_)) return false;
    link_state.echo_ = challenge;
    link_state.heard_ = sequence;
    return true;
  }
#endif
  if (!newer(static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(link_state.heard_))) {
    return false;
  }
  link_state.heard_ = sequence;
  return true;
}

// Takes the header's statements about this end's posts. False: they are impossible, and the frame
// is dropped.
inline bool SerialLinks::take_state(SerialLink& link, const std::uint8_t* frame) {
  using L = SerialLink;
  L::Outgoing& out = link.out_;
  L::Incoming& in = link.in_;
  const std::uint8_t taken = serial::get<serial::header::kGranted>(frame);
  const std::uint8_t arrived = serial::get<serial::header::kArrived>(frame);
  const std::uint8_t settled = serial::get<serial::header::kSettled>(frame);
  const std::uint8_t opened = serial::get<serial::header::kOpened>(frame);
  const std::uint32_t acked = serial::get<serial::header::kAcked>(frame);
  if (L::minus(taken, in.taken) > L::minus(in.posted, in.taken) ||
      L::minus(arrived, out.arrived) > L::minus(out.posted, out.arrived) ||
      L::minus(settled, out.settled) > L::minus(arrived, out.settled) ||
      L::minus(opened, arrived) > kMaxPeerWindow ||
      acked > (arrived == out.posted ? 0 : out.posts[arrived & L::kMask].to_go()) ||
      (arrived == out.arrived && acked < out.acked)) {
    return false;
  }
  in.taken = taken;
  if (L::ahead(taken, in.told)) in.told = taken;
  const std::uint32_t refused = serial::get<serial::header::kRejected>(frame);
  while (out.settled != settled) {
    L::Send& post = out.posts[out.settled++ & L::kMask];
    if ((refused >> L::minus(settled, out.settled) & 1) != 0) post.size = serial::kSizeRefused;
  }
  out.arrived = arrived;
  out.acked = acked;
  if (L::ahead(arrived, out.next) || (arrived == out.next && acked > out.offset)) {
    out.next = arrived;
    out.offset = acked;
  }
  if (L::ahead(opened, out.opened)) out.opened = opened;
  if (L::ahead(out.opened, out.told)) out.told = out.opened;
  for (std::uint32_t kind = 0; kind < kControlKinds; ++kind) {
    if (frame[serial::header::kControls.offset + kind] == link.controls_.version[kind]) {
      link.controls_.state &= ~(SerialLink::Controls::kWanted << kind);
    }
  }
  take_heard(link, serial::get<serial::header::kHeard>(frame),
             (serial::get<serial::header::kFlags>(frame) & serial::kGap) != 0);
  ESPALIER_ASSERT(out.settled == settled && L::minus(out.arrived, out.settled) <= window_);
  return true;
}

// Data is lost if the peer has seen the newest data frame without having all data, or reports a
// gap.
inline void SerialLinks::take_heard(SerialLink& link, std::uint32_t heard, bool gap) const {
  SerialLink::Outgoing& out = link.out_;
  if (out.flying == 0) return;
  if (!newer16(out.data_at, heard) || (gap && newer16(heard, out.back_at))) {
    go_back(link);
  } else {
    out.flying = static_cast<std::uint8_t>(
        std::min(std::uint32_t{out.flying}, static_cast<std::uint32_t>(link.sequence_) - heard));
  }
  if (may_send(out)) link.out_.due = true;
}

// Sends data again, beginning with the first byte that the peer does not have.
void SerialLinks::go_back(SerialLink& link) {
  SerialLink::Outgoing& out = link.out_;
  ESPALIER_ASSERT(SerialLink::minus(link.out_.posted, link.out_.arrived) <= kMaxPeerWindow);
  out.next = out.arrived;
  out.offset = out.acked;
  out.flying = 0;
  out.back_at = static_cast<std::uint16_t>(link.sequence_);
}

// False: the record is invalid, and the rest of the frame is skipped.
inline bool SerialLinks::take_record(std::uint32_t link, const std::uint8_t* begin,
                                     std::uint32_t size) {
  using serial::Record;
  const auto type = static_cast<Record>(serial::get<serial::record::kType>(begin));
  const std::uint8_t number = serial::get<serial::record::kNumber>(begin);
  const std::uint8_t* body = begin + serial::kRecordBytes;
  if (type == Record::kControl && size == serial::kControlBytes) {
    take_control(link, number, body);
    return true;
  }
  if (released_) return true;
  if (type == Record::kGrant && size == serial::kGrantBytes) {
    take_grant(link, number, body);
  } else if (type == Record::kOpening && size == serial::kOpeningBytes) {
    take_opening(link, number, body);
  } else if (type == Record::kData && size >= serial::kDataBytes) {
    take_data(links_[link], number, body, size);
  } else {
    return false;
  }
  return true;
}

inline void SerialLinks::take_grant(std::uint32_t link, std::uint8_t number,
                                    const std::uint8_t* grant) {
  SerialLink::Outgoing& out = links_[link].out_;
  // A short message may have been sent and received before its grant.
  if (number != out.granted || SerialLink::ahead(number, out.settled + kMaxPeerWindow - 1)) return;
  if (granted(link, serial::get<serial::post::kTag>(grant),
              serial::get<serial::post::kSize>(grant)))
    ++out.granted;
}

inline void SerialLinks::take_opening(std::uint32_t link, std::uint8_t number,
                                      const std::uint8_t* opening) {
  SerialLink& link_state = links_[link];
  SerialLink::Incoming& in = link_state.in_;
  const std::uint64_t tag = serial::get<serial::post::kTag>(opening);
  const std::uint32_t size = serial::get<serial::post::kSize>(opening);
  const std::uint32_t check = serial::get<serial::post::kCheck>(opening);
  if (number == in.opened && SerialLink::minus(number, in.arrived) < kMaxPeerWindow) {
    if (opened(link, {tag, size, check, number})) ++in.opened;
    return;
  }
  if (number != in.arrived || number == in.posted || in.agreed || size == serial::kSizeUnknown) {
    return;
  }
  SerialLink::Receive& post = in.posts[number & SerialLink::kMask];
  ESPALIER_ASSERT(SerialLink::minus(in.posted, number) <= window_);
  if (post.tag != tag || post.size != size) return end_message(link_state, true);
  post.check = check;
  in.agreed = true;
  if (size == 0) end_message(link_state, false);
}

inline void SerialLinks::take_data(SerialLink& link, std::uint8_t number, const std::uint8_t* body,
                                   std::uint32_t size) const {
  SerialLink::Incoming& in = link.in_;
  const std::uint32_t offset = serial::get<serial::data::kOffset>(body);
  if (number != in.arrived || !in.agreed || offset != in.offset) {
    in.gap = in.gap || SerialLink::ahead(number, in.arrived) ||
             (number == in.arrived && offset > in.offset);
    return;
  }
  SerialLink::Receive& post = in.posts[number & SerialLink::kMask];
  ESPALIER_ASSERT(number != in.posted && in.offset < in.posts[number & SerialLink::kMask].size);
  const std::uint32_t bytes = size - serial::kDataBytes;
  if (bytes > post.size - in.offset) return;
  std::memcpy(post.bytes + in.offset, body + serial::kDataBytes, bytes);
  in.offset += bytes;
  ESPALIER_ASSERT(in.offset <= post.size);
  in.gap = false;
  if (in.offset == post.size) end_message(link, false);
}

// Ends message `arrived`, which is complete or mismatched.
inline void SerialLinks::end_message(SerialLink& link, bool refused) const {
  SerialLink::Incoming& in = link.in_;
  ESPALIER_ASSERT(in.arrived != in.posted);
  const auto bit = static_cast<std::uint16_t>(1u << (in.arrived++ & SerialLink::kMask));
  in.refused = static_cast<std::uint16_t>(refused ? in.refused | bit : in.refused & ~bit);
  in.offset = 0;
  in.agreed = false;
  in.gap = false;
  if (!settles_) settle_next(link, refused);
}

inline void SerialLinks::take_control(std::uint32_t link, std::uint8_t number,
                                      const std::uint8_t* body) {
  const std::uint8_t kind = serial::get<serial::control::kKind>(body);
  if (kind >= kControlKinds) return;
  links_[link].out_.due = true;
  std::uint8_t& heard = links_[link].controls_.heard[kind];
  if (!SerialLink::ahead(number, heard)) return;
  Control control;
  control.kind = static_cast<ControlKind>(kind);
  control.cause.status = static_cast<Status>(serial::get<serial::control::kStatus>(body));
  control.number = serial::get<serial::control::kNumber>(body);
  control.cause.detector = serial::get<serial::control::kDetector>(body);
  control.cause.peer = serial::get<serial::control::kPeer>(body);
  if (controlled(link, control)) heard = number;
}

}  // namespace espalier
