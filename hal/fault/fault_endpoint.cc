#include "hal/fault/fault_endpoint.h"

#include <algorithm>
#include <utility>

#include "base/splitmix64.h"
#include "espalier/internal/base/assert.h"

namespace espalier::fault {
namespace {

// Completed forwards kept per link, for mismatches that are reported late.
constexpr std::size_t kKept = 256;

double unit(std::uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

void copy_bytes(SendPost& post, std::vector<std::uint8_t>& copy) {
  const auto* bytes = static_cast<const std::uint8_t*>(post.bytes);
  copy.assign(bytes, bytes + post.size);
  post.bytes = copy.data();
}

}  // namespace

FaultEndpoint::FaultEndpoint(Endpoint& inner, const Faults& faults)
    : FaultEndpoint(inner, faults, Hooks()) {}

FaultEndpoint::FaultEndpoint(Endpoint& inner, const Faults& faults, Hooks hooks)
    : ForwardingEndpoint(inner), faults_(faults), hooks_(std::move(hooks)), links_(inner.links()) {
  for (const Fault& fault : faults_.script) {
    if (fault.kind == Kind::kKill) kill_after_ = std::min(kill_after_, fault.after);
  }
}

Status FaultEndpoint::prepare(const Region* regions, std::uint32_t count) {
  return dead_ ? Status::kOk : inner_->prepare(regions, count);
}

// Counts a post; returns whether the node is dead.
bool FaultEndpoint::count_post() {
  if (dead_ || posts_++ < kill_after_) return dead_;
  dead_ = true;
  ++struck_[static_cast<std::uint32_t>(Kind::kKill)];
  release();
  if (hooks_.killed) hooks_.killed();
  return true;
}

Status FaultEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (count_post()) return Status::kOk;
  const Status status = inner_->post_receive(link, post);
  if (status != Status::kOk) --posts_;
  return status;
}

Status FaultEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  if (link >= links_.size() || released_) return dead_ ? Status::kOk : Status::kBadArgument;
  Link& state = links_[link];
  if (state.posted - state.polled >= window()) return Status::kTooLarge;
  if (count_post()) return Status::kOk;
  Forward forward{.post = post, .message = state.posted++};
  state.outstanding.push_back({post.context, false, Status::kOk});
  Fault random;
  ESPALIER_ASSERT(state.outstanding.size() == state.posted - state.polled);
  const Fault* fault = find(link, forward.message, random);
  if (fault == nullptr) {
    hold(link, std::move(forward));
  } else {
    ++struck_[static_cast<std::uint32_t>(fault->kind)];
    strike(*fault, link, std::move(forward));
  }
  flush(link);
  return Status::kOk;
}

// Returns the fault for this message; null: none.
const Fault* FaultEndpoint::find(std::uint32_t link, std::uint64_t message, Fault& random) const {
  for (const Fault& fault : faults_.script) {
    if (fault.kind != Kind::kKill && fault.link == link && fault.message == message) return &fault;
  }
  const std::uint64_t base = splitmix64(splitmix64(splitmix64(faults_.seed) ^ node()) ^ link);
  double draw = unit(splitmix64(base ^ message));
  for (std::uint32_t kind = 0; kind < kMessageKinds; ++kind) {
    if (draw < faults_.chance[kind]) {
      random.kind = static_cast<Kind>(kind);
      random.ns = faults_.ns;
      random.bit = splitmix64(splitmix64(base ^ message));
      return &random;
    }
    draw -= faults_.chance[kind];
  }
  return nullptr;
}

void FaultEndpoint::strike(const Fault& fault, std::uint32_t link, Forward forward) {
  Link& state = links_[link];
  ESPALIER_ASSERT(link < links_.size() && !state.outstanding.empty());
  switch (fault.kind) {
    case Kind::kDrop: state.outstanding.back().done = true; break;
    case Kind::kDuplicate: {
      Forward twin = forward;
      twin.duplicate = true;
      copy_bytes(twin.post, twin.copied);
      hold(link, std::move(forward));
      hold(link, std::move(twin));
      break;
    }
    case Kind::kCorrupt:
      if (forward.post.size > 0) {
        copy_bytes(forward.post, forward.copied);
        const std::uint64_t bit = fault.bit % (8 * forward.post.size);
        forward.copied[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      }
      hold(link, std::move(forward));
      break;
    case Kind::kReorder:
    case Kind::kDelay:
      forward.not_before = now() + fault.ns;
      if (hooks_.wake) hooks_.wake(forward.not_before);
      hold(link, std::move(forward));
      state.swap_pending = fault.kind == Kind::kReorder;
      break;
    case Kind::kKill: break;
  }
}

void FaultEndpoint::hold(std::uint32_t link, Forward forward) {
  Link& state = links_[link];
  if (!state.swap_pending || state.held.empty()) {
    state.swap_pending = false;
    state.held.push_back(std::move(forward));
    return;
  }
  // The held message has been overtaken: it follows directly after this one.
  state.swap_pending = false;
  state.held.back().not_before = forward.not_before;
  state.held.insert(state.held.end() - 1, std::move(forward));
}

void FaultEndpoint::flush(std::uint32_t link) {
  Link& state = links_[link];
  while (!state.held.empty() && state.held.front().not_before <= now()) {
    state.forwarded.push_back(std::move(state.held.front()));
    Forward& forward = state.forwarded.back();
    SendPost post = forward.post;
    post.context = static_cast<std::uint32_t>(state.first_forwarded + state.forwarded.size() - 1);
    const Status status = inner_->post_send(link, post);
    if (status == Status::kOk) {
      state.held.pop_front();
      continue;
    }
    // Duplicates may fill the inner window, or the fabric may have no room: try again later.
    state.held.front() = std::move(forward);
    state.forwarded.pop_back();
    if (status == Status::kTooLarge || status == Status::kTryAgain) return;
    Outstanding& outstanding = state.outstanding[state.held.front().message - state.polled];
    ESPALIER_ASSERT(state.held.front().message >= state.polled);
    outstanding.done = true;
    outstanding.status = status;
    state.held.pop_front();
  }
}

Status FaultEndpoint::post_control(std::uint32_t link, const Control& control) {
  return dead_ ? Status::kOk : inner_->post_control(link, control);
}

bool FaultEndpoint::poll(Completion& completion) {
  if (dead_) return false;
  for (std::uint32_t link = 0; !released_ && link < links_.size(); ++link) {
    flush(link);
    if (give_sent(link, completion)) return true;
  }
  while (inner_->poll(completion)) {
    if (completion.kind != Completion::Kind::kSent) return true;
    if (take_sent(completion)) return true;
  }
  return false;
}

// Returns the completion of the link's oldest send, if that is done.
bool FaultEndpoint::give_sent(std::uint32_t link, Completion& completion) {
  Link& state = links_[link];
  ESPALIER_ASSERT(state.outstanding.size() <= state.posted - state.polled);
  if (state.outstanding.empty() || !state.outstanding.front().done) return false;
  completion = Completion();
  completion.kind = Completion::Kind::kSent;
  completion.link = link;
  completion.context = state.outstanding.front().context;
  completion.status = state.outstanding.front().status;
  state.outstanding.pop_front();
  ++state.polled;
  return true;
}

// Translates inner's completion of a send into the caller's; false: none is due yet.
bool FaultEndpoint::take_sent(Completion& completion) {
  if (released_) return false;
  Link& state = links_[completion.link];
  const std::uint32_t age = completion.context - static_cast<std::uint32_t>(state.first_forwarded);
  if (age >= state.forwarded.size()) return completion.status != Status::kOk;
  Forward& forward = state.forwarded[age];
  ESPALIER_ASSERT(completion.link < links_.size());
  completion.context = forward.post.context;
  // Pass on a late mismatch, or one of a message that the caller does not know of, unchanged.
  if (forward.done || forward.duplicate) {
    const bool tell = completion.status != Status::kOk;
    forward.done = true;
    return tell;
  }
  forward.done = true;
  Outstanding& outstanding = state.outstanding[forward.message - state.polled];
  outstanding.done = true;
  outstanding.status = completion.status;
  while (state.forwarded.size() > kKept && state.forwarded.front().done) {
    state.forwarded.pop_front();
    ++state.first_forwarded;
  }
  flush(completion.link);
  return give_sent(completion.link, completion);
}

void FaultEndpoint::release() {
  released_ = true;
  inner_->release();
  for (Link& state : links_) {
    state.held.clear();
    state.outstanding.clear();
  }
}

void FaultEndpoint::wait(std::uint64_t until) {
  for (const Link& state : links_) {
    if (!state.held.empty()) until = std::min(until, state.held.front().not_before);
    if (!state.outstanding.empty() && state.outstanding.front().done) return;
  }
  inner_->wait(until);
}

}  // namespace espalier::fault
