#pragma once
// The frames of hal/serial, byte by byte; docs/serial.md explains their meaning. Freestanding.
//
// The header and the CRC: offset, size in bytes, content.
//
//    0  1  format and version            20  4  bytes of message `arrived` received here
//    1  1  channel                       24  1  arrived: messages received completely
//    2  1  flags                         25  1  settled: those with a final status
//    3  1  grants taken                  26  1  openings taken
//    4  4  session of the sender         27  3  newest control taken: probe, reply, cause
//    8  4  of the receiver; 0: unknown   30  2  bit i: message settled-1-i mismatched
//   12  4  sequence number of the frame  32  records, up to 4 bytes before the end
//   16  4  newest sequence number seen       4  CRC-32 of everything before it
//
// A grant is a clear to send (CTS), an opening a request to send (RTS). Numbers are little-endian.
// Messages, grants, openings and controls are numbered from 0 in each session. The frame holds
// these numbers modulo 256, which suffices because windows are small and only frames newer than all
// received ones are used.
//
// A record: 1 byte type, 1 byte number, 2 bytes size of the rest:
//   kGrant    receive `number` is posted: 8 tag, 4 size
//   kOpening  send `number` is posted or announced: 8 tag, 4 size, 4 check
//   kData     of message `number`: 4 offset, then bytes
//   kControl  control `number` of its kind: 1 kind, 1 status, 1 reception blocked, 1 zero,
//             4 number, 4 detector, 4 peer

#include <bit>
#include <cstdint>

#include "espalier/base/limits.h"

namespace espalier::serial {

// kFormat: byte 0 of every frame. Sizes in bytes: kHeaderBytes, kCrcBytes.
inline constexpr std::uint8_t kFormat = 0xe1;
inline constexpr std::uint32_t kHeaderBytes = 32;
inline constexpr std::uint32_t kCrcBytes = 4;
inline constexpr std::uint32_t kRecordBytes = 4;  // the header of each record

// Flags. kAsk: reply with a frame. kGap: bytes of message `arrived` before the received ones are
// missing.
inline constexpr std::uint8_t kAsk = 1;
inline constexpr std::uint8_t kGap = 2;

// The types of records, described above: kGrant, kOpening, kData, kControl.
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

// Room for the header, an opening and some bytes of its message.
inline constexpr std::uint32_t kMinMtu = 96;

}  // namespace espalier::serial
