#include "firmware/update/roll_call.h"

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

#if ESPALIER_UPDATES

namespace espalier {
namespace {

constexpr std::uint64_t kTag =
    0x656c6573614a6f01;  // of a message of the roll call; contains a version

}  // namespace

RollCall::RollCall(Endpoint& endpoint, std::uint32_t nodes, const ReleaseState& own)
    : endpoint_(&endpoint), rounds_(nodes) {
  view_.add(own);
  begin_round();
}

void RollCall::begin_round() {
  ESPALIER_ASSERT(rounds_ > 0 && status_ == Status::kBusy);
  ESPALIER_ASSERT((sending_ | receiving_ | unsent_ | unposted_).empty());
  --rounds_;
  if (rounds_ == 0) {
    status_ = Status::kOk;
    return;
  }
  store_le(out_, view_.min_running, 8);
  store_le(out_ + 8, view_.max_running, 8);
  store_le(out_ + 16, view_.min_target, 8);
  store_le(out_ + 24, view_.max_target, 8);
  unsent_ = unposted_ = LinkSet::first(endpoint_->links());
}

void RollCall::fail(const Cause& cause, std::uint32_t link) {
  ESPALIER_ASSERT(link < endpoint_->links());
  status_ = cause.status;
  cause_ = cause;
  link_ = link;
  untold_ = LinkSet::first(endpoint_->links());
  untold_.erase(link);
}

// Passes the cause on, so that no node waits for ever.
void RollCall::tell() {
  untold_.for_each([this](std::uint32_t link) {
    Control control;
    control.kind = ControlKind::kCause;
    control.cause = cause_;
    if (endpoint_->post_control(link, control) == Status::kOk) untold_.erase(link);
  });
}

Status RollCall::poll() {
  if (status_ == Status::kBusy) post();
  Completion completion;
  // Bounded: each message and control of a round is reported at most once.
  while (status_ == Status::kBusy && endpoint_->poll(completion)) take(completion);
  if (status_ == Status::kBusy) {
    post();
    if (sending_.empty() && receiving_.empty() && unsent_.empty() && unposted_.empty()) end_round();
  }
  tell();
  return status_;
}

void RollCall::take(const Completion& completion) {
  const std::uint32_t link = completion.link;
  ESPALIER_ASSERT(link < endpoint_->links());
  Cause cause;
  cause.detector = endpoint_->node();
  cause.peer = endpoint_->peer(link);
  switch (completion.kind) {
    case Completion::Kind::kSent:
    case Completion::Kind::kReceived:
      (completion.kind == Completion::Kind::kSent ? sending_ : receiving_).erase(link);
      cause.status = completion.status;
      break;
    case Completion::Kind::kControl:
      // A peer whose roll call has ended may run its machine.
      if (completion.control.kind == ControlKind::kCause) cause = completion.control.cause;
      if (completion.control.kind != ControlKind::kProbe) break;
      probes_[link] = completion.control.number;
      unanswered_.insert(link);
      break;
    case Completion::Kind::kLinkDown: cause.status = Status::kDeadLink; break;
    case Completion::Kind::kUnexpected: break;  // its receive follows
  }
  if (cause.status != Status::kOk) fail(cause, link);
}

void RollCall::post() {
  unposted_.for_each([this](std::uint32_t link) {
    ReceivePost receive;
    receive.bytes = in_[link];
    receive.size = kMessageBytes;
    receive.tag = kTag;
    if (endpoint_->post_receive(link, receive) != Status::kOk) return;
    unposted_.erase(link);
    receiving_.insert(link);
  });
  unsent_.for_each([this](std::uint32_t link) {
    SendPost send;
    send.bytes = out_;
    send.size = kMessageBytes;
    send.tag = kTag;
    if (endpoint_->post_send(link, send) != Status::kOk) return;
    unsent_.erase(link);
    sending_.insert(link);
  });
  unanswered_.for_each([this](std::uint32_t link) {
    Control answer;
    answer.kind = ControlKind::kAnswer;
    answer.number = probes_[link];
    if (endpoint_->post_control(link, answer) == Status::kOk) unanswered_.erase(link);
  });
  link_ = receiving_.next(0) == LinkSet::kNone ? sending_.next(0) : receiving_.next(0);
}

void RollCall::end_round() {
  ESPALIER_ASSERT(endpoint_->links() <= kMaxLinks);
  for (std::uint32_t link = 0; link < endpoint_->links(); ++link) {
    const std::uint8_t* bytes = in_[link];
    view_.add(ReleaseView{load_u64(bytes), load_u64(bytes + 8), load_u64(bytes + 16),
                          load_u64(bytes + 24)});
  }
  begin_round();
}

}  // namespace espalier

#endif
