#pragma once
// An endpoint that refuses posts and delays completions at random, from a seed.

#include <cstdint>
#include <random>

#include "espalier/hal/endpoint.h"

namespace espalier::testing {

// Wraps an endpoint, which must outlive it.
class UnwillingEndpoint final : public Endpoint {
 public:
  UnwillingEndpoint(Endpoint& inner, unsigned seed) : inner_(inner), random_(seed) {}
  [[nodiscard]] std::uint32_t node() const override { return inner_.node(); }
  [[nodiscard]] std::uint32_t links() const override { return inner_.links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return inner_.peer(link); }
  [[nodiscard]] std::uint32_t window() const override { return inner_.window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return inner_.eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    return inner_.prepare(regions, count);
  }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return refuse() ? Status::kTryAgain : inner_.post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return refuse() ? Status::kTryAgain : inner_.post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return refuse() ? Status::kTryAgain : inner_.post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override {
    return !refuse() && inner_.poll(completion);
  }
  void release() override { inner_.release(); }
  [[nodiscard]] std::uint64_t now() override { return inner_.now(); }
  void wait(std::uint64_t until) override { inner_.wait(until); }

 private:
  [[nodiscard]] bool refuse() { return random_() % 4 == 0; }
  Endpoint& inner_;
  std::minstd_rand random_;
};

}  // namespace espalier::testing
