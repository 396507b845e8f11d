#pragma once
// The endpoint: the whole contract between the machine and any fabric. Freestanding.
//
// A node has a static table of links, 0 .. links()-1; each joins it with one peer node, both ways.
// On each link, the k-th message that one end sends is the k-th that the other end receives: posts
// match by order, over the endpoint's whole life. At most window() sends and window() receives are
// outstanding on a link; they complete in order.
//
//  * A post hands its bytes to the endpoint until its completion is polled (or release() returned).
//  * Posting never blocks and never waits for the peer. No memory is allocated after the endpoint
//  was opened.
//  * A send completes when its bytes may be changed; a receive when its bytes are all in place.
//  * A message longer than eager_bytes() needs the receive to be posted before its bytes travel
//  (rendezvous: they are
//    then written to their final place); a shorter one may travel before and waits in one of
//    window() slots that the link has for life. Neither case needs anything else from the caller.
//  * Messages may be of 0 bytes.
//  * Agreement: each post carries the caller's tag. If the k-th send and the k-th receive differ in
//  tag or length,
//    both ends get a completion with kMismatch, whatever lengths and whichever was first; no byte
//    is placed. The peer's tag is told (kEarly) even when no receive is posted. A send of at most
//    eager_bytes() may have completed with kOk before; then the sender gets one further completion
//    of it (kSent, its cookie, kMismatch), which may come after those of later sends (of several on
//    a link that were not polled yet, the first is enough).
//  * Control: a small fixed message a link, outside the order of the blocks; a newer one of the
//  same kind may replace an
//    older unread one. Controls arrive even when all windows are full.
//  * What the other end does is never waited for inside a call; nothing is sent that was not
//  posted.

#include <cstddef>
#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

// Why a cluster ended a collective early; travels along the live links.
struct Cause {
  Status status = Status::kOk;  // kDeadLink, kMismatch, ...; kOk: no cause
  std::uint32_t detector = 0;   // node that found it
  std::uint32_t peer = 0;       // node at the other end of the link that is dead, disagrees, ...
  bool deaf = false;            // its finder hears nobody (kDeaf): all others must take this cause
};

enum class ControlKind : std::uint8_t { kProbe = 0, kAnswer = 1, kCause = 2 };
inline constexpr std::uint32_t kControlKinds = 3;

struct Control {
  ControlKind kind = ControlKind::kProbe;
  std::uint32_t number = 0;  // of a probe; its answer repeats it
  Cause cause;               // kCause only
};

struct Completion {
  enum class Kind : std::uint8_t {
    kSent,      // link, cookie, status: kOk, kMismatch
    kReceived,  // link, cookie, status: kOk, kMismatch; check: the sender's word
    kEarly,  // link, tag: a message has come for which no receive is posted yet; told at most once
             // a message
    kControl,   // link, control
    kLinkDown,  // link: the fabric itself reports the link broken; posts on it will not complete
    kDeaf,      // link, status: kDeadLink: nothing can be heard, on any link, for link's peer,
                // stopped or dead, may hold what must be held to hear; kOk: for it no more
  };
  Kind kind = Kind::kSent;
  std::uint32_t link = 0;
  std::uint32_t cookie = 0;
  Status status = Status::kOk;
  std::uint32_t check = 0;
  std::uint64_t tag = 0;
  Control control;
};

struct SendPost {
  const void* bytes = nullptr;
  std::uint64_t size = 0;
  std::uint64_t tag = 0;
  std::uint32_t check = 0;   // handed to the receiver's completion as it is
  std::uint32_t cookie = 0;  // handed to this end's completion as it is
};

struct ReceivePost {
  void* bytes =
      nullptr;  // inside a region given to prepare(), or any memory where size <= eager_bytes()
  std::uint64_t size = 0;  // exactly what is expected
  std::uint64_t tag = 0;
  std::uint32_t cookie = 0;
};

// Memory in which receives of the next collective will land, or from which it sends.
struct Region {
  void* bytes = nullptr;
  std::uint64_t size = 0;
};

class Endpoint {
 public:
  [[nodiscard]] virtual std::uint32_t node() const = 0;
  [[nodiscard]] virtual std::uint32_t links() const = 0;                   // <= kMaxLinks
  [[nodiscard]] virtual std::uint32_t peer(std::uint32_t link) const = 0;  // node at the other end
  [[nodiscard]] virtual std::uint32_t window() const = 0;  // posts a link and direction
  [[nodiscard]] virtual std::uint64_t eager_bytes() const = 0;

  // Makes up to kMaxRegions regions reachable for the next receives and sends; earlier regions are
  // released unless named again. Call with no posts outstanding. kTooLarge: too many regions;
  // kBackEnd: the fabric refused.
  static constexpr std::uint32_t kMaxRegions = 4;
  [[nodiscard]] virtual Status prepare(const Region* regions, std::uint32_t count) = 0;

  // kOk; kTryAgain: the fabric has no room now, poll() and call again; kTooLarge: window() posts
  // are outstanding.
  [[nodiscard]] virtual Status post_receive(std::uint32_t link, const ReceivePost& post) = 0;
  [[nodiscard]] virtual Status post_send(std::uint32_t link, const SendPost& post) = 0;
  // kOk or kTryAgain.
  [[nodiscard]] virtual Status post_control(std::uint32_t link, const Control& control) = 0;

  // Progresses the fabric a bounded amount; true if `completion` holds one.
  [[nodiscard]] virtual bool poll(Completion& completion) = 0;

  // Gives up every outstanding post: when it returns, no byte of the caller's memory is read or
  // written any more. The endpoint carries only controls from then on.
  virtual void release() = 0;

  // Nanoseconds of a monotonic clock (virtual in simulation).
  [[nodiscard]] virtual std::uint64_t now() = 0;
  // Returns when something may have come, or at `until` by now(), or earlier. The machine never
  // calls it; the thread that polls does when there is nothing else to do.
  virtual void wait(std::uint64_t until) = 0;

 protected:
  ~Endpoint() = default;  // never deleted through the base: no heap
};

}  // namespace espalier
