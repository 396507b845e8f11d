#pragma once
// How nodes that have booted learn each other's releases before any collective runs. Freestanding;
// docs/updates.md.
//
// Each node knows a view of itself at first. In each of nodes - 1 rounds it sends its view over
// every link, and adds the views that come. No path is longer, so after the last round the view is
// of all nodes. A round ends only when a message of each neighbour has come: nobody gets a view of
// all unless all take part. No program of an image is used.

#include <cstdint>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/link_set.h"
#include "firmware/update/release.h"

namespace espalier {

class RollCall {
 public:
  // `endpoint`: no message was posted yet. Its links must connect the `nodes` nodes. It outlives
  // the roll call, and is ready for a machine after poll() has returned kOk.
  RollCall(Endpoint& endpoint, std::uint32_t nodes, const ReleaseState& own);
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  // Call until it does not return kBusy. There is no deadline: it waits for nodes that have not
  // booted. kOk: view() is of all nodes. kDeadLink, kMismatch and other causes: a link broke, or a
  // peer does something else; then it is over, and further calls tell the neighbours.
  [[nodiscard]] Status poll();
  [[nodiscard]] const ReleaseView& view() const { return view_; }
  // The link that failed, or over which a message is awaited.
  [[nodiscard]] std::uint32_t link() const { return link_; }
  // After a failure: its cause.
  [[nodiscard]] const Cause& cause() const { return cause_; }

 private:
  // A view on the wire: little-endian numbers in the order of ReleaseView.
  static constexpr std::uint32_t kMessageBytes = 32;

  void begin_round();
  void take(const Completion& completion);
  void post();
  void end_round();
  void fail(const Cause& cause, std::uint32_t link);
  void tell();

  Endpoint* endpoint_;
  std::uint32_t rounds_;  // that are left
  Status status_ = Status::kBusy;
  std::uint32_t link_ = 0;
  ReleaseView view_;
  LinkSet unsent_, unposted_;    // links with a message to send, or a receive to post
  LinkSet sending_, receiving_;  // links with a post that is not complete
  LinkSet unanswered_;           // links with a probe to answer
  LinkSet untold_;               // after a failure: links that do not know of it
  Cause cause_;
  std::uint32_t probes_[kMaxLinks] = {};
  std::uint8_t out_[kMessageBytes] = {};
  std::uint8_t in_[kMaxLinks][kMessageBytes] = {};
};

}  // namespace espalier
