#pragma once
// The frames of hal/serial, byte by byte. docs/firmware_in_c.md explains their meaning.
// Freestanding.
//
// A frame has a header, records, and a trailer. A record has a header and a body, which depends on
// its type. The trailer is the CRC-32 of everything before it (4 bytes) or, on links with a key, a
// code (namespace trailer). Numbers are little-endian.
//
// A grant is a clear to send (CTS), an opening a request to send (RTS). Messages, grants, openings
// and controls are numbered from 0 in each session. The frame holds these numbers modulo 256, which
// suffices because windows are small and only frames newer than all received ones are used.

#include <cstdint>

#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::serial {

// A field of a frame's header, of a record's header or of a record's body: its offset there and its
// size, both in bytes.
struct Field {
  std::uint32_t offset, bytes;
};
// Returns the number in the field of the header or body that begins at `begin`; 1, 2, 4 or 8 bytes.
// Always inline: a call takes more code than a load.
template <Field field>
[[nodiscard, gnu::always_inline]] inline auto get(const std::uint8_t* begin) {
  if constexpr (field.bytes == 1) {
    return begin[field.offset];
  } else if constexpr (field.bytes == 2) {
    return load_u16(begin + field.offset);
  } else if constexpr (field.bytes == 4) {
    return load_u32(begin + field.offset);
  } else {
    static_assert(field.bytes == 8);
    return load_u64(begin + field.offset);
  }
}
// Stores the number there; bits that have no room are dropped.
template <Field field>
[[gnu::always_inline]] inline void set(std::uint8_t* begin, std::uint64_t value) {
  if constexpr (field.bytes == 1) {
    begin[field.offset] = static_cast<std::uint8_t>(value);
  } else if constexpr (field.bytes == 4) {
    store_u32(begin + field.offset, static_cast<std::uint32_t>(value));
  } else {
    store_le(begin + field.offset, value, field.bytes);
  }
}

// The header.
namespace header {
inline constexpr Field kFormat = {0, 1};       // format and version: serial::kFormat
inline constexpr Field kChannel = {1, 1};      // the link, on a carrier that several links share
inline constexpr Field kFlags = {2, 1};        // kAsk, kGap
inline constexpr Field kGranted = {3, 1};      // grants taken
inline constexpr Field kSession = {4, 4};      // session of the sender
inline constexpr Field kPeerSession = {8, 4};  // session of the receiver; 0: unknown
inline constexpr Field kSequence = {12, 4};    // sequence number of the frame
inline constexpr Field kHeard = {16, 4};       // newest sequence number received
inline constexpr Field kAcked = {20, 4};       // bytes of message `arrived` received here
inline constexpr Field kArrived = {24, 1};     // messages received completely
inline constexpr Field kSettled = {25, 1};     // messages with a final status
inline constexpr Field kOpened = {26, 1};      // openings taken
inline constexpr Field kControls = {27, 3};    // newest control taken: probe, reply, cause
inline constexpr Field kRejected = {30, 2};    // bit i: message settled-1-i mismatched
}  // namespace header

// The header of each record: `bytes` is the size of its body.
namespace record {
inline constexpr Field kType = {0, 1};    // a Record
inline constexpr Field kNumber = {1, 1};  // of the message, or of the control of its kind
inline constexpr Field kBytes = {2, 2};   // size of the body
}  // namespace record

// The body of a grant (receive `number` is posted) or of an opening (send `number` is posted or
// announced).
namespace post {
inline constexpr Field kTag = {0, 8};     // of the message
inline constexpr Field kSize = {8, 4};    // of the message, bytes
inline constexpr Field kCheck = {12, 4};  // SendPost::check; openings only
}  // namespace post

// The body of data of message `number`: the offset of its bytes, which follow.
namespace data {
inline constexpr Field kOffset = {0, 4};  // in the message, bytes
}  // namespace data

// The body of control `number` of its kind. Bytes 2 and 3 are 0.
namespace control {
inline constexpr Field kKind = {0, 1};      // ControlKind
inline constexpr Field kStatus = {1, 1};    // Cause::status
inline constexpr Field kNumber = {4, 4};    // Control::number
inline constexpr Field kDetector = {8, 4};  // Cause::detector
inline constexpr Field kPeer = {12, 4};     // Cause::peer
}  // namespace control

// The trailer of a frame with a code. The numbers belong to the header, which has no room for them.
namespace trailer {
inline constexpr Field kChallenge = {0, 4};     // that a new session of the receiver must repeat
inline constexpr Field kEcho = {4, 4};          // the newest challenge of the receiver
inline constexpr Field kSequenceHigh = {8, 4};  // the upper half of the sequence number
inline constexpr Field kCode = {12, 8};         // SipHash-2-4 (docs/firmware_in_c.md)
}  // namespace trailer

// The first byte of every frame. kFormat: with a CRC. kCodedFormat: with a code. Sizes in bytes:
// kHeaderBytes, kCrcBytes, kTrailerBytes and kCodeBytes.
inline constexpr std::uint8_t kFormat = 0xe1;
inline constexpr std::uint8_t kCodedFormat = 0xe2;
inline constexpr std::uint32_t kTrailerBytes = 20;
inline constexpr std::uint32_t kCodeBytes = 8;
inline constexpr std::uint32_t kHeaderBytes = 32;
inline constexpr std::uint32_t kCrcBytes = 4;
inline constexpr std::uint32_t kRecordBytes = 4;  // the header of each record

// Flags. kAsk: reply with a frame. kGap: bytes of message `arrived` before the received ones are
// missing.
inline constexpr std::uint8_t kAsk = 1;
inline constexpr std::uint8_t kGap = 2;

// The types of records, whose bodies are described above: kGrant, kOpening, kData, kControl.
enum class Record : std::uint8_t { kGrant = 1, kOpening = 2, kData = 3, kControl = 4 };
// Sizes of records in bytes, without the header of each: kGrantBytes, kOpeningBytes, kControlBytes.
inline constexpr std::uint32_t kGrantBytes = 12;
inline constexpr std::uint32_t kOpeningBytes = 16;
inline constexpr std::uint32_t kDataBytes = 4;  // the offset, before the message bytes
inline constexpr std::uint32_t kControlBytes = 16;

// Sizes that no message has. kSizeUnknown: of an opening announced before its size was known.
// kSizeRefused: of an opening that agrees with no receive. kMaxSize: the longest message, bytes.
inline constexpr std::uint32_t kSizeUnknown = 0xffffffff;
inline constexpr std::uint32_t kSizeRefused = 0xfffffffe;
inline constexpr std::uint32_t kMaxSize = 0xfffffffd;

// Bytes of the smallest mtu: room for the header, an opening and some bytes of its message.
// kMinMtu: with a CRC. kMinCodedMtu: with a code.
inline constexpr std::uint32_t kMinMtu = 96;
inline constexpr std::uint32_t kMinCodedMtu = 112;

}  // namespace espalier::serial
