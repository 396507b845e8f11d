#include "collectives/machine/watch.h"

#include <algorithm>
#include <bit>

namespace espalier {
namespace {

// How soon a control is tried again for which the fabric had no room.
constexpr std::uint64_t kRetryNs = 20'000;

constexpr std::uint64_t bit(std::uint32_t link) { return std::uint64_t{1} << link; }

// Calls f(link) for each bit.
template <typename F>
void for_each(std::uint64_t links, F f) {
  for (; links != 0; links &= links - 1) f(static_cast<std::uint32_t>(std::countr_zero(links)));
}

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
  if (awaited_ == 0 || failed()) return;
  const std::uint64_t expected = std::max(asleep_since, next_);
  if (now_ <= expected || now_ - expected <= deadline_ / 8) return;
  lost_ += now_ - expected;
  now_ = expected;
  hear_anew();
}

// What was said meanwhile was not heard: everybody has D/2 from now.
void Watch::hear_anew() {
  for_each(awaited_, [this](std::uint32_t link) {
    links_[link].life = now_;
    links_[link].probe_at = std::min(links_[link].probe_at, now_);
  });
}

void Watch::await(std::uint32_t link) {
  if ((awaited_ & bit(link)) != 0) return;
  if (awaited_ == 0) moved_at_ = now_;
  awaited_ |= bit(link);
  begin_wait(links_[link], (down_ & bit(link)) != 0);
  due(moved_at_ + 2 * deadline_);
}

void Watch::begin_wait(Link& link, bool down) {
  link.since = now_;
  link.probe_from = down ? now_ : now_ + deadline_ / 2;
  link.probe_at = link.probe_from;
  due(link.probe_at);
}

void Watch::arrived(std::uint32_t link, bool more) {
  moved_at_ = now_;
  links_[link].life = now_;
  begin_wait(links_[link], (down_ & bit(link)) != 0);
  if (!more) awaited_ &= ~bit(link);
}

void Watch::control(std::uint32_t link, const Control& control) {
  alive(link);
  switch (control.kind) {
    case ControlKind::kProbe:
      links_[link].answer = control.number;
      answers_ |= bit(link);
      if (failed()) causes_ |= bit(link);
      break;
    case ControlKind::kAnswer: break;
    case ControlKind::kCause: learn(control.cause); break;
  }
}

void Watch::link_down(std::uint32_t link) {
  if ((down_ & bit(link)) != 0) return;
  down_ |= bit(link);
  Link& its = links_[link];
  its.probe_from = std::min(its.probe_from, now_);
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
  const bool deaf = deafening_ != 0;
  deafening_ = deafens ? deafening_ | bit(link) : deafening_ & ~bit(link);
  if (deaf == (deafening_ != 0)) return;
  deaf_at_ = now_ + deadline_ / 4;
  next_ = deaf ? now_ : deaf_at_;
  if (deaf) hear_anew();
}

void Watch::learn(const Cause& cause) {
  if (ended_ || cause.status == Status::kOk) return;
  if (!failed()) {
    end_at_ = now_ + deadline_ / 4;
    next_ = end_at_;
  } else if (!smaller(cause, cause_)) {
    return;
  }
  cause_ = cause;
  causes_ = count_ == 64 ? ~std::uint64_t{0} : bit(count_) - 1;
}

void Watch::run(bool drained) {
  if (!failed() && deafening_ != 0 && now_ >= deaf_at_) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(deafening_));
    learn({Status::kDeadLink, endpoint_->node(), links_[first].peer, true});
  }
  if (awaited_ != 0 && !failed() && deafening_ == 0 && now_ >= next_) look_at_links(drained);
  if ((probes_ | answers_ | causes_) != 0) send_controls();
  if (failed() && !ended_ && now_ >= end_at_) {
    ended_ = true;
    endpoint_->release();
  }
}

void Watch::look_at_links(bool drained) {
  next_ = kNoDeadline;
  for_each(awaited_, [&](std::uint32_t link) {
    Link& its = links_[link];
    if (now_ >= its.probe_at) {
      probes_ |= bit(link);
      its.probe_at = now_ + deadline_ / 8;
    }
    due(its.probe_at);
    const std::uint64_t dead_at = std::max(its.probe_from, its.life) + deadline_ / 2;
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
  auto longest = static_cast<std::uint32_t>(std::countr_zero(awaited_));
  for_each(awaited_, [&](std::uint32_t link) {
    if (links_[link].since < links_[longest].since) longest = link;
  });
  fail(Status::kStalled, links_[longest].peer);
}

void Watch::send_controls() {
  const auto send = [this](std::uint64_t& pending, ControlKind kind) {
    for_each(pending, [&](std::uint32_t link) {
      Control control;
      control.kind = kind;
      control.number = kind == ControlKind::kAnswer ? links_[link].answer : word_;
      control.cause = cause_;
      const Status status = endpoint_->post_control(link, control);
      // A broken link takes no more words; whether it is dead the deadlines say.
      if (status == Status::kTryAgain && (down_ & bit(link)) == 0) return;
      pending &= ~bit(link);
    });
  };
  if (failed()) probes_ = 0;
  send(probes_, ControlKind::kProbe);
  send(answers_, ControlKind::kAnswer);
  send(causes_, ControlKind::kCause);
}

std::uint64_t Watch::since(std::uint32_t link) const { return links_[link].since + lost_; }

std::uint64_t Watch::next_deadline() const {
  std::uint64_t next = kNoDeadline;
  if (failed()) {
    if (!ended_) next = end_at_ + lost_;
  } else if (deafening_ != 0) {
    next = deaf_at_ + lost_;
  } else if (awaited_ != 0 && next_ != kNoDeadline) {
    next = next_ + lost_;
  }
  if ((probes_ | answers_ | causes_) != 0) next = std::min(next, now_ + lost_ + kRetryNs);
  return next;
}

}  // namespace espalier
