#include "tests/storm/watched_endpoint.h"

#include <algorithm>
#include <utility>

namespace espalier::storm {

WatchedEndpoint::WatchedEndpoint(Endpoint& inner, std::function<std::uint64_t()> now)
    : ForwardingEndpoint(inner),
      incoming(inner.links()),
      now_(std::move(now)),
      sent_(inner.links()) {}

std::uint64_t WatchedEndpoint::next_ns() const {
  std::uint64_t next = kNever;
  if (held_ == 0) return next;
  for (const Incoming& in : incoming) {
    if (!in.held.empty()) next = std::min(next, in.hold_until);
  }
  return next;
}

void WatchedEndpoint::check_post(const char* what) {
  ++activity_;
  if (!violation_.empty()) return;
  if (released_) violation_ = std::string(what) + " was posted after release()";
  if (!running) violation_ = std::string(what) + " was posted while no collective ran";
}

void WatchedEndpoint::count_operation() {
  if (operations_++ == strike_at_operation && strike) strike();
}

Status WatchedEndpoint::prepare(const Region* regions, std::uint32_t count) {
  return dead ? Status::kOk : inner_->prepare(regions, count);
}

Status WatchedEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  check_post("a receive");
  count_operation();
  if (dead) return Status::kOk;
  const Status status = inner_->post_receive(link, post);
  if (status != Status::kOk) --operations_;
  return status;
}

Status WatchedEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  check_post("a send");
  count_operation();
  if (dead) return Status::kOk;
  const Status status = inner_->post_send(link, post);
  if (status == Status::kOk) {
    ++sent_[link];
  } else {
    --operations_;
  }
  return status;
}

Status WatchedEndpoint::post_control(std::uint32_t link, const Control& control) {
  ++activity_;
  return dead ? Status::kOk : inner_->post_control(link, control);
}

// Whether the machine gets it now. What it does not get is lost, or kept for later.
bool WatchedEndpoint::arrives(const Completion& completion, std::uint64_t now_ns) {
  if (completion.kind == Completion::Kind::kSent ||
      completion.kind == Completion::Kind::kLinkDown) {
    return true;
  }
  Incoming& in = incoming[completion.link];
  if (now_ns >= in.cut_at) {
    ++lost_;
    return false;
  }
  if (!in.held.empty() || (now_ns >= in.hold_from && now_ns < in.hold_until)) {
    ++held_;
    in.held.push_back(completion);
    return false;
  }
  return true;
}

bool WatchedEndpoint::poll(Completion& completion) {
  if (dead) return false;
  const std::uint64_t now_ns = now_();
  bool found = false;
  for (std::uint32_t link = 0; held_ > 0 && !found && link < incoming.size(); ++link) {
    Incoming& in = incoming[link];
    if (in.held.empty() || now_ns < in.hold_until) continue;
    completion = in.held.front();
    in.held.pop_front();
    found = !released_ || completion.kind == Completion::Kind::kControl;
    if (now_ns < in.cut_at) continue;
    if (found) ++lost_;
    found = false;
  }
  while (!found && inner_->poll(completion)) {
    ++activity_;
    found = arrives(completion, now_ns);
  }
  if (!found) return false;
  ++activity_;
  if (completion.kind == Completion::Kind::kSent ||
      completion.kind == Completion::Kind::kReceived) {
    if (completion.status == Status::kOk) moved_ns_ = now_ns;
    count_operation();
    if (dead) return false;
  }
  return true;
}

void WatchedEndpoint::release() {
  released_ = true;
  inner_->release();
}

}  // namespace espalier::storm
