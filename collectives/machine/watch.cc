#include "espalier/collectives/machine/detail/watch.h"

#include <algorithm>

namespace espalier {
namespace {

// How soon a control is tried again for which the fabric had no room.
constexpr std::uint64_t kRetryNs = 20'000;

// A deaf finder never learns of another cause, so its own comes before all.
bool smaller(const Cause& a, const Cause& b) {
  if (a.deaf != b.deaf) return a.deaf;
  return a.detector != b.detector ? a.detector < b.detector : a.peer < b.peer;
}

}  // namespace

void Watch::init(Endpoint& endpoint, std::uint64_t deadline_ns) {
  endpoint_ = &endpoint;
  deadline_ = std::max<std::uint64_t>(deadline_ns, 8);
  count_ = std::min(endpoint.links(), kMaxLinks);
  for (std::uint32_t link = 0; link < count_; ++link) links_[link].peer = endpoint.peer(link);
  next_ = kNoDeadline;
  now_ = endpoint.now();
}

void Watch::tick() {
  const std::uint64_t asleep_since = now_;
  now_ = endpoint_->now() - lost_;
  if (awaited_.empty() || failed()) return;
  const std::uint64_t expected = std::max(asleep_since, next_);
  if (now_ <= expected || now_ - expected <= deadline_ / 8) return;
  lost_ += now_ - expected;
  now_ = expected;
  hear_anew();
}

// What was said meanwhile was not heard: everybody has D/2 from now.
void Watch::hear_anew() {
  awaited_.for_each([this](std::uint32_t link) {
    links_[link].life = now_;
    links_[link].probe_at = std::min(links_[link].probe_at, now_);
  });
}

void Watch::await(std::uint32_t link) {
  if (awaited_.contains(link)) return;
  if (awaited_.empty()) moved_at_ = now_;
  awaited_.insert(link);
  begin_wait(link);
  due(moved_at_ + 2 * deadline_);
}

void Watch::begin_wait(std::uint32_t link) {
  links_[link].since = now_;
  links_[link].probe_at = first_probe(link);
  due(links_[link].probe_at);
}

// When the first probe of the wait is due; a link that is down need not be silent first.
std::uint64_t Watch::first_probe(std::uint32_t link) const {
  return links_[link].since + (down_.contains(link) ? 0 : deadline_ / 2);
}

void Watch::arrived(std::uint32_t link, bool more) {
  moved_at_ = now_;
  links_[link].life = now_;
  begin_wait(link);
  if (!more) awaited_.erase(link);
}

void Watch::control(std::uint32_t link, const Control& control) {
  alive(link);
  switch (control.kind) {
    case ControlKind::kProbe:
      links_[link].answer = control.number;
      answers_.insert(link);
      if (failed()) causes_.insert(link);
      break;
    case ControlKind::kAnswer: break;
    case ControlKind::kCause: learn(control.cause); break;
  }
}

void Watch::link_down(std::uint32_t link) {
  if (down_.contains(link)) return;
  down_.insert(link);
  Link& its = links_[link];
  its.probe_at = now_;
  // It may have died long after its last word; the D/2 it has to answer begin now.
  its.life = now_;
  due(now_);
}

void Watch::fail(Status status, std::uint32_t peer) {
  if (!failed()) learn({status, endpoint_->node(), peer});
}

// D/4: those who await this node hear its cause before its silence tells them anything, which is
// D/2 after its last answer, which is at most D/8 old.
void Watch::deafened(std::uint32_t link, bool deafens) {
  const bool deaf = !deafening_.empty();
  if (deafens) {
    deafening_.insert(link);
  } else {
    deafening_.erase(link);
  }
  if (deaf != deafening_.empty()) return;
  deaf_at_ = now_ + deadline_ / 4;
  next_ = deaf ? now_ : deaf_at_;
  if (deaf) hear_anew();
}

void Watch::learn(const Cause& cause) {
  // A peer's may be of no release's: it would be what poll() returns, kBusy for ever if it says so.
  if (ended_ || !is_failure(cause.status)) return;
  if (!failed()) {
    end_at_ = now_ + deadline_ / 4;
    next_ = end_at_;
  } else if (!smaller(cause, cause_)) {
    return;
  }
  cause_ = cause;
  causes_ = LinkSet::first(count_);
}

void Watch::run(bool drained) {
  if (!failed() && !deafening_.empty() && now_ >= deaf_at_) {
    learn({Status::kDeadLink, endpoint_->node(), links_[deafening_.next(0)].peer, true});
  }
  if (!awaited_.empty() && !failed() && deafening_.empty() && now_ >= next_) look_at_links(drained);
  if (!(probes_ | answers_ | causes_).empty()) send_controls();
  if (failed() && !ended_ && now_ >= end_at_) {
    ended_ = true;
    endpoint_->release();
  }
}

void Watch::look_at_links(bool drained) {
  next_ = kNoDeadline;
  awaited_.for_each([&](std::uint32_t link) {
    Link& its = links_[link];
    if (now_ >= its.probe_at) {
      probes_.insert(link);
      its.probe_at = now_ + deadline_ / 8;
    }
    due(its.probe_at);
    const std::uint64_t dead_at = std::max(first_probe(link), its.life) + deadline_ / 2;
    if (now_ < dead_at) {
      due(dead_at);
    } else if (drained) {
      fail(Status::kDeadLink, its.peer);
    } else {
      due(now_);
    }
  });
  if (failed()) return;
  const std::uint64_t stalled_at = moved_at_ + 2 * deadline_;
  if (now_ < stalled_at) {
    due(stalled_at);
    return;
  }
  std::uint32_t longest = awaited_.next(0);
  awaited_.for_each([&](std::uint32_t link) {
    if (links_[link].since < links_[longest].since) longest = link;
  });
  fail(Status::kStalled, links_[longest].peer);
}

void Watch::send_controls() {
  const auto send = [this](LinkSet& pending, ControlKind kind) {
    pending.for_each([&](std::uint32_t link) {
      Control control;
      control.kind = kind;
      control.number = kind == ControlKind::kAnswer ? links_[link].answer : word_;
      control.cause = cause_;
      const Status status = endpoint_->post_control(link, control);
      // A broken link takes no more words; whether it is dead the deadlines say.
      if (status == Status::kTryAgain && !down_.contains(link)) return;
      pending.erase(link);
    });
  };
  if (failed()) probes_.clear();
  send(probes_, ControlKind::kProbe);
  send(answers_, ControlKind::kAnswer);
  send(causes_, ControlKind::kCause);
}

std::uint64_t Watch::since(std::uint32_t link) const { return links_[link].since + lost_; }

std::uint64_t Watch::next_deadline() const {
  std::uint64_t next = kNoDeadline;
  if (failed()) {
    if (!ended_) next = end_at_ + lost_;
  } else if (!deafening_.empty()) {
    next = deaf_at_ + lost_;
  } else if (!awaited_.empty() && next_ != kNoDeadline) {
    next = next_ + lost_;
  }
  if (!(probes_ | answers_ | causes_).empty()) next = std::min(next, now_ + lost_ + kRetryNs);
  return next;
}

}  // namespace espalier
