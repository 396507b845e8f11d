#include "collectives/machine/open_links.h"

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"

#if ESPALIER_SPARES

namespace espalier {

void OpenLinks::open(Endpoint& endpoint, const Loss& loss, bool refuses) {
  ESPALIER_ASSERT(loss.kind != Loss::Kind::kNode || loss.a != endpoint.node());
  endpoint_ = &endpoint;
  loss_ = loss;
  asked_ = false;
  reply_ = refuses ? kRefused : kJoin;
}

std::uint32_t OpenLinks::peer(std::uint32_t link) const {
  ESPALIER_ASSERT(endpoint_ != nullptr && link < links());
  return is_closed(link) ? kNoPeer : loss_.dense(endpoint_->peer(link));
}

Status OpenLinks::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (link >= links() || is_closed(link)) return Status::kBadArgument;
  return endpoint_->post_receive(link, post);
}

Status OpenLinks::post_send(std::uint32_t link, const SendPost& post) {
  if (link >= links() || is_closed(link)) return Status::kBadArgument;
  return endpoint_->post_send(link, post);
}

Status OpenLinks::post_control(std::uint32_t link, const Control& control) {
  if (link < links() && is_closed(link)) return Status::kOk;
  return endpoint_->post_control(link, control);
}

bool OpenLinks::poll(Completion& completion) {
  if (!endpoint_->poll(completion)) return false;
  // False once may leave others for the next poll, as after any poll that found nothing.
  const bool closed = completion.link < links() && is_closed(completion.link);
  const Control& request = completion.control;
  const bool asks = completion.kind == Completion::Kind::kControl &&
                    request.kind == ControlKind::kProbe &&
                    (request.number == kJoin || request.number == kConfirmed);
  // Without a link both its ends are there. One that asks has not been found dead yet.
  if (closed && asks && loss_.kind == Loss::Kind::kNode) answer(completion);
  return !closed && !asks;
}

void OpenLinks::answer(const Completion& completion) {
  ESPALIER_ASSERT(loss_.kind == Loss::Kind::kNode && is_closed(completion.link));
  if (completion.control.number == kConfirmed && reply_ != kRefused) {
    asked_ = true;
    asked_at_ = endpoint_->now();
  }
  Control reply;
  reply.kind = ControlKind::kAnswer;
  reply.number = reply_;
  (void)endpoint_->post_control(completion.link, reply);  // if there is no room, it asks again
}

}  // namespace espalier

#endif
