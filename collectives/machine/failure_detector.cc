#include "espalier/internal/collectives/machine/detail/failure_detector.h"

#include <algorithm>

namespace espalier {
namespace {

// Delay until a control is retried for which the fabric had no room.
constexpr std::uint64_t kControlRetryNs = 20'000;
#if ESPALIER_PROGRAM_HOOKS
// Replies count in units of 2^16 ns.
constexpr int kQuietShift = 16;
#endif

// The order of causes.
bool precedes(const Cause& a, const Cause& b) {
  return a.detector != b.detector ? a.detector < b.detector : a.peer < b.peer;
}

}  // namespace

void FailureDetector::init(Endpoint& endpoint, std::uint64_t deadline_ns) {
  endpoint_ = &endpoint;
  deadline_ = std::max<std::uint64_t>(deadline_ns, 8);
  read_links();
  next_due_ = kNoDeadline;
  now_ = endpoint.now();
}

#if ESPALIER_SPARES
void FailureDetector::reopen(Endpoint& endpoint) {
  for (LinkState& link : links_) link = LinkState();
  awaited_ = down_ = answers_ = causes_ = probes_ = LinkSet();
#if ESPALIER_PROGRAM_HOOKS
  dead_.clear();
#endif
  links_count_ = probe_word_ = 0;
  lost_ = moved_at_ = end_at_ = 0;
  ended_ = false;
  cause_ = Cause();
  init(endpoint, deadline_);
}
#endif

void FailureDetector::read_links() {
  ESPALIER_ASSERT(endpoint_->links() >= links_count_);
  const std::uint32_t count = std::min(endpoint_->links(), kMaxLinks);
  for (; links_count_ < count; ++links_count_) {
    links_[links_count_].peer = endpoint_->peer(links_count_);
  }
}

void FailureDetector::read_clock() {
  const std::uint64_t last_reading = now_;
  now_ = endpoint_->now() - lost_;
  ESPALIER_ASSERT(now_ >= last_reading);
  if (awaited_.empty() || failed()) return;
  const std::uint64_t expected = std::max(last_reading, next_due_);
  if (now_ <= expected || now_ - expected <= deadline_ / 8) return;
  lost_ += now_ - expected;
  now_ = expected;
}

// Gives what was noted since the last poll its time.
void FailureDetector::date_notes() {
  if (awaited_.empty() || has_moved_) moved_at_ = now_;
  has_moved_ = false;
  if (waits_.empty()) return;
  waits_.for_each([this](std::uint32_t link) { begin_wait(link); });
  awaited_ = awaited_ | waits_;
  waits_.clear();
  due(stalled_at());
}

void FailureDetector::begin_wait(std::uint32_t link) {
  ESPALIER_ASSERT(link < links_count_);
  links_[link].wait_start = now_;
  links_[link].next_probe = first_probe(link);
  due(links_[link].next_probe);
}

// Returns the due time of the first probe of the wait: at once if the link is down.
std::uint64_t FailureDetector::first_probe(std::uint32_t link) const {
  return links_[link].wait_start + (down_.contains(link) ? 0 : deadline_ / 2);
}

void FailureDetector::note_arrival(std::uint32_t link, bool more) {
  ESPALIER_ASSERT(link < links_count_);
  has_moved_ = true;
  if (more) {
    waits_.insert(link);
  } else {
    waits_.erase(link);
    awaited_.erase(link);
  }
}

void FailureDetector::handle_control(std::uint32_t link, const Control& control) {
  ESPALIER_ASSERT(link < links_count_);
  note_life(link);
  switch (control.kind) {
    case ControlKind::kProbe:
      links_[link].answer = control.number;
      answers_.insert(link);
      if (failed()) causes_.insert(link);
#if ESPALIER_PROGRAM_HOOKS
      askers_.insert(link);
#endif
      break;
    case ControlKind::kAnswer:
#if ESPALIER_PROGRAM_HOOKS
      if (quiet_ns_ != nullptr) take_quiet_units(control.number);
#endif
      break;
    case ControlKind::kCause: adopt(control.cause);
#if ESPALIER_PROGRAM_HOOKS
      take_informed(link, control);
#endif
      break;
  }
}

#if ESPALIER_PROGRAM_HOOKS
// Nodes node - informed_ + 1 .. node know the cause, and so do peer - n + 1 .. peer, if the peer
// says n. The two join if no node between them is left out. So all know of all after log2(nodes)
// messages, if there are links over the distances 1, 2, 4, ... In any other graph the nodes are
// counted by name.
void FailureDetector::take_informed(std::uint32_t link, const Control& control) {
  if (nodes_ == 0 || ended_ || !failed()) return;
  const Cause& cause = control.cause;
  if (cause.status != cause_.status || cause.detector != cause_.detector) return;
  const std::uint32_t told = std::min(control.number, all_nodes());
  const std::uint32_t distance = (endpoint_->node() + nodes_ - links_[link].peer) % nodes_;
  std::uint32_t known = informed_;
  if (is_graph_) {
    known |= told;
  } else if (distance <= informed_) {
    known = std::max(known, std::min(distance + told, nodes_));
  }
  if (told == all_nodes()) known = told;
  if (known == informed_) return;
  informed_ = known;
  causes_ = LinkSet::first(links_count_);
}

std::uint32_t FailureDetector::quiet_units() const {
  const std::uint64_t quiet = is_awaiting() ? now_ - moved_at_ : quiet_ns_(context_);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(quiet >> kQuietShift, UINT32_MAX));
}

// What is new goes on at once to those that await this machine: the news passes a long chain of
// them before the next probes. It must be newer by D/16, so that it does not run round a circle for
// ever.
void FailureDetector::take_quiet_units(std::uint32_t units) {
  const std::uint64_t quiet = std::uint64_t{units} << kQuietShift;
  if (quiet > now_ || now_ - quiet <= moved_at_) return;
  if (now_ - quiet - moved_at_ > deadline_ / 16) answers_ = answers_ | askers_;
  moved_at_ = now_ - quiet;
}
#endif

void FailureDetector::note_link_down(std::uint32_t link) {
  ESPALIER_ASSERT(link < links_count_);
  if (down_.contains(link)) return;
  down_.insert(link);
  read_clock();
  LinkState& state = links_[link];
  state.next_probe = now_;
  // The peer may have died long after its last sign of life; its D/2 to reply begin now.
  state.last_life = now_;
  due(now_);
}

#if ESPALIER_PROGRAM_HOOKS
void FailureDetector::note_link_dead(std::uint32_t link) {
  ESPALIER_ASSERT(link < links_count_);
  dead_.insert(link);
  read_clock();
  due(now_);
}
#endif

void FailureDetector::fail(Status status, std::uint32_t peer) {
  ESPALIER_ASSERT(is_failure(status));
  if (!failed()) adopt({status, endpoint_->node(), peer});
}

void FailureDetector::adopt(const Cause& cause) {
  // A peer may send a status that is not a failure in any release. poll() would return it: with
  // kBusy, for ever.
  if (ended_ || !is_failure(cause.status)) return;
  if (failed() && !precedes(cause, cause_)) return;
#if ESPALIER_PROGRAM_HOOKS
  informed_ = is_graph_ ? 1U << endpoint_->node() : 1;
  told_links_ = links_count_;
  const bool is_first = !failed();
#endif
  cause_ = cause;
  causes_ = LinkSet::first(links_count_);
#if ESPALIER_PROGRAM_HOOKS
  if (is_first && has_failed_ != nullptr) has_failed_(context_);
#endif
}

#if ESPALIER_PROGRAM_HOOKS
// A communicator that ends may add links that pass its cause on. Others count this node once it has
// them.
void FailureDetector::tell_new_links() {
  read_links();
  for (; told_links_ < links_count_; ++told_links_) causes_.insert(told_links_);
  if (counts_itself_ || !is_linked_(context_)) return;
  counts_itself_ = true;
  causes_ = LinkSet::first(links_count_);
}
#endif

void FailureDetector::run(bool drained) {
  check_invariants();
  if (!is_awaiting() && (probes_ | answers_ | causes_).empty() && !failed()) return;
  read_clock();
  date_notes();
#if ESPALIER_PROGRAM_HOOKS
  if (nodes_ != 0 && failed() && !ended_) tell_new_links();
#endif
  if (!awaited_.empty() && !failed() && now_ >= next_due_) look_at_links(drained);
  if (failed() && end_at_ == 0) end_at_ = now_ + deadline_ / 4;
  if (!(probes_ | answers_ | causes_).empty()) send_controls();
#if ESPALIER_PROGRAM_HOOKS
  if (!ended_ && is_known_to_all()) end_at_ = now_;
#endif
  if (failed() && !ended_ && now_ >= end_at_) {
#if ESPALIER_PROGRAM_HOOKS
    if (before_release_ != nullptr) before_release_(context_);
#endif
    ended_ = true;
    endpoint_->release();
  }
  check_invariants();
}

void FailureDetector::look_at_links(bool drained) {
  ESPALIER_ASSERT(!failed() && !awaited_.empty());
  next_due_ = kNoDeadline;
  awaited_.for_each([&](std::uint32_t link) {
    LinkState& state = links_[link];
    if (now_ >= state.next_probe) {
      probes_.insert(link);
      state.next_probe = now_ + deadline_ / 8;
    }
    due(state.next_probe);
    std::uint64_t dead_at = std::max(first_probe(link), state.last_life) + deadline_ / 2;
#if ESPALIER_PROGRAM_HOOKS
    if (dead_.contains(link)) dead_at = now_;
#endif
    if (now_ < dead_at) {
      due(dead_at);
    } else if (drained) {
      fail(Status::kDeadLink, state.peer);
    } else {
      due(now_);
    }
  });
  if (failed()) return;
  const std::uint64_t stalled = stalled_at();
  if (now_ < stalled) {
    due(stalled);
    return;
  }
  std::uint32_t longest = awaited_.next(0);
  awaited_.for_each([&](std::uint32_t link) {
    if (links_[link].wait_start < links_[longest].wait_start) longest = link;
  });
  ESPALIER_ASSERT(longest < links_count_ && links_[longest].wait_start <= now_);
  fail(Status::kStalled, links_[longest].peer);
}

void FailureDetector::send_controls() {
  const auto send = [this](LinkSet& pending, ControlKind kind) {
    pending.for_each([&](std::uint32_t link) {
      Control control;
      control.kind = kind;
      control.number = kind == ControlKind::kAnswer ? links_[link].answer : probe_word_;
#if ESPALIER_PROGRAM_HOOKS
      if (kind == ControlKind::kAnswer && quiet_ns_ != nullptr) control.number = quiet_units();
      if (kind == ControlKind::kCause && nodes_ != 0)
        control.number = counts_itself_ ? informed_ : 0;
#endif
      control.cause = cause_;
      const Status status = endpoint_->post_control(link, control);
      // A link that is down may never accept the control. The deadlines decide whether it is dead.
      if (status == Status::kTryAgain && !down_.contains(link)) return;
      pending.erase(link);
    });
  };
  if (failed()) probes_.clear();
  send(probes_, ControlKind::kProbe);
  send(answers_, ControlKind::kAnswer);
  send(causes_, ControlKind::kCause);
}

std::uint64_t FailureDetector::wait_start(std::uint32_t link) const {
  ESPALIER_ASSERT(link < links_count_);
  return links_[link].wait_start + lost_;
}

std::uint64_t FailureDetector::next_deadline() const {
  std::uint64_t next = kNoDeadline;
  if (failed()) {
    if (!ended_) next = end_at_ + lost_;
  } else if (!awaited_.empty() && next_due_ != kNoDeadline) {
    next = next_due_ + lost_;
  }
  if (!(probes_ | answers_ | causes_).empty())
    next = std::min(next, now_ + lost_ + kControlRetryNs);
  return next;
}

}  // namespace espalier
