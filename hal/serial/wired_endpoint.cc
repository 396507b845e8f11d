#include "hal/serial/wired_endpoint.h"

namespace espalier {

Status WiredEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  return link < count_ ? wires_[link].endpoint_.post_receive(0, post) : Status::kBadArgument;
}

Status WiredEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  return link < count_ ? wires_[link].endpoint_.post_send(0, post) : Status::kBadArgument;
}

Status WiredEndpoint::post_control(std::uint32_t link, const Control& control) {
  return link < count_ ? wires_[link].endpoint_.post_control(0, control) : Status::kBadArgument;
}

// The wires take turns to be the first: none of them can keep the others from being polled.
bool WiredEndpoint::poll(Completion& completion) {
  for (std::uint32_t tried = 0; tried < count_; ++tried) {
    ESPALIER_ASSERT(first_ < count_);
    const std::uint32_t link = first_;
    first_ = link + 1 < count_ ? link + 1 : 0;
    if (!wires_[link].endpoint_.poll(completion)) continue;
    completion.link = link;
    return true;
  }
  return false;
}

void WiredEndpoint::release() {
  for (std::uint32_t link = 0; link < count_; ++link) wires_[link].endpoint_.release();
}

std::uint64_t WiredEndpoint::due(std::uint64_t until) {
  clock_->until_ = until;
  clock_->noted_ = 0;
  for (std::uint32_t link = 0; link < count_; ++link) wires_[link].port_.wait(until);
  // A port that has more to send than it may at a time does not wait.
  ESPALIER_ASSERT(clock_->noted_ <= count_ && clock_->until_ <= until);
  return clock_->noted_ == count_ ? clock_->until_ : 0;
}

}  // namespace espalier
