#pragma once
// An endpoint that refuses posts and delays completions at random, from a seed.

#include <cstdint>
#include <random>

#include "hal/forwarding_endpoint.h"

namespace espalier::testing {

// Wraps an endpoint, which must outlive it.
class UnwillingEndpoint final : public ForwardingEndpoint {
 public:
  UnwillingEndpoint(Endpoint& inner, unsigned seed) : ForwardingEndpoint(inner), random_(seed) {}
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return refuse() ? Status::kTryAgain : inner_->post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return refuse() ? Status::kTryAgain : inner_->post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return refuse() ? Status::kTryAgain : inner_->post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override {
    return !refuse() && inner_->poll(completion);
  }

 private:
  [[nodiscard]] bool refuse() { return random_() % 4 == 0; }
  std::minstd_rand random_;
};

}  // namespace espalier::testing
