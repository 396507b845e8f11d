#pragma once
// The endpoint: the complete contract between the machine and any fabric. Freestanding.
//
// A node has the links 0 .. links()-1. Each link connects it to one peer node, in both directions.
// Back ends may add links, never remove them. Send k at one end of a link matches receive k at the
// other end; k counts over the endpoint's whole lifetime. A link has at most window() outstanding
// sends and window() outstanding receives. Sends complete in order, and so do receives.
//
//  * Ownership: a post lends its memory to the endpoint until its completion is polled or release()
//    returns.
//  * Progress: posting never blocks. No call waits for the peer. Nothing is allocated after open.
//  * Completion: a send completes when its memory may be reused, a receive when all its bytes are
//    in place. Messages may have 0 bytes.
//  * Eager: a message of at most eager_bytes() may travel before its receive is posted. It then
//    waits in one of the link's window() permanent slots. Rendezvous: a longer message travels once
//    its receive is posted, directly to its final place. Neither needs any action by the caller.
//  * Unexpected message: if no receive is posted for it yet, its tag is reported as kUnexpected.
//  * Mismatch: if a send and its receive differ in tag or length, both ends get kMismatch and no
//    byte is placed, whichever was posted first. An eager send may already have completed with kOk.
//    The sender then gets a second kSent with the same context and kMismatch, possibly after the
//    completions of later sends. If several are unpolled on a link, only the first must be given.
//  * Controls: small fixed-size messages on each link, outside the message order. A newer control
//    may replace an unread one of the same kind. Controls arrive even when all windows are full.
//  * Only posted messages and controls are sent.

#include <cstddef>
#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

// Why a cluster ended a collective early. It travels along the live links.
struct Cause {
  Status status = Status::kOk;  // kDeadLink, kMismatch, ...; kOk: no cause
  std::uint32_t detector = 0;   // the node that detected it
  std::uint32_t peer = 0;  // the node at the other end of the link that is dead, disagrees, ...
};

// The kind of a control. kProbe: a keepalive probe, which asks whether the peer lives. kAnswer:
// the reply to a probe. kCause: the reason for which the sender ended its collective.
enum class ControlKind : std::uint8_t { kProbe = 0, kAnswer = 1, kCause = 2 };
inline constexpr std::uint32_t kControlKinds = 3;  // values of ControlKind

// A control: see the top of this file.
struct Control {
  ControlKind kind = ControlKind::kProbe;
  // The number of a keepalive probe (not MPI_Probe). Its reply repeats it, or with
  // MachineConfig::quiet_ns says for how long the sender has not moved, in units of 2^16 ns.
  std::uint32_t number = 0;
  Cause cause;  // kCause only
};

// A completion or another event, as poll() returns it.
struct Completion {
  // The event. Each kind names the fields that it sets.
  enum class Kind : std::uint8_t {
    kSent,      // A send completed: link, context, status (kOk, kMismatch).
    kReceived,  // A receive completed: link, context, status (as kSent), check (of the send post).
    kUnexpected,  // Unexpected message: link, tag. Reported at most once per message.
    kControl,     // A control arrived: link, control.
    kLinkDown,  // The fabric reports this link broken; posts on it will not complete: link, status
                // (kDeadLink: it is broken for ever, its interface has lost its carrier).
  };
  Kind kind = Kind::kSent;
  std::uint32_t link = 0;
  std::uint32_t context = 0;
  Status status = Status::kOk;
  std::uint32_t check = 0;
  std::uint64_t tag = 0;
  Control control;
};

// The send of one message.
struct SendPost {
  const void* bytes = nullptr;
  std::uint64_t size = 0;
  std::uint64_t tag = 0;
  std::uint32_t check = 0;    // passed unchanged to the receiver's completion
  std::uint32_t context = 0;  // the caller's context, passed unchanged to this end's completion
};

// The receive of one message. If its size or tag differs from the send, both ends get kMismatch.
struct ReceivePost {
  // Inside a region passed to prepare(); anywhere if size <= eager_bytes().
  void* bytes = nullptr;
  std::uint64_t size = 0;  // exactly the number of bytes that the message has
  std::uint64_t tag = 0;
  std::uint32_t context = 0;
};

// Memory into which the next collective receives, or from which it sends.
struct Region {
  void* bytes = nullptr;
  std::uint64_t size = 0;
};

// A node's end of the fabric. The contract is at the top of this file.
class Endpoint {
 public:
  [[nodiscard]] virtual std::uint32_t node() const = 0;                    // number of this node
  [[nodiscard]] virtual std::uint32_t links() const = 0;                   // <= kMaxLinks
  [[nodiscard]] virtual std::uint32_t peer(std::uint32_t link) const = 0;  // node at the other end
  // Outstanding posts per link and direction.
  [[nodiscard]] virtual std::uint32_t window() const = 0;
  [[nodiscard]] virtual std::uint64_t eager_bytes() const = 0;  // maximum size of an eager message

  static constexpr std::uint32_t kMaxRegions = 4;  // regions per prepare()
  // Makes up to kMaxRegions regions accessible to the next receives and sends. Releases earlier
  // regions unless they are named again. Call while no posts are outstanding. kTooLarge: too many
  // regions; kBackEnd: the fabric refused.
  [[nodiscard]] virtual Status prepare(const Region* regions, std::uint32_t count) = 0;
  // Ends the access of peers to the prepared regions. Call while no posts are outstanding. The next
  // large receive needs prepare() again.
  virtual void release_regions() {}

  // post_receive() and post_send() post the next receive or send of the link and return at once.
  // kOk; kTryAgain: the fabric has no room now, call poll() and try again; kTooLarge: window()
  // posts are outstanding.
  [[nodiscard]] virtual Status post_receive(std::uint32_t link, const ReceivePost& post) = 0;
  [[nodiscard]] virtual Status post_send(std::uint32_t link, const SendPost& post) = 0;
  // Returns kOk or kTryAgain.
  [[nodiscard]] virtual Status post_control(std::uint32_t link, const Control& control) = 0;

  // Progresses the fabric by a bounded amount of work. True if `completion` was filled in.
  [[nodiscard]] virtual bool poll(Completion& completion) = 0;

  // Gives up every outstanding post: after it returns, the endpoint neither reads nor writes any of
  // the caller's memory. From then on the endpoint carries only controls.
  virtual void release() = 0;

  // Nanoseconds of a monotonic clock (virtual in simulation).
  [[nodiscard]] virtual std::uint64_t now() = 0;
  // Returns when a completion may be ready or now() reaches `until`; may return early. Called by
  // the polling thread when idle, never by the machine.
  virtual void wait(std::uint64_t until) = 0;

 protected:
  ~Endpoint() = default;  // never deleted through the base: no heap
};

}  // namespace espalier
