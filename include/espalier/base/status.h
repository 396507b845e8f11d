#pragma once
// The one status of the library. Codes are append-only: their numbers stand in logs and on the
// wire.

#include <cstdint>

namespace espalier {

enum class Status : std::uint8_t {
  kOk = 0,
  kBusy = 1,         // in progress: call poll() again. Nothing has failed.
  kTryAgain = 2,     // the back end has no room now; nothing was done, call again after poll().
  kBadArgument = 3,  // a caller's argument breaks the documented contract; nothing was done.
  kTruncated = 4,  // the bytes end before the descriptor does, or do not decode; nothing was kept.
  kCorrupt =
      5,  // a checksum does not match: of a file (nothing was kept), of a block (machine ended).
  kBadVersion = 6,  // the descriptor's format version is not this library's; nothing was kept.
  kUnknownFeature =
      7,  // the descriptor requires a feature this loader does not know; nothing was kept.
  kWrongTopology = 8,  // the descriptor was made for another topology; nothing was kept.
  kWrongNode = 9,      // the descriptor is another node's; nothing was kept.
  kTooLarge =
      10,  // the descriptor or message needs more than this node's limits; nothing was done.
  kMalformed = 11,    // the descriptor breaks its own rules (a reference outside a table, ...);
                      // nothing was kept.
  kBadOperator = 12,  // operator and type do not go together, or it does not commute and must;
                      // nothing was done.
  kUnsupported =
      13,  // the algorithm cannot do this (collective, root, topology); nothing was written.
  kMismatch = 14,  // the peers do not agree on what they run (schedule, counts, operator, type,
                   // order). Ended.
  kDeadLink =
      15,         // a link did not answer its probe within the deadline; the cause names it. Ended.
  kStalled = 16,  // every awaited peer lives, yet nothing moved within twice the deadline. Ended.
  kUnforeseen = 17,  // a block arrived that the schedule does not have. Ended.
  kBackEnd = 18,     // the fabric below reported an error that no other code names. Ended.
  kNoSuchPeer = 19,  // the program needs a link that this node does not have; nothing was done.
  // Of images (firmware/image) and slots (firmware/boot); nothing of the image was used.
  kNoImage = 20,        // the bytes are no image at all: an erased slot, another file.
  kWrongBoard = 21,     // the image was built for another kind of board.
  kRolledBack = 22,     // the image's security counter is below the one this node has stored.
  kUnsigned = 23,       // the image has no signature, and this node takes signed ones only.
  kBadSignature = 24,   // the image's signature is not by the key this node trusts.
  kUnfinished = 25,     // the slot was not written to its end: power was lost, or it goes on.
  kUnconfirmed = 26,    // the slot's image was tried once and never confirmed; boot: the other one.
                        // install: confirm the running image first, the other is its fall-back.
  kNothingToBoot = 27,  // both slots were refused; the boot report has why each was.
};

// Whether it is a code that ends something. For one that came over a wire: it may be any byte.
[[nodiscard]] constexpr bool is_failure(Status status) {
  return status > Status::kTryAgain && status <= Status::kNothingToBoot;
}

// A short lower-case English name for messages, e.g. "dead link". Never null.
[[nodiscard]] const char* status_name(Status status);

}  // namespace espalier
