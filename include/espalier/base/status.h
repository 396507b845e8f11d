#pragma once
// The library's status codes. Append-only: their numbers appear in logs and on the wire.

#if __cplusplus <= 201703L
#error "Espalier's C++ headers need C++20: compile with -std=c++20 or a later standard"
#endif

#include <cstdint>

namespace espalier {

// "Ended": the running collective is over; every later poll() and start() returns the status again.
enum class Status : std::uint8_t {
  kOk = 0,        // The call did its work; the collective is complete; or nothing is in progress.
  kBusy = 1,      // In progress: call poll() again. Not a failure.
  kTryAgain = 2,  // The back end has no room now. Nothing was done; call again after poll().

  // Calls and descriptors.
  kBadArgument = 3,     // An argument breaks the documented contract. Nothing was done.
  kTruncated = 4,       // The bytes end too early or do not decode. Nothing was kept.
  kCorrupt = 5,         // A checksum does not match: of a file (nothing was kept), or of a block
                        // (the machine ended).
  kBadVersion = 6,      // The descriptor has another format version. Nothing was kept.
  kUnknownFeature = 7,  // The descriptor requires a feature that this loader does not know.
                        // Nothing was kept.
  kWrongTopology = 8,   // The descriptor was made for another topology. Nothing was kept.
  kWrongNode = 9,       // The descriptor is for another node. Nothing was kept.
  kTooLarge = 10,       // The descriptor or message exceeds this node's limits. Nothing was done.
  kMalformed = 11,      // The descriptor breaks its own rules, e.g. has a reference outside its
                        // table. Nothing was kept.
  kBadOperator = 12,    // Operator and type do not match, or the operator does not commute and the
                        // program needs that: nothing was done. Or an operator of the program threw
                        // an exception: the machine ended.
  kUnsupported = 13,    // The algorithm does not support this collective, root or topology. Nothing
                        // was written.

  // Running collectives.
  kMismatch = 14,  // The peers disagree on the collective: schedule, counts, operator, type or
                   // order. Ended.
  kDeadLink = 15,  // A link did not answer its probe within the deadline; the cause names it.
                   // Ended.
  kStalled = 16,   // Every awaited peer lives, but nothing moved for twice the deadline. Ended.
  kNotInSchedule = 17,  // A block arrived that is not in the schedule. Ended.
  kBackEnd = 18,        // A fabric's error that no other code describes, or no memory. Ended.
  kNoSuchPeer = 19,     // The program needs a link that this node does not have. Nothing was done.

  // Images (firmware/image) and slots (firmware/boot). Nothing of the image was used.
  kNoImage = 20,        // The bytes are not an image: an erased slot, or another file.
  kWrongBoard = 21,     // The image was built for another kind of board.
  kRolledBack = 22,     // The image's security counter is below the counter stored on this node.
  kUnsigned = 23,       // The image has no signature, and this node accepts signed images only.
  kBadSignature = 24,   // The image was not signed with the key that this node trusts.
  kUnfinished = 25,     // Writing the slot was not completed: power was lost, or it is in progress.
  kUnconfirmed = 26,    // The slot's image was tried once and never confirmed. Boot takes the other
                        // slot. Before an install, confirm the running image: the other slot is
                        // its fallback.
  kNothingToBoot = 27,  // Both slots were refused; the boot report gives the reason for each.
  kOlderRelease = 28,   // Install: the image's release is below that of the running image, which
                        // boot would always prefer.

  kCancelled = 29,  // A program ended its collectives early (Communicator::cancel). Ended.
};

// Whether `status` is a failure code. Accepts any byte, such as one received from a peer.
[[nodiscard]] constexpr bool is_failure(Status status) {
  return status > Status::kTryAgain && status <= Status::kCancelled;
}

// Returns a short lower-case English name for messages, e.g. "dead link". Never null.
[[nodiscard]] const char* status_name(Status status);

}  // namespace espalier
