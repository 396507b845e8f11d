#pragma once
// The frames of hal/serial, byte by byte; docs/serial.md says what they mean. Freestanding.
//
//    0  1  format and version            20  4  bytes here of message `arrived`
//    1  1  channel                       24  1  arrived: messages of the other end that are whole
//    2  1  flags                         25  1  settled: those that it has the last word of
//    3  1  grants that were taken        26  1  openings that were taken
//    4  4  session of the sender         27  3  newest control taken: probe, answer, cause
//    8  4  of the receiver; 0: unknown   30  2  bit i: message settled-1-i did not agree
//   12  4  sequence number of the frame  32  records to 4 bytes before the end
//   16  4  newest sequence number heard      4  CRC-32 of all before
//
// Numbers are little-endian. Messages, grants, openings and controls are numbered from 0 in a
// session, and stand here modulo 256: windows are small, and only frames newer than all that were
// heard count.
//
// A record: 1 byte type, 1 byte number, 2 bytes size of what follows:
//   kGrant    receive `number` is posted: 8 tag, 4 size
//   kOpening  send `number` is posted or announced: 8 tag, 4 size, 4 check
//   kData     of message `number`: 4 offset, then bytes
//   kControl  control `number` of its kind: 1 kind, 1 status, 1 deaf, 1 zero, 4 number,
//             4 detector, 4 peer

#include <bit>
#include <cstdint>

#include "espalier/base/limits.h"

namespace espalier::serial {

inline constexpr std::uint8_t kFormat = 0xe1;
inline constexpr std::uint32_t kHeaderBytes = 32;
inline constexpr std::uint32_t kCrcBytes = 4;
inline constexpr std::uint32_t kRecordBytes = 4;  // of a record's own header

// Flags: answer with a frame; bytes of message `arrived` are missing before those that came.
inline constexpr std::uint8_t kAsk = 1;
inline constexpr std::uint8_t kGap = 2;

enum class Record : std::uint8_t { kGrant = 1, kOpening = 2, kData = 3, kControl = 4 };
inline constexpr std::uint32_t kGrantBytes = 12;
inline constexpr std::uint32_t kOpeningBytes = 16;
inline constexpr std::uint32_t kDataBytes = 4;  // before the bytes
inline constexpr std::uint32_t kControlBytes = 16;

// Sizes that no message has: of an opening that was announced before its size was known, and of one
// that agrees with no receive.
inline constexpr std::uint32_t kSizeUnknown = 0xffffffff;
inline constexpr std::uint32_t kSizeRefused = 0xfffffffe;
inline constexpr std::uint32_t kMaxSize = 0xfffffffd;

// Room for the header, an opening, and some bytes of its message.
inline constexpr std::uint32_t kMinMtu = 96;

}  // namespace espalier::serial
