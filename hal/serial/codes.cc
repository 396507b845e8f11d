// The codes of frames on links with a key.

#include "espalier/internal/hal/serial/serial_link.h"

#if ESPALIER_SERIAL_MAC

#include "hal/serial/siphash.h"

namespace espalier {

// The code of the frame's first `size` bytes, which `sender` writes to `receiver`. It covers the
// number among the links between the two instead of the channel, which a carrier may translate.
std::uint64_t SerialLinks::code(std::uint32_t link, bool received, const std::uint8_t* frame,
                                std::uint32_t size) const {
  ESPALIER_ASSERT(key_ != nullptr && size >= serial::kHeaderBytes);
  const SerialLinkEnds names = ends(link);
  const std::uint32_t sender = received ? names.peer : names.own;
  const std::uint32_t receiver = received ? names.own : names.peer;
  serial::SipHash hash(key_);
  hash.add(std::uint64_t{sender} | std::uint64_t{receiver} << 32);
  constexpr std::uint64_t kChannelBits = std::uint64_t{0xff} << 8 * serial::header::kChannel.offset;
  hash.add((load_u64(frame) & ~kChannelBits) | std::uint64_t{names.number}
                                                   << 8 * serial::header::kChannel.offset);
  return hash.finish(frame + 8, size - 8);
}

// Whether the frame is of the peer, which has the same key: with a key by its code, otherwise any
// frame with a checksum. Counts those that are not.
bool SerialLinks::is_authentic(std::uint32_t link, const std::uint8_t* frame, std::uint32_t size) {
  ESPALIER_ASSERT(link < count_ && size >= serial::kHeaderBytes + serial::kCrcBytes);
  const bool coded = serial::get<serial::header::kFormat>(frame) == serial::kCodedFormat;
  if (key_ == nullptr && !coded) return true;
  SerialRejections::Reason reason = SerialRejections::Reason::kWrongCode;
  if (key_ != nullptr && coded) {
    const std::uint32_t covered = size - serial::kCodeBytes;
    if (code(link, true, frame, covered) == load_u64(frame + covered)) return true;
  } else {
    // Noise may look like it once the peer was heard.
    if (links_[link].peer_ != 0) return false;
    reason = coded ? SerialRejections::Reason::kNoKeyHere : SerialRejections::Reason::kNoKeyThere;
  }
  if (rejections_.frames++ == 0) {
    rejections_.link = link;
    rejections_.reason = reason;
  }
  return false;
}

}  // namespace espalier

#endif
