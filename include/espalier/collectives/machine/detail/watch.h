#pragma once
// Watches the links of a machine: probes those it awaits, declares the dead ones dead, and makes
// all nodes end with the same cause. Freestanding. The rules: docs/architecture.md, "Failure".

#include <cstdint>

#include "espalier/base/limits.h"
#include "espalier/base/link_set.h"
#include "espalier/hal/endpoint.h"

namespace espalier {

class Watch {
 public:
  static constexpr std::uint64_t kNoDeadline = UINT64_MAX;

  void init(Endpoint& endpoint, std::uint64_t deadline_ns);

  // First call of every poll: reads the clock. Time in which the caller should have polled and did
  // not (next_deadline() passed by more than D/8: the process was stopped) does not count, and no
  // link is found dead before it had D/2 more to answer.
  void tick();
  // Last call of every poll. `drained`: no completion is left unread, so silence is silence.
  // Sends what is pending, looks at the deadlines that have come.
  void run(bool drained);

  // A collective starts: it has moved just now. Its probes have the number `word`.
  void start(std::uint32_t word) {
    moved_at_ = now_;
    word_ = word;
  }
  // The machine moved.
  void moved() { moved_at_ = now_; }
  // Something is awaited of `link` from now on / one of the awaited things came; more are if
  // `more` / anything else came.
  void await(std::uint32_t link);
  void arrived(std::uint32_t link, bool more);
  void alive(std::uint32_t link) { links_[link].life = now_; }
  void control(std::uint32_t link, const Control& control);
  void link_down(std::uint32_t link);
  // While there is a link that deafens this node, it blames nobody's silence. After D/4 the first
  // such link is the cause.
  void deafened(std::uint32_t link, bool deafens);

  // This node found `status` on its link to node `peer` (itself: at home). Only the first finding
  // counts.
  void fail(Status status, std::uint32_t peer);

  [[nodiscard]] bool failed() const { return cause_.status != Status::kOk; }
  // The cause is final, the endpoint released.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const Cause& cause() const { return cause_; }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const { return links_[link].peer; }
  [[nodiscard]] std::uint32_t links() const { return count_; }
  // Of the endpoint's clock: the last tick(); when the wait on `link` began; when run() has
  // something to do.
  [[nodiscard]] std::uint64_t now() const { return now_ + lost_; }
  [[nodiscard]] std::uint64_t since(std::uint32_t link) const;
  [[nodiscard]] std::uint64_t next_deadline() const;

 private:
  friend class PackedState;
  struct Link {
    std::uint32_t peer = 0;
    std::uint32_t answer = 0;    // number of the probe to answer
    std::uint64_t since = 0;     // the wait's begin
    std::uint64_t probe_at = 0;  // when its next probe is due
    std::uint64_t life = 0;      // last sign of life
  };

  void learn(const Cause& cause);
  void send_controls();
  void look_at_links(bool drained);
  void hear_anew();
  void begin_wait(std::uint32_t link);
  [[nodiscard]] std::uint64_t first_probe(std::uint32_t link) const;
  void due(std::uint64_t at) { next_ = at < next_ ? at : next_; }

  Endpoint* endpoint_ = nullptr;
  std::uint64_t deadline_ = 0;  // D
  // All times are of a clock that stands still while the caller oversleeps: endpoint.now() - lost_.
  std::uint64_t now_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t next_ = 0;  // nothing is due before
  std::uint64_t moved_at_ = 0;
  std::uint64_t end_at_ = 0;   // until when a smaller cause is taken
  std::uint64_t deaf_at_ = 0;  // when deafness becomes a cause
  LinkSet awaited_, down_, deafening_, answers_, causes_, probes_;
  std::uint32_t count_ = 0;
  std::uint32_t word_ = 0;
  bool ended_ = false;
  Cause cause_;
  Link links_[kMaxLinks];
};

}  // namespace espalier
