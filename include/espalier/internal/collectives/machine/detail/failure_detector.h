#pragma once
// The failure detector of a machine: probes the links that the machine awaits, declares dead links
// dead, and makes all nodes end with the same cause. Freestanding. Its rules: docs/architecture.md,
// "Failure". "Probe" is a keepalive probe, not MPI_Probe. D is the deadline.

#include <cstdint>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/link_set.h"

namespace espalier {

class PackedState;

inline namespace ESPALIER_MACHINE_BUILD {
// A failure detector. Call init() once, and run() last in every poll.
class FailureDetector {
 public:
  static constexpr std::uint64_t kNoDeadline = UINT64_MAX;  // later than every deadline

  // Binds the detector to `endpoint`, which must outlive it. `deadline_ns` is D; values below 8
  // count as 8. Links from kMaxLinks onward are ignored.
  void init(Endpoint& endpoint, std::uint64_t deadline_ns);
#if ESPALIER_SPARES
  // Forgets everything except D, and binds the detector to another endpoint.
  void reopen(Endpoint& endpoint);
#endif
#if ESPALIER_PROGRAM_HOOKS
  // Sets the function that is called with `context` once the cause is final, before the endpoint
  // is released; null: none.
  void call_before_release(void (*function)(void* context), void* context) {
    before_release_ = function;
    context_ = context;
  }
  // Sets MachineConfig::quiet_ns. Replies then say for how long their sender has not moved: 0 if it
  // awaits nothing and its program runs. So what a machine awaits counts as moving as long as
  // anything moves that its peers await in turn.
  void wait_for_programs(std::uint64_t (*quiet_ns)(void* context), void* context) {
    quiet_ns_ = quiet_ns;
    context_ = context;
  }
  // Sets MachineConfig::failed, is_linked, nodes and is_graph. Requires nodes <= kMaxNamed if
  // `is_graph`.
  void end_early(void (*has_failed)(void* context), bool (*is_linked)(void* context),
                 std::uint32_t nodes, bool is_graph, void* context) {
    ESPALIER_ASSERT(!is_graph || nodes <= kMaxNamed);
    has_failed_ = has_failed;
    is_linked_ = is_linked;
    nodes_ = nodes;
    is_graph_ = is_graph;
    context_ = context;
  }
  static constexpr std::uint32_t kMaxNamed = 32;  // bits of Control::number
  // Returns the endpoint's time (now(), ns) of the last move.
  [[nodiscard]] std::uint64_t moved_at() const { return moved_at_ + lost_; }
#endif
  // Takes note of the links that the endpoint added.
  void read_links();

  // Gives what was noted its time, sends pending controls and checks expired deadlines; call last
  // in every poll. `drained`: no completion is left unread. Only then may a silent link be declared
  // dead. Reads the clock if anything is awaited. If the caller polls more than D/8 after
  // next_deadline() (the process was stopped), the missed time does not count: a peer's silence is
  // measured while this node listens.
  void run(bool drained);

  // Notes that a collective starts. Its probes carry `word`.
  void start(std::uint32_t word) {
    probe_word_ = word;
#if ESPALIER_PROGRAM_HOOKS
    askers_ = LinkSet();
#endif
  }
  // Notes that the machine made progress.
  void note_progress() { has_moved_ = true; }
  // Notes that the machine awaits a completion on `link` from now on.
  void await(std::uint32_t link) {
    ESPALIER_ASSERT(link < links_count_);
    if (!awaited_.contains(link)) waits_.insert(link);
  }
  // Whether the machine awaits a completion on any link.
  [[nodiscard]] bool is_awaiting() const { return !(awaited_ | waits_).empty(); }
  // Notes that an awaited completion arrived; `more`: others are awaited on `link`.
  void note_arrival(std::uint32_t link, bool more);
  // Notes any other sign of life from the peer.
  void note_life(std::uint32_t link) {
    ESPALIER_ASSERT(link < links_count_);
    read_clock();
    links_[link].last_life = now_;
  }
  // Handles a control that arrived on `link`.
  void handle_control(std::uint32_t link, const Control& control);
  // Notes that the fabric reports `link` as down: probes it at once.
  void note_link_down(std::uint32_t link);
#if ESPALIER_PROGRAM_HOOKS
  // Notes that nothing passes `link` any more: it is dead at once when it is awaited.
  void note_link_dead(std::uint32_t link);
#endif

  // Notes that this node detected the failure `status` on its link to node `peer`; `peer` is this
  // node itself for a failure that is not on a link. Only the first failure counts.
  void fail(Status status, std::uint32_t peer);

  // Whether a cause is known. It may still be replaced by a smaller one.
  [[nodiscard]] bool failed() const { return cause_.status != Status::kOk; }
  // Whether the cause is final and the endpoint has been released.
  [[nodiscard]] bool ended() const { return ended_; }
  // Returns the cause. Its status is kOk unless failed().
  [[nodiscard]] const Cause& cause() const { return cause_; }
  // Returns the node at the link's other end. Requires link < links().
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const {
    ESPALIER_ASSERT(link < links_count_);
    return links_[link].peer;
  }
  // Returns the number of the endpoint's links, at most kMaxLinks.
  [[nodiscard]] std::uint32_t links() const { return links_count_; }
  // The next two return times by the endpoint's clock, ns.
  // The time at which the wait on `link` began.
  [[nodiscard]] std::uint64_t wait_start(std::uint32_t link) const;
  // The time at which run() has work even if nothing arrives; kNoDeadline: none.
  [[nodiscard]] std::uint64_t next_deadline() const;

 private:
  friend PackedState;
  struct LinkState {
    std::uint32_t peer = 0;
    std::uint32_t answer = 0;      // number of the probe to reply to
    std::uint64_t wait_start = 0;  // start of the wait
    std::uint64_t next_probe = 0;  // due time of the next probe
    std::uint64_t last_life = 0;   // last sign of life
  };

  void read_clock();
  void date_notes();
  void adopt(const Cause& cause);
  void send_controls();
  void look_at_links(bool drained);
#if ESPALIER_PROGRAM_HOOKS
  // Takes what the node at the other end of `link` says in place of a number: how many nodes know
  // the cause, itself and those with the numbers before it, modulo nodes_; with is_graph_, a bit
  // for each such node.
  void take_informed(std::uint32_t link, const Control& control);
  // Tells the cause on the links that were added since, and counts this node.
  void tell_new_links();
  // Whether all nodes know the cause, and all links have this node's word for it. The cause is
  // final then: a node that began a smaller one would never have taken this one.
  [[nodiscard]] bool is_known_to_all() const {
    return nodes_ != 0 && counts_itself_ && informed_ >= all_nodes() && causes_.empty();
  }
  // Returns informed_ once all nodes know the cause.
  [[nodiscard]] std::uint32_t all_nodes() const {
    return is_graph_ ? 0xffffffffU >> (kMaxNamed - nodes_) : nodes_;
  }
  [[nodiscard]] std::uint32_t quiet_units() const;
  void take_quiet_units(std::uint32_t units);
#endif
  void begin_wait(std::uint32_t link);
  [[nodiscard]] std::uint64_t first_probe(std::uint32_t link) const;
  // All nodes know the cause D/4 later, at 2D.
  [[nodiscard]] std::uint64_t stalled_at() const { return moved_at_ + deadline_ / 4 * 7; }
  void due(std::uint64_t time) { next_due_ = time < next_due_ ? time : next_due_; }
  // Asserts what holds between two calls.
  void check_invariants() const {
    ESPALIER_ASSERT(endpoint_ != nullptr && deadline_ >= 8);
    ESPALIER_ASSERT(links_count_ <= kMaxLinks);
    ESPALIER_ASSERT((awaited_ | waits_ | down_).next(links_count_) == LinkSet::kNone);
    ESPALIER_ASSERT((answers_ | causes_ | probes_).next(links_count_) == LinkSet::kNone);
    ESPALIER_ASSERT(!failed() || is_failure(cause_.status));
    ESPALIER_ASSERT(end_at_ == 0 || failed());
    ESPALIER_ASSERT(!ended_ || end_at_ != 0);
    ESPALIER_ASSERT(moved_at_ <= now_);
  }

  Endpoint* endpoint_ = nullptr;
  std::uint64_t deadline_ = 0;  // D, ns
  // All times are by a clock that stops while the caller is late: endpoint.now() - lost_, ns.
  std::uint64_t now_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t next_due_ = 0;  // nothing is due earlier
  std::uint64_t moved_at_ = 0;  // last progress of the machine
  std::uint64_t end_at_ = 0;  // end of the time in which a smaller cause is accepted; 0: not known
  LinkSet awaited_, down_, answers_, causes_, probes_;
  LinkSet waits_;  // noted since the last run(): they begin
  std::uint32_t links_count_ = 0;
  std::uint32_t probe_word_ = 0;
  bool has_moved_ = false;  // noted since the last run(): progress
  bool ended_ = false;
#if ESPALIER_PROGRAM_HOOKS
  void (*before_release_)(void* context) = nullptr;
  std::uint64_t (*quiet_ns_)(void* context) = nullptr;
  void* context_ = nullptr;
  LinkSet askers_;                // peers that sent a probe during this collective
  std::uint32_t told_links_ = 0;  // links that were added before the cause, or get it since
  void (*has_failed_)(void* context) = nullptr;
  bool (*is_linked_)(void* context) = nullptr;
  bool counts_itself_ = false;  // is_linked_ returned true since the failure
  bool is_graph_ = false;
  LinkSet dead_;                // of note_link_dead()
  std::uint32_t nodes_ = 0;     // 0: not counted
  std::uint32_t informed_ = 0;  // of take_informed(), for this node
#endif
  Cause cause_;
  LinkState links_[kMaxLinks];
};
}  // namespace ESPALIER_MACHINE_BUILD

}  // namespace espalier
